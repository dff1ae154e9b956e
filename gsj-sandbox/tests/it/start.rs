//! Starting: what is refused, what fails, and how it is said; many at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use gsj_sandbox::{Backend, InitProgram, Launcher, LauncherOptions, Mount, SandboxError};

use crate::support::{Ground, init_program, within, works};

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    for backend in [Backend::Bwrap, Backend::None] {
        if !works(backend) {
            continue;
        }
        let ground = Ground::new();
        let mut spec = ground.spec("nothing", &["/opt/no-such-agent", "--flag"]);
        spec.backend = backend;
        let error = ground.launcher.start(spec).await.expect_err("there is no such program");
        assert_eq!(
            error.to_string(),
            "sandbox init: execute `/opt/no-such-agent`: No such file or directory (os error 2)",
            "with {backend}"
        );
        ground.assert_nothing_left();
    }
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_is_named() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.shell("nowhere", "true");
    spec.cwd = "/workspace".into();
    let error = ground.launcher.start(spec).await.expect_err("nothing is mounted there");
    assert_eq!(
        error.to_string(),
        "sandbox init: enter the working directory `/workspace`: No such file or directory (os error 2)"
    );
    ground.assert_nothing_left();
}

#[tokio::test]
async fn a_mount_that_cannot_be_made_is_named() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.shell("mounts", "true");
    spec.mounts.push(Mount { source: ground.path("absent"), target: "/x".into(), writable: false });
    let error = ground.launcher.start(spec).await.expect_err("the source does not exist");
    assert_eq!(error.to_string(), format!("mount `{}`", ground.path("absent").display()));

    let closed = ground.path("closed");
    fs::create_dir_all(closed.join("inner")).expect("folders");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("closed to others");
    let mut spec = ground.shell("closed", "true");
    spec.mounts.push(Mount { source: closed.join("inner"), target: "/x".into(), writable: false });
    let result = ground.launcher.start(spec).await;
    if rustix::process::geteuid().is_root() {
        let error = result.expect_err("the sandbox's user cannot reach it");
        assert!(
            matches!(&error, SandboxError::Unreachable { blocked_at, mode: 0o700, .. } if *blocked_at == closed),
            "the folder that is closed is named: {error}"
        );
        assert_eq!(error.hint().map(|hint| hint.contains("chmod o+x")), Some(true));
    } else {
        within(result.expect("its owner can reach it").wait()).await;
    }
    ground.assert_nothing_left();
}

#[tokio::test]
async fn what_bubblewrap_refuses_is_told_in_its_words() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.shell("refused", "true");
    // A mount cannot be made below a file, and the root's files are not known before bubblewrap runs.
    let source = ground.path("given");
    fs::create_dir(&source).expect("a folder");
    spec.mounts.push(Mount { source, target: "/etc/passwd/below".into(), writable: false });
    let error = ground.launcher.start(spec).await.expect_err("a file is no folder");
    assert!(matches!(error, SandboxError::Setup { backend: "bwrap", .. }), "{error}");
    assert!(error.to_string().starts_with("bwrap could not set up the sandbox: bwrap: "), "its own words: {error}");
    ground.assert_nothing_left();
}

#[tokio::test]
async fn a_spec_that_no_machine_can_carry_out_is_refused_before_anything_starts() {
    let ground = Ground::new();
    type Spoil = fn(&mut gsj_sandbox::Spec);
    let refused: [(&str, Spoil); 6] = [
        ("label.session", |spec| spec.label.session = "../x".to_owned()),
        ("command", |spec| spec.command.clear()),
        ("ports", |spec| spec.ports = vec![80]),
        ("uid", |spec| spec.uid = Some(0)),
        ("cwd", |spec| spec.cwd = "relative".into()),
        ("env", |spec| drop(spec.env.insert("A=B".to_owned(), String::new()))),
    ];
    for (field, spoil) in refused {
        let mut spec = ground.shell("bad", "true");
        spoil(&mut spec);
        let error = ground.launcher.start(spec).await.expect_err("it cannot be carried out");
        assert!(error.to_string().starts_with(&format!("sandbox spec: {field}")), "`{error}` names {field}");
    }
    ground.assert_nothing_left();
}

#[tokio::test]
async fn an_init_that_nobody_else_may_execute_still_works() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let home = ground.path("home");
    fs::create_dir(&home).expect("a folder");
    let program = home.join("init");
    fs::copy(init_program().path, &program).expect("a copy");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).expect("closed");
    for mode in [0o755, 0o700] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("a mode");
        let mut spec = ground.shell("hidden", "echo ran");
        spec.init = InitProgram { path: program.clone(), args: vec!["sandbox-init".to_owned()] };
        let (exit, output) = ground.output(spec).await;
        assert_eq!(output, "ran\n", "mode {mode:o}: {exit}");
    }
}

#[tokio::test]
async fn an_init_that_is_another_program_is_told() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.shell("other", "true");
    spec.init = InitProgram { path: "/usr/bin/false".into(), args: Vec::new() };
    let error = ground.launcher.start(spec).await.expect_err("it never reports");
    assert_eq!(error.to_string(), "bwrap could not set up the sandbox: it ended early: exit code 1");
    ground.assert_nothing_left();
}

#[tokio::test]
async fn a_start_that_takes_too_long_leaves_nothing() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut options = LauncherOptions::new(ground.path("run"));
    options.start_timeout = std::time::Duration::from_millis(300);
    let launcher = Launcher::new(options).expect("a launcher");
    let mut spec = ground.shell("slow", "true");
    spec.init = InitProgram { path: "/usr/bin/sleep".into(), args: vec!["300".to_owned()] };
    let error = launcher.start(spec).await.expect_err("sleep never reports");
    assert_eq!(error.to_string(), "the sandbox was not up within 0.3 s");
    ground.assert_nothing_left();
}

#[tokio::test]
async fn a_large_command_and_environment_arrive() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.shell("large", "echo ${#BIG} ${#0}; wc -c");
    spec.command.push("y".repeat(100_000));
    spec.env.insert("BIG".to_owned(), "x".repeat(120_000));
    spec.stdin = vec![b'z'; 5_000_000];
    let (exit, output) = ground.output(spec).await;
    assert_eq!(output, "120000 100000\n5000000\n", "{exit}");
}

#[tokio::test]
async fn sixteen_start_at_once_on_the_same_port() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let begun = std::time::Instant::now();
    let mut starts = tokio::task::JoinSet::new();
    for number in 0..16 {
        let mut spec = ground.shell(&format!("s{number}"), "read line; echo got $line");
        spec.ports = vec![8080, 8790];
        spec.stdin = format!("{number}\n").into_bytes();
        let launcher = ground.launcher.clone();
        starts.spawn(async move { launcher.start(spec).await });
    }
    let mut all = Vec::new();
    while let Some(started) = starts.join_next().await {
        all.push(started.expect("no panic").expect("it starts"));
    }
    eprintln!("16 sandboxes up after {:?}", begun.elapsed());
    assert!(all.iter().all(|running| running.listeners.len() == 2), "each has both of its ports");
    for running in &mut all {
        let exit = within(running.wait()).await;
        assert!(exit.success(), "{exit}");
    }
    for number in 0..16 {
        assert_eq!(ground.stdout(&format!("s{number}")), format!("got {number}\n"));
    }
    drop(all);
    ground.assert_nothing_left();
}

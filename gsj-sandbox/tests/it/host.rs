//! The launching process: its death, and what the next one does.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use gsj_sandbox::{Backend, Launcher, LauncherOptions, Reaped, become_subreaper, reap};

use crate::support::{Ground, alive, eventually, family, marked, within, works};

/// Names the folder of the test that has started this program again as its helper.
const HELPER: &str = "GSJ_SANDBOX_TEST_HELPER";

/// Not a test by itself: started again by the ones below, it starts a sandbox and waits to be killed.
#[tokio::test]
async fn helper_process() {
    let Ok(order) = std::env::var(HELPER) else { return };
    let Some((backend, folder)) = order.split_once(':') else { return };
    let ground = Ground::new();
    let launcher = Launcher::new(LauncherOptions::new(folder)).expect("a launcher");
    let mut spec = ground.shell("helped", "setsid sleep 3001 & (setsid sleep 3002 &) ; echo up; sleep 3003");
    spec.backend = if backend == "none" { Backend::None } else { Backend::Bwrap };
    spec.env.insert("GSJ_TEST_MARK".to_owned(), std::env::var("GSJ_HELPER_MARK").expect("a mark"));
    spec.ports = vec![8080];
    let running = launcher.start(spec).await.expect("the sandbox starts");
    ground.wrote("helped", "up").await;
    println!("sandbox {}", running.id());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn killing_the_launching_process_ends_its_sandboxes_and_the_next_one_says_so() {
    for backend in [Backend::Bwrap, Backend::None] {
        if !works(backend) {
            continue;
        }
        let ground = Ground::new();
        let run_dir = ground.path("run");
        let mut helper = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "host::helper_process", "--nocapture"])
            .env(HELPER, format!("{backend}:{}", run_dir.display()))
            .env("GSJ_HELPER_MARK", &ground.mark)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the helper starts");
        let lines = BufReader::new(helper.stdout.take().expect("a pipe")).lines();
        let outer: u32 = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("sandbox ")?.1.parse().ok())
            .expect("the helper says which process it started");
        let processes = family(outer);
        assert!(processes.len() >= 5, "the sandbox and what it left are running: {processes:?}");
        assert_eq!(reap(&run_dir).expect("the folder is read"), [], "what still has its launcher is left alone");

        helper.kill().expect("kill -9");
        helper.wait().expect("it ends");
        eventually("every process of the sandbox has ended", || {
            alive(&processes).is_empty() && marked(&ground.mark).is_empty()
        })
        .await;
        let reaped = reap(&run_dir).expect("the folder is read");
        let [Reaped { label, backend: was, ended, .. }] = reaped.as_slice() else {
            panic!("one sandbox was cut off: {reaped:?}");
        };
        assert_eq!((label.session.as_str(), *was, *ended), ("helped", backend, true));
        ground.assert_nothing_left();
        assert_eq!(reap(&run_dir).expect("the folder is read"), [], "it is told once");
    }
}

/// Not a test by itself: as an adopter of orphans it starts and ends sandboxes in every way, then looks for zombies.
#[tokio::test]
async fn helper_subreaper() {
    if std::env::var(HELPER).as_deref() != Ok("subreaper") {
        return;
    }
    become_subreaper().expect("allowed to everybody");
    let ground = Ground::new();
    // Without namespaces, who left the session survives the killing of the supervisor: that way is not for `none`.
    for (backend, ways) in
        [(Backend::Bwrap, ["end", "drop", "fail", "outer"].as_slice()), (Backend::None, &["end", "drop", "fail"])]
    {
        for way in ways.iter().copied() {
            let mut spec =
                ground.shell(&format!("{backend}-{way}"), "sleep 3001 & setsid sleep 3002 & exec sleep 3003");
            spec.backend = backend;
            match way {
                "end" => spec.command = vec!["/bin/sh".to_owned(), "-c".to_owned(), "setsid sleep 3001 & :".to_owned()],
                "fail" => spec.cwd = "/nowhere".into(),
                _ => {}
            }
            let Ok(mut running) = ground.launcher.start(spec).await else {
                assert_eq!(way, "fail", "only this one does not start, with {backend}");
                continue;
            };
            match way {
                "outer" => {
                    let outer = rustix::process::Pid::from_raw(running.id().cast_signed()).expect("a process id");
                    rustix::process::kill_process(outer, rustix::process::Signal::KILL).expect("it runs");
                    within(running.wait()).await;
                }
                "end" => drop(within(running.wait()).await),
                _ => drop(running),
            }
            let own = std::process::id();
            assert_eq!(family(own).len(), 1, "no child is left, not even a zombie, with {backend} and {way}");
        }
    }
    println!("no zombies");
}

#[tokio::test]
async fn an_adopter_of_orphans_is_left_without_zombies() {
    if !works(Backend::Bwrap) {
        return;
    }
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "host::helper_subreaper", "--nocapture"])
        .env(HELPER, "subreaper")
        .output()
        .expect("the helper runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("no zombies"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn an_intent_is_there_while_the_sandbox_runs() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let running = ground.launcher.start(ground.shell("noted", "sleep 3000")).await.expect("it starts");
    let intents = ground.intents();
    assert!(matches!(intents.as_slice(), [name] if name.starts_with("noted.")), "one intent: {intents:?}");
    let half_written = ground.path("run").join(intents.concat()).with_extension("fresh");
    let of_the_dead = ground.path("run").join("noted.4194305.0.fresh");
    for file in [&half_written, &of_the_dead] {
        std::fs::write(file, "{").expect("as if it were being written");
    }
    assert_eq!(reap(&ground.path("run")).expect("read"), [], "a running sandbox is not reaped by its own process");
    assert!(half_written.exists() && !of_the_dead.exists(), "nothing is taken from under a living writer");
    std::fs::remove_file(half_written).expect("it was there");
    drop(running);
    ground.assert_nothing_left();
}

/// A stranger that has the number of a process of ours, but another start time, must survive.
#[tokio::test]
async fn a_stranger_with_the_same_number_is_not_killed() {
    let ground = Ground::new();
    let mut stranger = Command::new("/bin/sleep").arg("3000").spawn().expect("it starts");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let record = format!(
        r#"{{"label":{{"run":"r","session":"s"}},"backend":"bwrap","boot":"{}","owner":{{"pid":1,"started":1}},
            "process":{{"pid":{},"started":1}},"session":null}}"#,
        boot.trim(),
        stranger.id()
    );
    std::fs::write(ground.path("run").join("s.1.0.json"), record).expect("an intent of a dead launcher");
    let reaped = reap(&ground.path("run")).expect("the folder is read");
    assert_eq!(reaped.iter().map(|one| (one.killed, one.ended)).collect::<Vec<_>>(), [(0, true)]);
    assert_eq!(stranger.try_wait().expect("asked"), None, "the stranger lives");
    stranger.kill().expect("it ran");
    stranger.wait().expect("it ends");
    ground.assert_nothing_left();
}

/// What a crash left running is killed: here a process whose launcher is said to be dead.
#[tokio::test]
async fn what_a_crash_left_running_is_killed() {
    let ground = Ground::new();
    let mut left = Command::new("/bin/sh").args(["-c", "sleep 3001 & sleep 3002"]).spawn().expect("it starts");
    let pid = left.id();
    eventually("it has its child", || family(pid).len() >= 2).await;
    let processes = family(pid);
    let started = processes.iter().find(|(one, _)| *one == pid).map(|(_, started)| started.clone()).expect("itself");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let record = format!(
        r#"{{"label":{{"run":"r","session":"s"}},"backend":"bwrap","boot":"{}","owner":{{"pid":1,"started":1}},
            "process":{{"pid":{pid},"started":{started}}},"session":null}}"#,
        boot.trim(),
    );
    std::fs::write(ground.path("run").join("s.1.0.json"), record).expect("an intent of a dead launcher");
    let reaped = reap(&ground.path("run")).expect("the folder is read");
    assert!(matches!(reaped.as_slice(), [one] if one.killed >= 2 && one.ended), "{reaped:?}");
    assert_eq!(alive(&processes), Vec::<u32>::new(), "the process and its child are gone");
    let _ = left.wait();
    ground.assert_nothing_left();
}

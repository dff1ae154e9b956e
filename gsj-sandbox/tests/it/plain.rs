//! The `none` backend: no walls, the same seams.

use gsj_sandbox::{Backend, Mount, SmallFile};

use crate::support::{Ground, serve, within};

#[tokio::test]
async fn ports_and_paths_are_filled_in() {
    let ground = Ground::new();
    let mut spec = ground.python(
        "plain",
        r#"
import json, os, socket, sys
settings = json.load(open("{path:/home/agent/settings.json}"))
for port in ({port:0}, {port:1}):
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(b"hello"); print(s.makefile().readline().strip())
print(settings["port"] == {port:1}, os.environ["HOME"] == "{path:/home/agent}", os.getcwd() == "{path:/workspace}/sub")
print(os.path.isdir("{path:/tmp}"), "{path:/tmp}" != "/tmp", sys.stdin.read())
print(sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)))
s = dict(line.split(":\t", 1) for line in open("/proc/self/status"))
print([s[k].strip() for k in ("CapEff", "NoNewPrivs", "Seccomp")], os.getsid(0) == os.getpid())
"#,
    );
    spec.backend = Backend::None;
    let workspace = ground.workspace(&mut spec);
    std::fs::create_dir(workspace.join("sub")).expect("a folder");
    spec.mounts.push(Mount { source: ground.path("run"), target: "/opt/x".into(), writable: false });
    spec.files.push(SmallFile {
        target: "/home/agent/settings.json".into(),
        content: br#"{"port": {port:1}}"#.to_vec(),
        mode: 0o444,
    });
    spec.cwd = "/workspace/sub".into();
    spec.ports = vec![8080, 8790];
    spec.stdin = b"prompt".to_vec();
    let mut running = ground.launcher.start(spec).await.expect("it starts");
    assert_eq!((running.info.backend.name(), running.info.network.as_str()), ("none", "host"), "it is marked as such");
    assert!(!running.info.limits.contains_key("nproc"), "what would count the whole machine is not set");
    let servers = serve(&mut running);
    let exit = within(running.wait()).await;
    servers.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(
        ground.stdout("plain"),
        "hello from socket 0\nhello from socket 1\nTrue True True\nTrue True prompt\n[0, 1, 2]\n\
         ['0000000000000000', '1', '2'] True\n",
        "{exit}; stderr: {}",
        ground.stderr("plain")
    );
    ground.assert_nothing_left();
}

#[tokio::test]
async fn a_command_that_a_signal_ends_is_told_exactly() {
    let ground = Ground::new();
    let mut spec = ground.shell("signal", "kill -USR1 $$");
    spec.backend = Backend::None;
    let mut running = ground.launcher.start(spec).await.expect("it starts");
    let exit = within(running.wait()).await;
    assert_eq!((exit.code, exit.signal), (None, Some(10)), "the supervisor ends in the same way");
    ground.assert_nothing_left();
}

//! Ends: whichever way a sandbox ends, nothing of it stays.

use std::time::Duration;

use gsj_sandbox::{Backend, Running};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ground, alive, family, marked, within, works};

/// Leaves a child, a daemon and a double-forked orphan behind, all deaf to polite signals, then says so.
const LITTER: &str = r#"
trap '' TERM HUP
sleep 3001 &
setsid nohup sleep 3002 >/dev/null 2>&1 &
(setsid sh -c 'trap "" TERM HUP; sleep 3003 & sleep 3004' >/dev/null 2>&1 &)
/usr/bin/python3 -c '
import os, signal, time
for s in (signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
time.sleep(3005)'
while [ "$(ls -d /proc/[0-9]* | wc -l)" -lt 5 ]; do :; done
echo littered
"#;

async fn littered(ground: &Ground, session: &str, backend: Backend, after: &str) -> Running {
    let mut spec = ground.shell(session, &format!("{LITTER}\n{after}"));
    ground.workspace(&mut spec);
    spec.backend = backend;
    let running = ground.launcher.start(spec).await.expect("the sandbox starts");
    ground.wrote(session, "littered").await;
    assert!(marked(&ground.mark).len() >= 4, "the litter is seen before it is swept: {:?}", marked(&ground.mark));
    running
}

fn backends() -> impl Iterator<Item = Backend> {
    [Backend::Bwrap, Backend::None].into_iter().filter(|backend| works(*backend))
}

#[tokio::test]
async fn a_command_that_ends_takes_everything_with_it() {
    for backend in backends() {
        let ground = Ground::new();
        let mut running =
            littered(&ground, "end", backend, "while [ ! -e {path:/workspace}/go ]; do :; done; exit 7").await;
        std::fs::write(ground.path("end.workspace/go"), "").expect("the signal to end");
        let exit = within(running.wait()).await;
        assert_eq!((exit.code, exit.signal), (Some(7), None), "its own code, with {backend}");
        ground.assert_nothing_left();
        assert_eq!(within(running.wait()).await, exit, "asked again, it says the same");
    }
}

#[tokio::test]
async fn terminate_asks_the_command_first_and_kills_the_rest() {
    for backend in backends() {
        let ground = Ground::new();
        let mut spec = ground.shell("polite", "sleep 3001 & trap 'echo bye; exit 3' TERM; echo ready; wait");
        spec.backend = backend;
        let mut running = ground.launcher.start(spec).await.expect("the sandbox starts");
        ground.wrote("polite", "ready").await;
        let exit = within(running.terminate(Duration::from_secs(30))).await;
        assert_eq!((exit.code, ground.stdout("polite").as_str()), (Some(3), "ready\nbye\n"), "with {backend}");
        ground.assert_nothing_left();

        let mut running = littered(&ground, "deaf", backend, "while :; do sleep 1; done").await;
        let exit = within(running.terminate(Duration::from_millis(100))).await;
        assert_ne!(exit.code, Some(0), "a killed command does not look like a success, with {backend}");
        ground.assert_nothing_left();
    }
}

#[tokio::test]
async fn dropping_kills_everything_before_it_returns() {
    for backend in backends() {
        let ground = Ground::new();
        let running = littered(&ground, "drop", backend, "sleep 3000").await;
        let processes = family(running.id());
        drop(running);
        assert_eq!(alive(&processes), Vec::<u32>::new(), "with {backend}");
        ground.assert_nothing_left();
    }
}

#[tokio::test]
async fn killing_the_outer_process_leaves_nothing() {
    for backend in backends() {
        let ground = Ground::new();
        let mut running = littered(&ground, "outer", backend, "sleep 3000").await;
        let processes = family(running.id());
        let outer = Pid::from_raw(running.id().cast_signed()).expect("a process id");
        kill_process(outer, Signal::KILL).expect("it runs");
        let exit = within(running.wait()).await;
        assert_eq!((exit.code, exit.signal), (None, Some(9)), "with {backend}");
        if backend == Backend::Bwrap {
            assert_eq!(alive(&processes), Vec::<u32>::new(), "with {backend}");
            ground.assert_nothing_left();
        } else {
            // Without namespaces, whoever left the command's session is out of reach once its supervisor is gone.
            for line in marked(&ground.mark) {
                let pid = line.split(' ').next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
                kill_process(pid.expect("a process id"), Signal::KILL).expect("a process of this test");
            }
        }
    }
}

#[tokio::test]
async fn a_start_that_is_dropped_leaves_nothing() {
    for backend in backends() {
        let ground = Ground::new();
        for _ in 0..8 {
            let mut spec = ground.shell("cut", "sleep 3000");
            spec.backend = backend;
            spec.ports = vec![8080];
            let mut start = Box::pin(ground.launcher.start(spec));
            // Polled once, it has asked the launcher's thread; then it is gone.
            tokio::select! {
                biased;
                started = &mut start => drop(started),
                () = tokio::task::yield_now() => {}
            }
            drop(start);
        }
        // A start that is waited for comes after all that were given up.
        let mut spec = ground.shell("last", "true");
        spec.backend = backend;
        within(ground.launcher.start(spec).await.expect("it starts").wait()).await;
        ground.assert_nothing_left();
    }
}

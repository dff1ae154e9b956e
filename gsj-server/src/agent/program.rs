//! Running a program of the machine to its end, with a deadline.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How much of a program's output is kept, from its end.
const KEPT: usize = 16 * 1024;

/// What became of a program.
pub(super) struct Ended {
    status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ended {
    pub(super) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// "exited with 1", "was killed by signal 9", "took too long".
    pub(super) fn how(&self) -> String {
        match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!("exited with {code}"),
            Some((None, signal)) => format!("was killed by signal {}", signal.unwrap_or_default()),
            None => "took too long and was stopped".to_owned(),
        }
    }
}

/// Runs `command` without input and waits for its end, at most `deadline`; then its whole process group
/// is killed. Fails only if the program can't be started.
pub(super) fn run(command: &mut Command, deadline: Duration) -> io::Result<Ended> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let group = rustix::process::Pid::from_child(&child);
    let stdout = child.stdout.take().map(|pipe| thread::spawn(move || tail(pipe)));
    let stderr = child.stderr.take().map(|pipe| thread::spawn(move || tail(pipe)));
    let (send, ended) = mpsc::channel();
    let waiter = thread::spawn(move || send.send(child.wait()));
    let status = match ended.recv_timeout(deadline) {
        Ok(status) => Some(status?),
        Err(_) => {
            // The child isn't reaped yet unless it ended this instant; then the signal finds no group.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            None
        }
    };
    let _ = waiter.join();
    let text = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
        let bytes = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Ended { status, stdout: text(stdout), stderr: text(stderr) })
}

fn tail(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * KEPT {
            kept.drain(..kept.len() - KEPT);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_stopped_with_its_children() {
        let ended =
            run(Command::new("/bin/sh").args(["-c", "echo out; sleep 600 & sleep 600"]), Duration::from_millis(300))
                .expect("sh starts");
        assert!(!ended.succeeded(), "{}", ended.how());
        assert_eq!((ended.how().as_str(), ended.stdout.as_str()), ("took too long and was stopped", "out\n"));
    }

    #[test]
    fn the_end_of_the_output_and_the_exit_code_are_kept() {
        let ended = run(Command::new("/bin/sh").args(["-c", "echo no >&2; exit 3"]), Duration::from_secs(60))
            .expect("sh starts");
        assert_eq!((ended.how().as_str(), ended.stderr.as_str()), ("exited with 3", "no\n"));
    }
}

//! The launcher's half of the talk with the init: orders in, listening sockets and measurements out.

use std::io::{self, PipeReader};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::error::SandboxError;
use crate::info::{Measured, SandboxInfo};
use crate::launcher::{Expected, Started};
use crate::process::Process;
use crate::spec::Backend;
use crate::wire::{self, Handed, Incoming, Progress, Report};

/// Most of a backend's or init's own words that an error repeats, bytes.
const WORDS: usize = 4096;

/// How long a backend that closed its socket may take to end, for its exit code to be told.
const ENDING: Duration = Duration::from_secs(2);

type Up = (Process, Vec<TcpListener>, SandboxInfo, Measured);

/// Brings a started sandbox to the point where the command runs.
pub(crate) async fn shake(started: Started) -> Result<Up, SandboxError> {
    let Started { mut process, socket, complaints, orders, streams, mut listeners, expected } = started;
    let socket = nonblocking(socket).map_err(SandboxError::io("prepare the init's socket"))?;
    let spoken = async {
        send(&socket, &orders, &streams).await?;
        receive(&socket).await
    };
    // An end and an error mean the same: nobody is left who could answer.
    let Ok(Some((report, descriptors))) = spoken.await else {
        return Err(gone(process, complaints, expected.backend).await);
    };
    drop(streams);
    let measured = match report {
        Report::Ready(measured) => measured,
        Report::Failed(detail) => {
            process.terminate(Duration::ZERO).await;
            return Err(SandboxError::Init { detail });
        }
    };
    let walled = expected.backend == Backend::Bwrap;
    let ports = if walled { expected.ports } else { 0 };
    let handed = Handed::from_descriptors(descriptors, walled, ports)
        .ok_or_else(|| SandboxError::Init { detail: "it did not hand out what was asked for".to_owned() })?;
    process.inside(handed.first, handed.command, measured.pid)?;
    listeners.extend(handed.listeners.into_iter().map(TcpListener::from));
    for listener in &listeners {
        listener.set_nonblocking(true).map_err(SandboxError::io("prepare a listening socket"))?;
    }
    check(&measured, &expected)?;
    executed(handed.executed).await?;
    let info = info(&measured, expected);
    Ok((process, listeners, info, measured))
}

fn nonblocking(socket: BlockingStream) -> io::Result<UnixStream> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

async fn send(socket: &UnixStream, bytes: &[u8], streams: &[OwnedFd]) -> io::Result<()> {
    let mut descriptors: Vec<BorrowedFd<'_>> = streams.iter().map(|stream| stream.as_fd()).collect();
    let mut sent = 0;
    while sent < bytes.len() {
        sent += socket
            .async_io(Interest::WRITABLE, || wire::send_some(socket.as_fd(), &bytes[sent..], &descriptors))
            .await?;
        descriptors.clear();
    }
    Ok(())
}

async fn receive(socket: &UnixStream) -> io::Result<Option<(Report, Vec<OwnedFd>)>> {
    let mut frame = Incoming::default();
    loop {
        match socket.async_io(Interest::READABLE, || frame.read_some(socket.as_fd())).await? {
            Progress::More => {}
            Progress::Whole => return frame.decode().map(Some),
            Progress::Closed => return Ok(None),
        }
    }
}

/// Waits for the kernel to close the pipe by executing the command, or for the reason why it did not.
async fn executed(pipe: OwnedFd) -> Result<(), SandboxError> {
    let doing = "wait for the command to be executed";
    let mut reason = Vec::new();
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).map_err(SandboxError::io(doing))?;
    pipe::Receiver::from_owned_fd(pipe)
        .map_err(SandboxError::io(doing))?
        .take(WORDS as u64)
        .read_to_end(&mut reason)
        .await
        .map_err(SandboxError::io(doing))?;
    if reason.is_empty() { Ok(()) } else { Err(SandboxError::Init { detail: words(&reason) }) }
}

/// Says why a backend ended before its init reported, in its own words where it left some.
async fn gone(mut process: Process, complaints: PipeReader, backend: Backend) -> SandboxError {
    let exit = match tokio::time::timeout(ENDING, process.wait()).await {
        Ok(exit) => exit,
        Err(_) => process.terminate(Duration::ZERO).await,
    };
    let mut said = vec![0; WORDS];
    let length = rustix::fs::fcntl_setfl(&complaints, OFlags::NONBLOCK)
        .and_then(|()| rustix::io::read(&complaints, &mut said))
        .unwrap_or(0);
    said.truncate(length);
    let said = words(&said);
    let detail = if said.is_empty() { format!("it ended early: {exit}") } else { said };
    SandboxError::Setup { backend: backend.name(), detail }
}

fn words(bytes: &[u8]) -> String {
    let lines = String::from_utf8_lossy(bytes);
    lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Compares what was measured with what was asked for, and fails closed.
fn check(measured: &Measured, expected: &Expected) -> Result<(), SandboxError> {
    let mut faults = Vec::new();
    if measured.uid != expected.uid || measured.uid == 0 {
        faults.push(format!("it runs as uid {}, not {}", measured.uid, expected.uid));
    }
    if measured.capabilities != 0 {
        faults.push(format!("it holds capabilities {:x}", measured.capabilities));
    }
    if !measured.no_new_privs {
        faults.push("no_new_privs is not set".to_owned());
    }
    if measured.seccomp != 2 {
        faults.push("no system call filter is in force".to_owned());
    }
    if expected.backend == Backend::Bwrap && measured.interfaces != ["lo"] {
        faults.push(format!("it sees the network interfaces {}", measured.interfaces.join(", ")));
    }
    if faults.is_empty() { Ok(()) } else { Err(SandboxError::NotSealed { detail: faults.join("; ") }) }
}

fn info(measured: &Measured, expected: Expected) -> SandboxInfo {
    let alone = measured.interfaces == ["lo"] && expected.backend == Backend::Bwrap;
    let mut limits = measured.limits.clone();
    limits.extend(expected.memory);
    SandboxInfo {
        backend: expected.backend,
        backend_version: expected.version,
        network: if alone { "none" } else { "host" }.to_owned(),
        uid: measured.uid,
        limits,
        seccomp: measured.seccomp == 2,
    }
}

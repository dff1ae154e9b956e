//! What launcher and init say to each other: frames of JSON with descriptors, over one socketpair.
//!
//! The launcher sends an [`InitSpec`] with standard input, output and error; the init answers with a [`Report`], and
//! with `Ready` come the descriptors that [`Handed`] names.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::info::Measured;
use crate::spec::MAX_PORTS;

/// Changes with every change of the frames, so that an init of another build is named as such.
pub(crate) const VERSION: u32 = 1;

/// Under this name (`argv[0]`) the init program is the supervisor of the `none` backend.
pub(crate) const SUPERVISOR: &str = "gsj-sandbox-supervisor";
/// And under this one the init itself.
pub(crate) const INIT: &str = "gsj-sandbox-init";

/// Commands and environments are bounded by the kernel (2 MiB by default); JSON may double them.
const MAX_FRAME: usize = 16 << 20;

/// Descriptors in one message: the execution pipe, two process handles and the listeners.
const MAX_DESCRIPTORS: usize = 3 + MAX_PORTS;

/// What the init is to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct InitSpec {
    pub(crate) version: u32,
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: String,
    pub(crate) ports: Vec<u16>,
    pub(crate) limits: Vec<(String, u64)>,
    /// Whether this is a sandbox with namespaces of its own, where the backend has installed the filter already.
    pub(crate) walled: bool,
}

/// What became of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Ready(Measured),
    Failed(String),
}

/// The descriptors that come with [`Report::Ready`], in this order.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Ends without a byte when the command was executed; holds the reason otherwise.
    pub(crate) executed: OwnedFd,
    /// The process that becomes the command.
    pub(crate) command: OwnedFd,
    /// Process 1 of the sandbox; only with namespaces.
    pub(crate) first: Option<OwnedFd>,
    pub(crate) listeners: Vec<OwnedFd>,
}

impl Handed {
    pub(crate) fn into_descriptors(self) -> Vec<OwnedFd> {
        let mut all = vec![self.executed, self.command];
        all.extend(self.first);
        all.extend(self.listeners);
        all
    }

    pub(crate) fn from_descriptors(descriptors: Vec<OwnedFd>, walled: bool, ports: usize) -> Option<Self> {
        let mut rest = descriptors.into_iter();
        let handed = Self {
            executed: rest.next()?,
            command: rest.next()?,
            first: if walled { Some(rest.next()?) } else { None },
            listeners: rest.collect(),
        };
        (handed.listeners.len() == ports).then_some(handed)
    }
}

/// Returns the bytes of one frame: the length, big-endian, then the JSON.
pub(crate) fn frame<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= MAX_FRAME)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "command and environment are too large"))?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(body);
    Ok(bytes)
}

/// Sends as many bytes as the socket takes, with the descriptors; returns how many.
pub(crate) fn send_some(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Sends a whole frame over a blocking socket.
pub(crate) fn send<T: Serialize>(socket: &OwnedFd, message: &T, descriptors: &[OwnedFd]) -> io::Result<()> {
    let bytes = frame(message)?;
    let mut borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut sent = 0;
    while sent < bytes.len() {
        sent += send_some(socket.as_fd(), &bytes[sent..], &borrowed)?;
        borrowed.clear();
    }
    Ok(())
}

/// Receives a whole frame over a blocking socket; nothing when the other side has gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: &OwnedFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut frame = Incoming::default();
    loop {
        match frame.read_some(socket.as_fd())? {
            Progress::More => {}
            Progress::Whole => return frame.decode().map(Some),
            Progress::Closed => return Ok(None),
        }
    }
}

/// How far a frame has come.
pub(crate) enum Progress {
    More,
    Whole,
    Closed,
}

/// A frame on its way in.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Incoming {
    /// Reads once. Never reads past the frame: nothing else is ever sent in the same direction.
    pub(crate) fn read_some(&mut self, socket: BorrowedFd<'_>) -> io::Result<Progress> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut buffer = [0_u8; 16 * 1024];
        let received = recvmsg(socket, &mut [IoSliceMut::new(&mut buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        if received.bytes == 0 {
            return Ok(Progress::Closed);
        }
        self.bytes.extend_from_slice(&buffer[..received.bytes]);
        let Some(length) = self.length() else { return Ok(Progress::More) };
        if length > MAX_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
        }
        Ok(if self.bytes.len() - 4 < length { Progress::More } else { Progress::Whole })
    }

    pub(crate) fn decode<T: DeserializeOwned>(self) -> io::Result<(T, Vec<OwnedFd>)> {
        let body = self.bytes.get(4..).unwrap_or_default();
        Ok((serde_json::from_slice(body)?, self.descriptors))
    }

    fn length(&self) -> Option<usize> {
        let head: [u8; 4] = self.bytes.get(..4)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(head)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_frame_larger_than_the_socket_buffer_arrives_whole_with_its_descriptor() {
        let (here, there) = UnixStream::pair().expect("a socketpair");
        let text = "x".repeat(3 << 20);
        let sent = text.clone();
        let sender = std::thread::spawn(move || {
            let (reader, _writer) = std::io::pipe().expect("a pipe");
            send(&here.into(), &sent, &[reader.into()])
        });
        let received: Option<(String, Vec<OwnedFd>)> = receive(&there.into()).expect("a frame is read");
        sender.join().expect("the sender ends").expect("the frame is sent");
        let (received, descriptors) = received.expect("the frame came before the end");
        assert!(received == text, "every byte arrives");
        assert_eq!(descriptors.len(), 1, "the descriptor arrives once");
    }

    #[test]
    fn a_peer_that_leaves_is_told_from_a_frame() {
        let (here, there) = UnixStream::pair().expect("a socketpair");
        drop(here);
        let received: Option<(String, Vec<OwnedFd>)> = receive(&there.into()).expect("the end is no error");
        assert!(received.is_none(), "no frame came");
    }
}

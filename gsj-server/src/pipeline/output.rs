//! What an agent writes to its standard streams: kept up to a limit, never allowed to block it.

use std::{
    fs::File,
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::Path,
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe};

/// Bytes read from a stream at once.
const PIECE: usize = 64 << 10;
/// Bytes of a stream's end that are kept for a message.
const TAIL: usize = 4 << 10;

/// A stream that is being copied to a file.
#[derive(Debug)]
pub(super) struct Copy {
    reader: pipe::Receiver,
    file: File,
    limit: u64,
}

/// What came of a copied stream.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Bytes that were beyond the limit and are not kept.
    pub(super) dropped: u64,
    /// The last bytes, kept or not.
    pub(super) tail: Vec<u8>,
    /// Why the file is not whole, when writing it failed.
    pub(super) error: Option<io::Error>,
}

impl Copy {
    /// Returns the end that the agent writes to, and the copy to be run while it does.
    pub(super) fn to(path: &Path, limit: u64) -> io::Result<(File, Self)> {
        let (reader, writer) = io::pipe()?;
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok((File::from(OwnedFd::from(writer)), Self { reader, file, limit }))
    }

    /// Copies until every writer has closed its end.
    pub(super) async fn run(mut self) -> Copied {
        let mut copied = Copied::default();
        let mut piece = vec![0; PIECE];
        let mut room = self.limit;
        loop {
            let read = match self.reader.read(&mut piece).await {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) => {
                    copied.error.get_or_insert(error);
                    break;
                }
            };
            let bytes = &piece[..read];
            let kept = usize::try_from(room).map_or(read, |room| room.min(read));
            // A failing disk must not stop the agent: the rest is read and counted, and the error told of.
            if copied.error.is_none()
                && let Err(error) = self.file.write_all(&bytes[..kept])
            {
                copied.error = Some(error);
            }
            room -= kept as u64;
            copied.dropped += (read - kept) as u64;
            copied.tail.extend_from_slice(bytes);
            let extra = copied.tail.len().saturating_sub(TAIL);
            copied.tail.drain(..extra);
        }
        copied
    }
}

impl Copied {
    /// Returns the last line that says anything, shortened, for a message.
    pub(super) fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.tail);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(300).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_is_cut_at_its_limit_and_its_writer_never_waits() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("out");
        let (mut writer, copy) = Copy::to(&path, 10).expect("a pipe");
        let write = std::thread::spawn(move || {
            for _ in 0..5000 {
                writer.write_all(b"0123456789abcdef0123456789abcdef\n").expect("the reader drains it");
            }
            writer.write_all(b"the end\n\n").expect("the reader drains it");
        });
        let copied = copy.run().await;
        write.join().expect("the writer ends");
        assert_eq!(std::fs::read(&path).expect("kept"), b"0123456789");
        assert_eq!(copied.dropped, 5000 * 33 + 9 - 10);
        assert_eq!(copied.last_line().as_deref(), Some("the end"));
    }
}

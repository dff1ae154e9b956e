//! Requests over kept connections: as fast as answers come, or at fixed times.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        Self { stream, buffer: vec![0; 1 << 16] }
    }

    /// Sends a request and reads its answer whole; gives the body.
    pub(crate) fn ask(&mut self, request: &[u8]) -> &[u8] {
        self.stream.write_all(request).expect("it reads");
        let (mut filled, mut body) = (0, None);
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            let read = self.stream.read(self.buffer.get_mut(filled..).unwrap_or_default()).expect("an answer");
            assert!(read > 0, "the connection was closed");
            filled += read;
            let start = match body {
                Some((start, length)) if filled >= start + length => return whole(&self.buffer, start, length),
                Some(_) => continue,
                None => self.buffer.get(..filled).and_then(end_of_head),
            };
            if let Some(start) = start {
                let head = std::str::from_utf8(self.buffer.get(..start).unwrap_or_default()).expect("ASCII");
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.expect("a length").trim().parse().expect("a number");
                body = Some((start, length));
                if filled >= start + length {
                    return whole(&self.buffer, start, length);
                }
            }
        }
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    Some(bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4)
}

fn whole(buffer: &[u8], start: usize, length: usize) -> &[u8] {
    let body = buffer.get(start..start + length).expect("read");
    assert!(body.ends_with(b"\r\n\r\n") && !contains(body, b"\"isError\":true"), "a fault");
    body
}

fn contains(body: &[u8], what: &[u8]) -> bool {
    // Where it would stand: behind the content, at the end.
    body.get(body.len().saturating_sub(200)..).unwrap_or_default().windows(what.len()).any(|there| there == what)
}

/// The bytes of a request that searches.
pub(crate) fn search(token: &str, query: &str) -> Vec<u8> {
    let params = serde_json::json!({"name": "search_case", "arguments": {"query": query}});
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let head = format!(
        "POST /mcp/{token} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// Asks for a time over some connections, each as soon as its last answer is there; gives answers a second.
pub(crate) fn saturate(address: SocketAddr, requests: &[Vec<u8>], connections: usize, time: Duration) -> f64 {
    let (next, started) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut connection = Connection::open(address);
                while started.elapsed() < time {
                    let at = next.fetch_add(1, Ordering::Relaxed) % requests.len();
                    connection.ask(requests.get(at).expect("a request"));
                }
            });
        }
    });
    next.into_inner() as f64 / started.elapsed().as_secs_f64()
}

/// Asks at fixed times, `rate` a second, whether or not earlier answers are there; gives the time of each from when it was
/// due to when its answer was whole, ascending.
pub(crate) fn at_rate(address: SocketAddr, requests: &[Vec<u8>], rate: f64, time: Duration) -> Vec<Duration> {
    let count = (rate * time.as_secs_f64()) as usize;
    let next = AtomicUsize::new(0);
    let started = Instant::now() + Duration::from_millis(50);
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Connection::open(address);
                    let mut times = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= count {
                            return times;
                        }
                        let due = started + Duration::from_secs_f64(at as f64 / rate);
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        connection.ask(requests.get(at % requests.len()).expect("a request"));
                        times.push(due.elapsed());
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it ends")).collect()
    });
    times.sort_unstable();
    times
}

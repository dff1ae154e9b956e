//! The service in a process of its own, and what the system says of that process.

use gsj_cutoff::tokens::{Claims, Secret, mint};
use gsj_retrieval::{Library, Options, Rebuild, Service, Sources, Tools};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECRET: &str = "the-secret-of-the-load-0123456789abcdef";

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_secs()).expect("fits")
}

/// A token of an hour.
pub(crate) fn token(case_id: &str, timestep: usize) -> String {
    let timestep = u32::try_from(timestep).expect("a page number");
    let claims = Claims { case_id: case_id.into(), timestep, episode_id: "load".into(), exp: now() + 3_600 };
    mint(&claims, &Secret::new(SECRET.as_bytes().to_vec()).expect("long enough")).expect("valid claims")
}

/// The child: opens the store, says where it listens and serves until it is killed.
pub(crate) fn serve(corpus: &Path, index: &Path) {
    tracing_subscriber::fmt().json().with_writer(std::io::stderr).init();
    let (library, opened) =
        Library::stored(index, Sources::Corpus(corpus), Rebuild::IfStale).expect("a corpus of this program's");
    let secret = Secret::new(SECRET.as_bytes().to_vec()).expect("long enough");
    let service = Service::new(library, Tools::builtin().expect("shipped"), vec![secret], Options::new(Arc::new(now)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut out = std::io::stdout();
        writeln!(out, "listening on http://{address} built {} reused {}", opened.built, opened.reused).expect("told");
        out.flush().expect("told");
        axum::serve(listener, service.router()).await.expect("served");
    });
}

/// A running child; killed and waited for when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to the first answer that says it is ready.
    pub(crate) ready_after: Duration,
    /// What it says it built and reused.
    pub(crate) said: String,
}

impl Server {
    pub(crate) fn start(corpus: &Path, index: &Path) -> Self {
        let log = fs::File::create(index.with_extension("log")).expect("a log file");
        let started = Instant::now();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg("serve")
            .args([corpus, index])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("its first line");
        let mut words = line.trim().trim_start_matches("listening on http://").splitn(2, ' ');
        let address = words.next().and_then(|address| address.parse().ok()).unwrap_or_else(|| {
            panic!("the server said {line:?}");
        });
        let said = words.next().unwrap_or_default().to_owned();
        while !health(address).contains("\"ready\"") {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { child, address, ready_after: started.elapsed(), said }
    }

    /// A field of the process's status, in megabytes.
    pub(crate) fn megabytes(&self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("a known field");
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("kilobytes");
        kilobytes * 1024.0 / 1e6
    }

    /// How long its threads were on a core, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(&self.child.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn health(address: SocketAddr) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        drop(stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"));
        drop(stream.read_to_string(&mut answer));
    }
    answer
}

/// How long a process (`self` for this one) was on a core, in seconds.
pub(crate) fn cpu_seconds(process: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    // The second field is the program's name in parentheses; user and system time are the 14th and 15th.
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: f64 = fields.get(11..13).expect("times").iter().map(|ticks| ticks.parse::<f64>().expect("ticks")).sum();
    ticks / 100.0
}

//! The thread that starts sandboxes.
//!
//! It is one thread for as long as anything runs, because the kernel ends a process that was started "to die with its
//! parent" when the *thread* that started it ends, not when the process does; a runtime's workers come and go.

use std::fs;
use std::io::PipeReader;
use std::net::TcpListener;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::process::Signal;
use tokio::sync::{mpsc, oneshot};

use crate::bwrap::{self, Plan};
use crate::error::SandboxError;
use crate::handshake;
use crate::ledger::Intent;
use crate::orphans;
use crate::places::Places;
use crate::plain;
use crate::probe;
use crate::process::Process;
use crate::running::Running;
use crate::spec::{Backend, DEFAULT_UID, InitProgram, Spec};
use crate::wire::{self, InitSpec};

/// How many starts may wait for the thread; one takes a few milliseconds there.
const QUEUE: usize = 64;

/// What a launcher needs to know.
#[derive(Debug, Clone)]
pub struct LauncherOptions {
    /// Where the intents are kept, see [`crate::reap`]; made when it is not there. Under the `none` backend the stand-ins
    /// for folders in memory lie here as well, so that the sandbox's user must be able to enter it then.
    pub run_dir: PathBuf,
    /// The bubblewrap program; absent: looked for in `/usr/bin`, `/usr/local/bin` and `/bin`.
    pub bwrap: Option<PathBuf>,
    /// How long a sandbox may take to come up.
    pub start_timeout: Duration,
}

impl LauncherOptions {
    /// Returns options with that run folder, bubblewrap where it usually is, and 30 s for a start.
    pub fn new(run_dir: impl Into<PathBuf>) -> Self {
        Self { run_dir: run_dir.into(), bwrap: None, start_timeout: Duration::from_secs(30) }
    }
}

/// Starts sandboxes. Cheap to clone; its thread ends when the last clone and the last [`Running`] are gone.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    jobs: mpsc::Sender<Job>,
    start_timeout: Duration,
}

#[derive(Debug)]
struct Job {
    spec: Spec,
    answer: oneshot::Sender<Result<Started, SandboxError>>,
}

/// Processes that exist, whose init has yet to report.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) socket: UnixStream,
    /// What the backend itself says.
    pub(crate) complaints: PipeReader,
    pub(crate) orders: Vec<u8>,
    pub(crate) streams: [OwnedFd; 3],
    /// Bound here already, under the `none` backend.
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) expected: Expected,
}

/// What the init must find.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) backend: Backend,
    pub(crate) uid: u32,
    pub(crate) ports: usize,
    pub(crate) memory: Vec<(String, u64)>,
    pub(crate) version: String,
}

impl Launcher {
    /// Starts the thread. Neither bubblewrap nor a runtime is needed yet; [`crate::probe`] tells whether it works.
    pub fn new(options: LauncherOptions) -> Result<Self, SandboxError> {
        fs::create_dir_all(&options.run_dir)
            .map_err(SandboxError::io(format!("make the run folder `{}`", options.run_dir.display())))?;
        let run_dir = fs::canonicalize(&options.run_dir)
            .map_err(SandboxError::io(format!("find the run folder `{}`", options.run_dir.display())))?;
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let spawner = move || {
            let mut spawner = Spawner { run_dir, wanted: options.bwrap, bwrap: None, copy: None };
            while let Some(Job { spec, answer }) = queue.blocking_recv() {
                // Nobody is waiting any more when this fails: what was started ends by being dropped.
                let _ = answer.send(spawner.start(spec));
            }
        };
        std::thread::Builder::new()
            .name("gsj-sandbox".to_owned())
            .spawn(spawner)
            .map_err(SandboxError::io("start the launcher's thread"))?;
        Ok(Self { shared: Arc::new(Shared { jobs, start_timeout: options.start_timeout }) })
    }

    /// Starts a sandbox, and returns when the command has been executed in it.
    ///
    /// Needs a tokio runtime with its network driver. When it fails, or is dropped half-way, nothing is left running.
    pub async fn start(&self, spec: Spec) -> Result<Running, SandboxError> {
        spec.check()?;
        let after = self.shared.start_timeout;
        let started = async {
            let (answer, result) = oneshot::channel();
            self.shared.jobs.send(Job { spec, answer }).await.map_err(|_| SandboxError::Closed)?;
            let started = result.await.map_err(|_| SandboxError::Closed)??;
            handshake::shake(started).await
        };
        let (process, listeners, info, measured) =
            tokio::time::timeout(after, started).await.map_err(|_| SandboxError::Timeout { after })??;
        Ok(Running::new(process, listeners, info, measured, Arc::clone(&self.shared)))
    }
}

/// The state of the thread.
struct Spawner {
    run_dir: PathBuf,
    wanted: Option<PathBuf>,
    /// Looked for at the first start that needs it, and again until it is there.
    bwrap: Option<(PathBuf, String)>,
    /// The last init that had to be copied into memory, and of which file.
    copy: Option<(FileStamp, OwnedFd)>,
}

/// Tells one state of a file from another: device, inode, size, modification time.
type FileStamp = (u64, u64, u64, i64, i64);

impl Spawner {
    fn start(&mut self, spec: Spec) -> Result<Started, SandboxError> {
        let user = User::of(spec.uid)?;
        let intent = Intent::write(&self.run_dir, &spec.label, spec.backend)?;
        let started = match spec.backend {
            Backend::Bwrap => self.prepare_bwrap(&spec, &user),
            Backend::None => self.prepare_plain(&spec, &user, &intent),
        }
        .and_then(|prepared| launch(spec, &user, prepared));
        match started {
            Ok((child, rest)) => rest.attach(child, intent),
            Err(error) => {
                intent.close();
                Err(error)
            }
        }
    }

    fn prepare_bwrap(&mut self, spec: &Spec, user: &User) -> Result<Prepared, SandboxError> {
        let (program, version) = self.bwrap()?;
        for mount in &spec.mounts {
            // As root one sees every path; the sandbox's user may not, and bubblewrap resolves paths as that user.
            if user.dropped {
                bwrap::check_reachable(&mount.source, user.uid, user.gid)?;
            }
        }
        let places = Places::new(spec.ports.clone(), Vec::new());
        let init = self.init(&spec.init, user.uid)?;
        let (arguments, mut inherited) = Plan::of(spec, user.uid, user.gid, &places)?.into_descriptors()?;
        let mut command = Command::new(program);
        command.arg0("bwrap").args(["--args", &arguments, "--"]).arg(by_number(&init)).args(&spec.init.args);
        inherited.push(init);
        Ok(Prepared { command, inherited, places, listeners: Vec::new(), hold: None, version })
    }

    fn prepare_plain(&mut self, spec: &Spec, user: &User, intent: &Intent) -> Result<Prepared, SandboxError> {
        let owner = user.dropped.then_some((user.uid, user.gid));
        let ground = plain::prepare(spec, intent, owner)?;
        let init = self.init(&spec.init, user.uid)?;
        let (held, hold) = std::io::pipe().map_err(SandboxError::io("make a pipe"))?;
        let mut command = Command::new(by_number(&init));
        command.arg0(wire::SUPERVISOR).args(&spec.init.args).stdout(held);
        Ok(Prepared {
            command,
            inherited: vec![init],
            places: ground.places,
            listeners: ground.listeners,
            hold: Some(hold.into()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    fn bwrap(&mut self) -> Result<(PathBuf, String), SandboxError> {
        if self.bwrap.is_none() {
            let (program, info) = probe::version(self.wanted.as_deref())?;
            self.bwrap = Some((program, info));
        }
        self.bwrap.clone().ok_or(SandboxError::Closed)
    }

    /// Opens the init. A file that the sandbox's user may not execute is copied into memory, once.
    fn init(&mut self, init: &InitProgram, uid: u32) -> Result<OwnedFd, SandboxError> {
        let doing = || format!("open the init program `{}`", init.path.display());
        let metadata = fs::metadata(&init.path).map_err(SandboxError::io(doing()))?;
        if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
            return Err(SandboxError::invalid(format!("init: `{}` is not a program", init.path.display())));
        }
        let bit = if metadata.uid() == uid { 0o100 } else { 0o001 };
        if metadata.mode() & bit != 0 {
            return rustix::fs::open(&init.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .map_err(SandboxError::io(doing()));
        }
        let stamp = (metadata.dev(), metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec());
        if self.copy.as_ref().is_none_or(|(known, _)| *known != stamp) {
            let bytes = fs::read(&init.path).map_err(SandboxError::io(doing()))?;
            self.copy = Some((stamp, bwrap::sealed("gsj-init", &bytes)?));
        }
        let (_, copy) = self.copy.as_ref().ok_or(SandboxError::Closed)?;
        rustix::io::fcntl_dupfd_cloexec(copy, 3).map_err(SandboxError::io(doing()))
    }
}

/// Whom the sandbox runs as.
struct User {
    uid: u32,
    gid: u32,
    /// Whether that is another than the launcher's.
    dropped: bool,
}

impl User {
    fn of(wanted: Option<u32>) -> Result<Self, SandboxError> {
        let own = rustix::process::geteuid().as_raw();
        if own == 0 {
            let uid = wanted.unwrap_or(DEFAULT_UID);
            return Ok(Self { uid, gid: uid, dropped: true });
        }
        match wanted {
            Some(uid) if uid != own => Err(SandboxError::invalid(format!(
                "uid: only root may run a sandbox as uid {uid}; this process has uid {own}"
            ))),
            _ => Ok(Self { uid: own, gid: rustix::process::getegid().as_raw(), dropped: false }),
        }
    }
}

struct Prepared {
    command: Command,
    inherited: Vec<OwnedFd>,
    places: Places,
    listeners: Vec<TcpListener>,
    hold: Option<OwnedFd>,
    version: String,
}

/// All of [`Started`] but the process itself.
struct Rest {
    socket: UnixStream,
    complaints: PipeReader,
    orders: Vec<u8>,
    streams: [OwnedFd; 3],
    listeners: Vec<TcpListener>,
    hold: Option<OwnedFd>,
    expected: Expected,
}

impl Rest {
    fn attach(self, child: std::process::Child, intent: Intent) -> Result<Started, SandboxError> {
        let Self { socket, complaints, orders, streams, listeners, hold, expected } = self;
        let process = Process::new(expected.backend, child, intent, hold)?;
        Ok(Started { process, socket, complaints, orders, streams, listeners, expected })
    }
}

/// Writes the orders and starts the backend's program as the sandbox's user.
fn launch(spec: Spec, user: &User, prepared: Prepared) -> Result<(std::process::Child, Rest), SandboxError> {
    let Prepared { mut command, inherited, places, listeners, hold, version } = prepared;
    let orders = wire::frame(&orders(&spec, &places)?).map_err(SandboxError::io("write the init's orders"))?;
    let (socket, theirs) = UnixStream::pair().map_err(SandboxError::io("make a socketpair"))?;
    let (complaints, complaining) = std::io::pipe().map_err(SandboxError::io("make a pipe"))?;
    let expected =
        Expected { backend: spec.backend, uid: user.uid, ports: spec.ports.len(), memory: memory(&spec), version };
    command.env_clear().current_dir("/").stdin(OwnedFd::from(theirs)).stderr(complaining);
    // Out of the terminal's group: an interrupt is for the launcher, which decides what becomes of its sandboxes.
    command.process_group(0);
    if spec.backend == Backend::Bwrap {
        command.stdout(Stdio::null());
    }
    if user.dropped {
        // Groups of root are given up as well: the standard library does so when it sets the user.
        command.uid(user.uid).gid(user.gid);
    }
    let numbers: Vec<i32> = inherited.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
    before_exec(&mut command, numbers, spec.backend == Backend::Bwrap);
    let program = command.get_program().to_string_lossy().into_owned();
    let streams = [bwrap::sealed("stdin", &spec.stdin)?, spec.stdout.into(), spec.stderr.into()];
    let child = orphans::spawn(&mut command).map_err(SandboxError::io(format!("start `{program}`")))?;
    Ok((child, Rest { socket, complaints, orders, streams, listeners, hold, expected }))
}

/// Sets up what happens between fork and exec: the descriptors that are meant, and only these, stay open.
fn before_exec(command: &mut Command, inherited: Vec<i32>, dies_with_thread: bool) {
    let launcher = rustix::process::getpid();
    let prepare = move || {
        if dies_with_thread {
            // bubblewrap asks for this as well, but only after it has begun; set here, no moment is left open. Changing
            // the user would clear it: that has happened before.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(launcher) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        #[expect(unsafe_code, reason = "no safe wrapper of close_range exists")]
        // SAFETY: plain integers go in; with CLOEXEC the call sets flags and closes nothing. Kernels before 5.11 refuse it,
        // and then what this process had inherited itself goes as far as bubblewrap and the init, which close it.
        unsafe {
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        }
        for number in &inherited {
            #[expect(unsafe_code, reason = "the owners cannot be moved into the child")]
            // SAFETY: the launcher holds the owners until the child has executed, so the number is open; one flag of the
            // child's own copy is changed.
            let descriptor = unsafe { BorrowedFd::borrow_raw(*number) };
            rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    #[expect(unsafe_code, reason = "the only way to run code between fork and exec")]
    // SAFETY: the closure allocates nothing, takes no lock and makes system calls only, so that it is safe in the child of
    // a process with threads.
    unsafe {
        command.pre_exec(prepare);
    }
}

fn orders(spec: &Spec, places: &Places) -> Result<InitSpec, SandboxError> {
    let cwd = places.path(Path::new(&places.fill(&spec.cwd.to_string_lossy())?));
    Ok(InitSpec {
        version: wire::VERSION,
        command: spec.command.iter().map(|word| places.fill(word)).collect::<Result<_, _>>()?,
        env: spec
            .env
            .iter()
            .map(|(name, value)| Ok((name.clone(), places.fill(value)?)))
            .collect::<Result<_, SandboxError>>()?,
        cwd: cwd.to_string_lossy().into_owned(),
        ports: if spec.backend == Backend::Bwrap { spec.ports.clone() } else { Vec::new() },
        limits: spec.limits.rlimits(spec.backend),
        walled: spec.backend == Backend::Bwrap,
    })
}

/// The sizes of what lies in memory; without walls nothing does.
fn memory(spec: &Spec) -> Vec<(String, u64)> {
    if spec.backend == Backend::None {
        return Vec::new();
    }
    let shared = ("tmpfs:/dev/shm".to_owned(), spec.limits.shared_memory);
    spec.tmpfs.iter().map(|tmpfs| (format!("tmpfs:{}", tmpfs.target.display()), tmpfs.size)).chain([shared]).collect()
}

/// A path that the kernel resolves to an open file, whatever lies on the way to it.
fn by_number(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

//! The first program inside: hands the listening sockets out, sets the limits, and becomes the command.
//!
//! It talks to the launcher over a socket on its standard input and owns no other descriptor that matters; the
//! command's own standard streams arrive over that socket.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::FdFlags;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

use crate::info::Measured;
use crate::seccomp;
use crate::supervisor;
use crate::wire::{self, Handed, InitSpec, Report};

/// Exit code of an init that did not get as far as the command, as `env` and `nohup` use it.
const FAILED: i32 = 125;

/// Is the sandbox's init: reads its orders from standard input, and becomes the command or reports why not.
///
/// To be called first thing in `main` of the program that [`crate::InitProgram`] names, before any thread is started.
/// Never returns; started by hand it ends with code 125.
pub fn init_main() -> ! {
    let called = std::env::args_os().next();
    let code = if called.is_some_and(|name| name == wire::SUPERVISOR) { supervisor::run() } else { run() };
    #[expect(clippy::exit, reason = "this is the main function of a program")]
    std::process::exit(code)
}

fn run() -> i32 {
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else { return FAILED };
    let report = match wire::receive::<InitSpec>(&socket) {
        Ok(Some((spec, streams))) => become_command(&socket, spec, streams),
        // The launcher is gone, or was never there.
        Ok(None) => return FAILED,
        Err(error) => format!("read the orders: {error}"),
    };
    let _ = wire::send(&socket, &Report::Failed(report), &[]);
    FAILED
}

/// Returns only on failure, with the reason.
fn become_command(socket: &OwnedFd, spec: InitSpec, streams: Vec<OwnedFd>) -> String {
    match prepare(&spec, streams) {
        Err(reason) => reason,
        Ok(Prepared { measured, handed, reason_out }) => {
            if let Err(error) = wire::send(socket, &Report::Ready(measured), &handed.into_descriptors()) {
                return format!("report to the launcher: {error}");
            }
            let Some((program, arguments)) = spec.command.split_first() else { return "no program".to_owned() };
            // `exec` looks the program up in the PATH of the new environment, and gives SIGPIPE and the signal mask
            // back their defaults.
            let error = Command::new(program).args(arguments).env_clear().envs(&spec.env).exec();
            let reason = format!("execute `{program}`: {error}");
            let _ = rustix::io::write(&reason_out, reason.as_bytes());
            reason
        }
    }
}

struct Prepared {
    measured: Measured,
    handed: Handed,
    reason_out: OwnedFd,
}

fn prepare(spec: &InitSpec, streams: Vec<OwnedFd>) -> Result<Prepared, String> {
    if spec.version != wire::VERSION {
        return Err(format!("this is version {}, the launcher's is {}", wire::VERSION, spec.version));
    }
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(streams) else {
        return Err("the standard streams did not arrive".to_owned());
    };
    if !spec.walled {
        // Inside a pid namespace the backend sees to this; here the supervisor may be killed.
        said(
            "tie the command to its supervisor",
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)),
        )?;
        said("start a session", rustix::process::setsid())?;
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    if !spec.ports.is_empty() {
        check_loopback()?;
    }
    let mut listeners = Vec::new();
    for port in &spec.ports {
        let listener = said(&format!("listen on 127.0.0.1:{port}"), TcpListener::bind((Ipv4Addr::LOCALHOST, *port)))?;
        listeners.push(OwnedFd::from(listener));
    }
    let first = if spec.walled { Some(handle(Pid::INIT, "process 1")?) } else { None };
    let command = handle(rustix::process::getpid(), "itself")?;
    let (executed, reason_out) = said("make a pipe", rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC))?;

    said(&format!("enter the working directory `{}`", spec.cwd), std::env::set_current_dir(&spec.cwd))?;
    for (name, value) in &spec.limits {
        limit(name, *value)?;
    }
    // Shared memory is in no limit: where the machine runs out of it, the sandbox is to go, and not the launcher. That a
    // machine without such a file kills by its own choice is no reason not to start.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    said("renounce new privileges", rustix::thread::set_no_new_privs(true))?;
    if !spec.walled {
        for program in said("compile the system call filter", seccomp::programs())? {
            said("install the system call filter", seccompiler::apply_filter(&program))?;
        }
    }
    let measured = measure(spec)?;
    close_on_exec()?;
    said("set standard input", rustix::stdio::dup2_stdin(&stdin))?;
    said("set standard output", rustix::stdio::dup2_stdout(&stdout))?;
    said("set standard error", rustix::stdio::dup2_stderr(&stderr))?;
    Ok(Prepared { measured, handed: Handed { executed, command, first, listeners }, reason_out })
}

/// The backend brings the loopback up, with privileges that are gone by now; whether it did shows only in use.
fn check_loopback() -> Result<(), String> {
    let listener = said("listen on the loopback", TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = said("read an address", listener.local_addr())?;
    said("use the loopback interface (is it up?)", TcpStream::connect(address)).map(drop)
}

fn handle(pid: Pid, what: &str) -> Result<OwnedFd, String> {
    said(&format!("open a handle on {what}"), rustix::process::pidfd_open(pid, PidfdFlags::empty()))
}

fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "nproc" => Resource::Nproc,
        "nofile" => Resource::Nofile,
        "fsize" => Resource::Fsize,
        "data" => Resource::Data,
        "core" => Resource::Core,
        "cpu" => Resource::Cpu,
        _ => return None,
    })
}

/// A limit that the machine already holds lower stays as it is: what counts is reported as measured.
fn limit(name: &str, value: u64) -> Result<(), String> {
    let resource = resource(name).ok_or_else(|| format!("no limit is called `{name}`"))?;
    let allowed = rustix::process::getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    let wanted = Rlimit { current: Some(allowed), maximum: Some(allowed) };
    said(&format!("limit {name} to {value}"), rustix::process::setrlimit(resource, wanted))
}

fn measure(spec: &InitSpec) -> Result<Measured, String> {
    let status = said("read /proc/self/status", std::fs::read_to_string("/proc/self/status"))?;
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
            .ok_or_else(|| format!("/proc/self/status has no field {name}"))
    };
    let devices = said("read /proc/self/net/dev", std::fs::read_to_string("/proc/self/net/dev"))?;
    let interfaces = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    let limits: BTreeMap<String, u64> = spec
        .limits
        .iter()
        .filter_map(|(name, _)| Some((name.clone(), rustix::process::getrlimit(resource(name)?).current?)))
        .collect();
    Ok(Measured {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        pid: std::process::id(),
        capabilities: said("read CapEff", u64::from_str_radix(field("CapEff")?, 16))?,
        no_new_privs: field("NoNewPrivs")? == "1",
        seccomp: said("read Seccomp", field("Seccomp")?.parse())?,
        interfaces,
        limits,
    })
}

/// Marks every descriptor but the standard streams, so that the kernel closes them in the same moment in which the
/// command begins. Their owners in this program stay valid until then.
fn close_on_exec() -> Result<(), String> {
    let folder = said("list the open descriptors", std::fs::read_dir("/proc/self/fd"))?;
    let numbers: Vec<i32> = folder.flatten().filter_map(|item| item.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        #[expect(unsafe_code, reason = "a descriptor that was inherited has no owner in this program to borrow from")]
        // SAFETY: nothing is closed and nothing is kept: the borrow lasts for one call, which sets a flag. A number that
        // is no longer open (that of the folder just read) gives EBADF.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        match rustix::io::fcntl_setfd(descriptor.as_fd(), FdFlags::CLOEXEC) {
            Ok(()) | Err(rustix::io::Errno::BADF) => {}
            Err(error) => return Err(format!("close descriptor {number}: {error}")),
        }
    }
    Ok(())
}

fn said<T, E: Display>(doing: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{doing}: {error}"))
}

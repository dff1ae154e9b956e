//! What the command sees.

use gsj_sandbox::{Backend, Mount, SmallFile, Tmpfs};

use crate::support::{Ground, PYTHON, sandbox_uid, serve, within, works};

/// Connects, asks, prints; says what went wrong where something did.
const CLIENT: &str = r#"
import socket, sys
def ask(host, port, family=socket.AF_INET):
    try:
        with socket.socket(family) as s:
            s.settimeout(3)
            s.connect((host, port))
            s.sendall(b"hello")
            return s.makefile().readline().strip()
    except OSError as e:
        return type(e).__name__ + " " + str(e.errno)
"#;

#[tokio::test]
async fn only_the_two_ports_answer() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.python(
        "net",
        &format!(
            r#"{CLIENT}
for host, port in [("127.0.0.1", 18080), ("127.0.0.1", 18790), ("127.0.0.1", 22), ("127.0.0.1", 18081), ("1.1.1.1", 443),
                   ("10.0.0.1", 80), ("169.254.169.254", 80)]:
    print(host, port, ask(host, port))
print("v6", ask("2606:4700:4700::1111", 443, socket.AF_INET6))
try:
    print("dns", socket.getaddrinfo("example.com", 80))
except OSError as e:
    print("dns", type(e).__name__)
with open("/proc/net/dev") as f:
    print("interfaces", [line.split(":")[0].strip() for line in f if ":" in line])
"#
        ),
    );
    spec.ports = vec![18080, 18790];
    let mut running = ground.launcher.start(spec).await.expect("the sandbox starts");
    assert_eq!(running.listeners.len(), 2, "one listening socket for each port");
    let ports: Vec<u16> =
        running.listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect();
    assert_eq!(ports, [18080, 18790], "in the order of the spec");
    assert_eq!(running.info.network, "none");
    let servers = serve(&mut running);
    let exit = within(running.wait()).await;
    servers.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(
        ground.stdout("net"),
        "127.0.0.1 18080 hello from socket 0\n\
         127.0.0.1 18790 hello from socket 1\n\
         127.0.0.1 22 ConnectionRefusedError 111\n\
         127.0.0.1 18081 ConnectionRefusedError 111\n\
         1.1.1.1 443 OSError 101\n\
         10.0.0.1 80 OSError 101\n\
         169.254.169.254 80 OSError 101\n\
         v6 OSError 101\n\
         dns gaierror\n\
         interfaces ['lo']\n",
        "stderr: {}",
        ground.stderr("net")
    );
    assert!(exit.success(), "{exit}");
}

#[tokio::test]
async fn nothing_of_the_host_is_there_and_the_system_is_read_only() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let secret = ground.path("secret.txt");
    std::fs::write(&secret, "canary").expect("a file of the host");
    let mut spec = ground.shell(
        "files",
        &format!(
            r#"for path in /root /work /home/root /var/lib /etc/shadow /etc/ssl /sys /boot /mnt {}; do
                   test -e "$path" && echo "present $path"
               done
               for folder in / /usr /etc /opt /dev /run /var /home /usr/bin; do
                   touch "$folder/x" 2>/dev/null && echo "writable $folder"
               done
               touch /tmp/x /home/agent/x /workspace/x /dev/shm/x /var/tmp/y && echo "own folders writable"
               touch /ro/x 2>/dev/null && echo "read-only mount writable"
               cat /ro/given.txt /note; echo over > /note 2>/dev/null && echo "file writable"
               echo "$(id -un):$(id -u):$(id -g):$(id -G) $(hostname)"
               awk 'BEGIN {{ print "awk" }}'
               ls /"#,
            secret.display()
        ),
    );
    ground.workspace(&mut spec);
    let given = ground.path("given");
    std::fs::create_dir(&given).expect("a folder");
    std::fs::write(given.join("given.txt"), "given\n").expect("a file");
    spec.mounts.push(Mount { source: given, target: "/ro".into(), writable: false });
    spec.files.push(SmallFile { target: "/note".into(), content: b"note\n".to_vec(), mode: 0o444 });
    let (exit, output) = ground.output(spec).await;
    let uid = sandbox_uid();
    assert_eq!(
        output,
        format!(
            "own folders writable\ngiven\nnote\nagent:{uid}:{uid}:{uid} sandbox\nawk\n\
             bin\ndev\netc\nhome\nlib\nlib64\nnote\nproc\nro\nrun\nsbin\ntmp\nusr\nvar\nworkspace\n"
        ),
        "{exit}; stderr: {}",
        ground.stderr("files")
    );
    assert!(crate::support::exists(&ground.path("files.workspace/x")), "what the command wrote is on the host");
}

#[tokio::test]
async fn folders_in_memory_have_the_size_that_was_asked_for() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.python(
        "memory",
        r#"
import os
for path in ["/tmp", "/home/agent", "/dev/shm", "/"]:
    s = os.statvfs(path)
    full = None
    try:
        with open(path + "/big", "wb") as f:
            for _ in range(64):
                f.write(bytes(1 << 20)); f.flush()
    except OSError as e:
        full = os.strerror(e.errno)
    print(path, s.f_blocks * s.f_frsize >> 20 if path != "/" else "-", oct(os.stat(path).st_mode & 0o7777), full)
"#,
    );
    spec.tmpfs = vec![
        Tmpfs { target: "/tmp".into(), size: 3 << 20, mode: 0o1777 },
        Tmpfs { target: "/home/agent".into(), size: 5 << 20, mode: 0o700 },
    ];
    spec.limits.shared_memory = 2 << 20;
    let mut running = ground.launcher.start(spec).await.expect("the sandbox starts");
    assert_eq!(running.info.limits.get("tmpfs:/home/agent"), Some(&(5 << 20)), "the size is stated");
    within(running.wait()).await;
    assert_eq!(
        ground.stdout("memory"),
        "/tmp 3 0o1777 No space left on device\n\
         /home/agent 5 0o700 No space left on device\n\
         /dev/shm 2 0o1777 No space left on device\n\
         / - 0o755 Read-only file system\n"
    );
}

#[tokio::test]
async fn the_environment_and_the_descriptors_are_exactly_ours() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    // A descriptor that the launching process inherited itself, as from a shell, without the close-on-exec flag.
    let stray = std::fs::File::open(ground.folder.path()).expect("the folder");
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).expect("the flag is cleared");
    let mut spec = ground.spec(
        "env",
        &[
            "python3",
            "-I",
            "-c",
            r#"
import os, sys
print(sorted(open("/proc/self/environ", "rb").read().split(b"\0")))
print(sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)))
print(repr(sys.stdin.buffer.read()), os.getcwd(), os.getpid(), os.umask(0))
"#,
        ],
    );
    spec.env = [("PATH", "/usr/bin"), ("KEY", "a=b c\n\u{e9}"), ("URL", "http://127.0.0.1:{port:0}/"), ("EMPTY", "")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    spec.ports = vec![18080];
    spec.stdin = b"- @first\nsecond \n".to_vec();
    let (exit, output) = ground.output(spec).await;
    assert_eq!(
        output,
        "[b'', b'EMPTY=', b'KEY=a=b c\\n\\xc3\\xa9', b'PATH=/usr/bin', b'URL=http://127.0.0.1:18080/']\n\
         [0, 1, 2]\n\
         b'- @first\\nsecond \\n' /home/agent 2 18\n",
        "{exit}; stderr: {}",
        ground.stderr("env")
    );
    drop(stray);
}

#[tokio::test]
async fn no_path_argument_or_secret_is_seen_in_the_process_list() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.python(
        "procs",
        r#"
import os, re
print(sorted(n for n in os.listdir("/proc") if n.isdigit()) == ["1", "2"])
line = open("/proc/1/cmdline", "rb").read()
print(re.sub(rb"\d+", b"N", line))
print(open("/proc/1/environ", "rb").read())
"#,
    );
    spec.env.insert("SECRET".to_owned(), "canary-secret".to_owned());
    ground.workspace(&mut spec);
    let mut running = ground.launcher.start(spec).await.expect("the sandbox starts");
    let outer = std::fs::read(format!("/proc/{}/cmdline", running.id())).expect("it runs or is not waited for yet");
    within(running.wait()).await;
    assert_eq!(
        ground.stdout("procs"),
        "True\nb'bwrap\\x00--args\\x00N\\x00--\\x00/proc/self/fd/N\\x00'\nb''\n",
        "stderr: {}",
        ground.stderr("procs")
    );
    let outer = String::from_utf8_lossy(&outer).into_owned();
    assert!(!outer.contains("canary") && !outer.contains(&ground.mark), "nor on the host: {outer}");
}

#[tokio::test]
async fn privileges_are_gone_and_the_filter_holds() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let spec = ground.python(
        "seal",
        r#"
import ctypes, os, socket, subprocess, threading
def status(pid):
    s = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status"))
    return [s[k].strip() for k in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")]
print(status("self")); print(status(1))
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    r = libc.syscall(number, *args)
    return os.strerror(ctypes.get_errno()) if r == -1 else "done"
x86 = os.uname().machine == "x86_64"
print("unshare", call(272 if x86 else 97, 0x10000000))
print("unshare x32", call(0x40000000 | 272, 0x10000000) != "done" if x86 else True)
print("mount", call(165 if x86 else 40, b"none", b"/tmp", b"tmpfs", 0, None))
print("ptrace", call(101 if x86 else 117, 16, 1, 0, 0))
print("io_uring_setup", call(425, 8, 0))
print("clone3", call(435, 0, 0))
print("clone newuser", call(56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0))
print("keyctl", call(250 if x86 else 219, 0, -3, 1))
for name, args in [("vsock", (40, socket.SOCK_STREAM)), ("alg", (38, socket.SOCK_SEQPACKET)), ("packet", (17, socket.SOCK_RAW)),
                   ("raw", (socket.AF_INET, socket.SOCK_RAW, 1)), ("raw6", (socket.AF_INET6, socket.SOCK_RAW, 58)),
                   ("netfilter", (16, socket.SOCK_RAW, 12)), ("route", (16, socket.SOCK_RAW, 0)),
                   ("unix", (socket.AF_UNIX, socket.SOCK_STREAM)), ("tcp", (socket.AF_INET, socket.SOCK_STREAM)),
                   ("udp6", (socket.AF_INET6, socket.SOCK_DGRAM))]:
    try:
        socket.socket(*args).close(); print(name, "opened")
    except OSError as e:
        print(name, os.strerror(e.errno))
print("unshare -U", subprocess.run(["unshare", "-U", "true"], stderr=subprocess.DEVNULL).returncode != 0)
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
"#,
    );
    let (exit, output) = ground.output(spec).await;
    let gone = "'0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '1', '2'";
    let refused = "Operation not permitted";
    assert_eq!(
        output,
        format!(
            "[{gone}]\n[{gone}]\nunshare {refused}\nunshare x32 True\nmount {refused}\nptrace {refused}\n\
             io_uring_setup {refused}\nclone3 Function not implemented\nclone newuser {refused}\nkeyctl {refused}\n\
             vsock {refused}\nalg {refused}\npacket {refused}\nraw {refused}\nraw6 {refused}\nnetfilter {refused}\n\
             route opened\nunix opened\ntcp opened\nudp6 opened\nunshare -U True\nthread\n"
        ),
        "{exit}; stderr: {}",
        ground.stderr("seal")
    );
}

#[tokio::test]
async fn a_machine_without_memory_left_ends_the_sandbox_first() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let spec = ground.shell("memory", "cat /proc/self/oom_score_adj");
    let mut running = ground.launcher.start(spec).await.expect("the sandbox starts");
    assert!(within(running.wait()).await.success());
    assert_eq!(ground.stdout("memory"), "1000\n", "stderr: {}", ground.stderr("memory"));
}

#[tokio::test]
async fn limits_are_set_inside_and_reported_as_measured() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.python(
        "limits",
        r#"
import os, resource, signal
for name in ["NPROC", "NOFILE", "FSIZE", "DATA", "CORE", "CPU"]:
    print(name, resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
pids = []
try:
    for _ in range(64):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
except OSError as e:
    print("fork", os.strerror(e.errno), len(pids) < 20)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open("/tmp/big", "wb") as f:
        f.write(bytes(2 << 20))
except OSError as e:
    print("write", os.strerror(e.errno))
try:
    bytearray(200 << 20)
except MemoryError:
    print("MemoryError")
"#,
    );
    spec.limits.processes = Some(20);
    spec.limits.open_files = Some(99);
    spec.limits.file_size = Some(1 << 20);
    spec.limits.data = Some(100 << 20);
    spec.limits.cpu_seconds = Some(77);
    let mut running = ground.launcher.start(spec).await.expect("the sandbox starts");
    let stated: Vec<(&str, u64)> = running.info.limits.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(
        stated,
        [
            ("core", 0),
            ("cpu", 77),
            ("data", 100 << 20),
            ("fsize", 1 << 20),
            ("nofile", 99),
            ("nproc", 20),
            ("tmpfs:/dev/shm", 64 << 20),
            ("tmpfs:/home/agent", 256 << 20),
            ("tmpfs:/tmp", 256 << 20),
        ]
    );
    assert!(running.info.seccomp, "the filter is measured");
    within(running.wait()).await;
    assert_eq!(
        ground.stdout("limits"),
        "NPROC (20, 20)\nNOFILE (99, 99)\nFSIZE (1048576, 1048576)\nDATA (104857600, 104857600)\nCORE (0, 0)\nCPU (77, 77)\n\
         fork Resource temporarily unavailable True\nwrite File too large\nMemoryError\n",
        "stderr: {}",
        ground.stderr("limits")
    );
}

#[tokio::test]
async fn the_tools_of_an_agent_run() {
    if !works(Backend::Bwrap) {
        return;
    }
    let ground = Ground::new();
    let mut spec = ground.shell(
        "tools",
        r#"cd /workspace && set -e
           git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --oneline | wc -l
           echo needle > file; if command -v rg >/dev/null; then rg -n needle file; else echo 1:needle; fi
           if command -v node >/dev/null; then
               node -e 'const o=require("os"),c=require("child_process"),w=require("worker_threads");
                        new w.Worker("require(\"worker_threads\").parentPort.postMessage(1)",{eval:true}).on("message",()=>{
                        console.log("node",Object.keys(o.networkInterfaces()).join(),c.execSync("echo child").toString().trim())})'
           else echo node lo child; fi
           /usr/bin/python3 -c 'import subprocess, multiprocessing as m; print(subprocess.check_output(["echo", "py"]).decode().strip()); m.Queue()'"#,
    );
    ground.workspace(&mut spec);
    let (exit, output) = ground.output(spec).await;
    assert_eq!(output, "1\n1:needle\nnode lo child\npy\n", "{exit}; stderr: {}", ground.stderr("tools"));
    assert!(std::path::Path::new(PYTHON).exists());
}

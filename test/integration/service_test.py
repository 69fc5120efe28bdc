#!/usr/bin/python3
"""The sidecar's service as clients, administrators and Prometheus meet it. Needs no RDMA: ledger_user plays
the part of a program with verbs objects.

    service_test.py BUILD_DIRECTORY
"""
import fcntl
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
from service_scene import (  # noqa: E402
    build, check, control, directory, environment, eventually, finish, here, rdmaquota, rdmaquotad, work)

ledger_user = f"{build}/test/integration/ledger_user"
port = random.randrange(20000, 30000)


def run(*command):
    try:
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "it did not end")


def ledger_of(key):
    return f"{directory}/tenants/{key.replace('/', '+')}/here/ledgers/5"


def show():
    return json.loads(run(rdmaquota, "show", "--json").stdout)["tenants"][0]


def rounds_pass(number=2):
    """Until the sidecar has gone so many rounds from beginning to end: what it has not done then, it will not do."""
    before = ask("status")["sidecar"]["rounds"]
    eventually(lambda: ask("status")["sidecar"]["rounds"] > before + number)


def reload():
    """Puts policy.toml in force, and waits until the sidecar goes by it."""
    done = run(rdmaquota, "reload", "policy.toml")
    assert done.returncode == 0, done.stderr
    rounds_pass()


def as_nobody(script, *arguments):
    """Python, as another user, which says a line when it is ready and ends with its standard input."""
    return as_nobody_in("65534", "65534", script, *arguments)


def as_nobody_in(user, group, script, *arguments):
    process = subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "/usr/bin/python3",
                                "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def end(process):
    process.stdin.close()
    process.wait(300)
    process.stdout.close()


def memory():
    """KiB of the sidecar."""
    return int(open(f"/proc/{daemon.process.pid}/statm").read().split()[1]) * 4


class Client:
    def __init__(self, path=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(300)
        self.socket.connect(path or control)
        self.file = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())

    def line(self):
        text = self.file.readline()
        return json.loads(text) if text else None

    def ask(self, request, **rest):
        self.send(json.dumps(dict(version=1, request=request, **rest)) + "\n")
        return self.line()

    def close(self):
        self.file.close()
        self.socket.close()


def ask(request, **rest):
    client = Client()
    try:
        return client.ask(request, **rest)
    finally:
        client.close()


class Daemon:
    """rdmaquotad, started as systemd does: returns when it has said READY=1."""

    def __init__(self):
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind("notify")
        notify.settimeout(300)
        self.log = open("log", "ab")
        self.process = subprocess.Popen([rdmaquotad], stderr=self.log,
                                        env=dict(environment, NOTIFY_SOCKET=f"{work}/notify"))
        while "READY=1" not in notify.recv(4096).decode():
            pass
        notify.close()
        os.unlink("notify")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(300)
        self.log.close()
        return status


class User:
    """A program that holds something until it is ended."""

    def __init__(self, *what, tenant="default"):
        self.process = subprocess.Popen([ledger_user, *what], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=dict(environment, LEDGER_USER_TENANT=tenant), text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.process.stdin.close()
        self.process.wait(300)


def policy(text=""):
    with open("policy.toml", "w") as file:
        file.write('version = 1\n[process."*"]\nqp = 100\n[tenant.default."*"]\nqp = 1000\n' + text)


def process_limit():
    """The limit on QPs that a process on rxe0 is held to: what show says of one that holds a QP."""
    processes = [p for p in show()["processes"] if "qp" in p["devices"].get("rxe0", {})]
    return processes[0]["devices"]["rxe0"]["qp"]["limit"]


rule = """
[[dynamic]]
device = "rxe0"
watch = "qp"
above = 50
below = 20
scope = "process"
factor = 50
floor = 4
"""


# --- starting -------------------------------------------------------------------------------------

def starting():
    none = run(rdmaquotad)
    check("without a quota directory it says what to do",
          none.returncode == 1 and "rdmaquota reload" in none.stderr and none.stderr.count("\n") == 1, none.stderr)
    check("wrong usage", run(rdmaquotad, "--nonsense").returncode == 2)
    os.mkdir(directory)
    global daemon
    policy()
    daemon = Daemon()
    check("it starts before there is a policy, and says what it waits for",
          "rdmaquota reload" in ask("status")["sidecar"]["missing"])
    check("and answers that to those who ask for figures", "rdmaquota reload" in ask("stats")["error"])
    run(rdmaquota, "reload", "policy.toml")
    check("and takes up the policy once it is there", eventually(lambda: ask("status")["sidecar"]["missing"] == ""))
    second = run(rdmaquotad)
    check("a second one refuses, and names the first",
          second.returncode == 1 and f"already runs for {directory} as process {daemon.process.pid}" in second.stderr
          and second.stderr.count("\n") == 1, second.stderr)


def lock():
    """Another user could keep the sidecar from starting by a read lock, if it could open the file."""
    file = f"{directory}/rdmaquotad.lock"
    check("the lock is for nobody else to open", os.stat(file).st_mode & 0o777 == 0o600)
    if os.geteuid() != 0:
        return
    daemon.end(signal.SIGKILL)
    os.chmod(file, 0o644)  # as an older one made it
    holder = as_nobody("""if True:
        import fcntl, struct, sys
        file = open(sys.argv[1])
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
        print("holds it", flush=True)
        sys.stdin.read()
    """, file)
    start()
    check("a file that another user holds is replaced",
          os.stat(file).st_mode & 0o777 == 0o600 and not os.path.exists(file + ".new"))
    end(holder)
    check("and a second one still refuses", f"as process {daemon.process.pid}" in run(rdmaquotad).stderr)
    os.chmod(file, 0o644)
    check("also where the file's mode is an older one's", run(rdmaquotad).returncode == 1)
    os.chmod(file, 0o600)


def silent():
    """One that is stopped, or has not begun to answer, may have a guard."""
    daemon.process.send_signal(signal.SIGSTOP)
    asked = run(rdmaquota, "guard")
    daemon.process.send_signal(signal.SIGCONT)
    check("whether the guard is on is not known while the sidecar does not answer",
          asked.returncode == 1 and "it is not known whether the guard is on" in asked.stderr, asked.stderr)
    check("and is once it does", "the guard is off" in run(rdmaquota, "guard").stdout)


def fullest():
    """`guard --top` ranks as `top` and `show` do. No guard here: the answer is a sidecar's, which this test writes."""
    figures = {"a": {"used": 0, "limit": 0, "refused": 0}, "b": {"used": 3, "limit": 4, "refused": 0}, "c": {"used": 9, "limit": None},
               "d": {"used": 2, "limit": 0}}
    answer = {"guard": {"state": "deny", "tenants": [{"name": name, "devices": {"rxe0": {"qp": cell}}} for name, cell in figures.items()]}}
    elsewhere = tempfile.mkdtemp(dir=work)
    with socket.create_server(f"{elsewhere}/control.sock", family=socket.AF_UNIX) as server:
        asked = subprocess.Popen([rdmaquota, "guard", "--top", "2"], env=dict(environment, RDMAQUOTA_DIR=elsewhere),
                                 stdout=subprocess.PIPE, text=True)
        client = server.accept()[0]
        client.sendall(json.dumps(answer).encode() + b"\n")
        shown = asked.communicate(timeout=300)[0]
        client.close()
    check("guard --top ranks a row that uses 0 of 0 below the others", [line.split()[0] for line in shown.splitlines()[2:]] == ["d", "b"], shown)


# --- requests -------------------------------------------------------------------------------------

def requests():
    user = User("rxe0", "qp=7")
    eventually(lambda: "rxe0" in ask("stats")["tenants"][0]["devices"])
    stats = ask("stats")
    check("stats are those of show",
          stats["version"] == 1 and stats["tenants"][0]["devices"] == show()["devices"], stats)
    process = ask("process", pid=user.process.pid)
    check("stats of one process",
          process["processes"][0]["devices"]["rxe0"]["qp"] == {"usage": 7, "limit": 100}
          and process["processes"][0]["tenant"] == "default", process)
    check("of one that is not there", "error" in ask("process", pid=1))
    client = Client()
    malformed = [b"\n", b"x\n", b"[]\n", b"{}\n", b'{"version":1}\n', b"\xff\xfe\n",
                 b'{"version":1,"request":"stat"}\n', b'{"version":2,"request":"stats"}\n',
                 b'{"version":1,"request":"set"}\n', b"[" * 9000 + b"\n",
                 b'{"version":1,"request":"process","pid":"1"}\n', b"\0\0\n"]
    refused = []
    for line in malformed:
        client.send(line)
        refused.append(client.line())
    check("each malformed request is refused with a reason", all(r and r["error"] for r in refused), refused)
    check("and its client may go on", "tenants" in client.ask("stats"))
    for byte in b'{"version":1,"request":"status"}\n':
        client.send(bytes([byte]))
    check("a request may come byte by byte", "sidecar" in client.line())
    client.send(b'{"version":1,"request":"status"}\n' * 50)
    check("requests may come ahead of their answers", all("sidecar" in client.line() for _ in range(50)))
    client.send(b'{"version":1,"request":"status"' + b" " * (16384 - 32) + b"}\n")
    check("a request of 16384 bytes is read", "sidecar" in client.line())
    client.send(b" " * 20000)
    answer = client.line()
    check("a larger one ends the connection", "at most 16384" in answer["error"] and client.line() is None, answer)
    client.close()
    client = Client()
    client.send(b'{"version":1,"request":"status"}\n')
    client.socket.shutdown(socket.SHUT_WR)
    check("a client that sends no more gets its answer", "sidecar" in client.line() and client.line() is None)
    client.close()
    user.end()


def permissions():
    if os.geteuid() != 0:
        return
    script = """if True:
        import json, socket, sys
        for request in sys.argv[2:]:
            s = socket.socket(socket.AF_UNIX)
            s.connect(sys.argv[1])
            s.sendall(request.encode() + b"\\n")
            print(s.makefile().readline().strip())
    """
    asked = ['{"version":1,"request":"stats"}', '{"version":1,"request":"set","device":"rxe0","limits":{"qp":1}}']
    lines = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script,
                control, *asked).stdout.splitlines()
    check("every user may read", "tenants" in lines[0], lines)
    check("only root may set", "only root" in lines[1], lines)
    # 1000 at once, and 200 a second from then on: not a measure of speed, but that it is not exceeded.
    script = """if True:
        import socket, sys, time
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        begin = time.monotonic()
        s.sendall(b'{"version":1,"request":"status"}\\n' * 1500)
        answers = s.makefile()
        print(sum("sidecar" in answers.readline() for _ in range(1500)), time.monotonic() - begin > 2)
    """
    fast = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, control)
    check("who asks too fast is answered, but not faster than allowed", fast.stdout == "1500 True\n",
          fast.stdout + fast.stderr)


def changing():
    user = User("rxe0", "qp=1")
    answer = ask("set", device="rxe0", limits={"qp": 10, "mr_bytes": "4GiB"})
    check("set says what it changed", {name: (change["before"], change["after"], change["in_force"])
                                       for name, change in answer["limits"].items()}
          == {"qp": (1000, 10, 10), "mr_bytes": (None, 4 << 30, 4 << 30)}, answer)
    check("and the limits hold", show()["devices"]["rxe0"]["qp"]["limit"] == 10)
    answer = ask("set", device="rxe0", scope="process", limits={"qp": 3})
    check("set for each process", answer["limits"]["qp"]["after"] == 3 and process_limit() == 3)
    check("set of null lifts a limit", ask("set", device="rxe0", limits={"qp": None})["limits"]["qp"]["after"] is None)
    answer = ask("unset", device="rxe0", resources=["qp"], scope="process")
    check("unset brings back what the policy file says", answer["limits"]["qp"]["after"] == 100
          and process_limit() == 100, answer)
    user.end()


def subscribing():
    client = Client()
    check("subscribe", client.ask("subscribe")["subscribed"] is True)
    User("rxe0", "qp=9").end()
    events = [client.line()["event"]]
    while events[-1]["used"] != 9 and len(events) < 5:  # after such as were just happening
        events.append(client.line()["event"])
    check("events come as they happen", (events[-1]["kind"], events[-1]["device"]) == ("denied", "rxe0"), events)
    check("a subscriber may ask on", "sidecar" in client.ask("status"))
    client.close()


# --- many, and ill-behaved ------------------------------------------------------------------------

def crowd():
    clients = [Client() for _ in range(500)]
    for client in clients:
        client.send('{"version":1,"request":"stats"}\n')
    answers = [client.line() for client in clients]
    check("500 clients at once are answered", all(a and "tenants" in a for a in answers))
    check("and counted", eventually(lambda: ask("status")["sidecar"]["clients"] == 501), ask("status"))
    for client in clients:
        client.close()
    check("and forgotten when they are gone", eventually(lambda: ask("status")["sidecar"]["clients"] == 1))
    descriptors = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    check("with their descriptors", descriptors < 40, descriptors)
    clients = []
    refused = None
    for _ in range(1100):
        client = Client()
        clients.append(client)
    refused = clients[-1].line()
    check("beyond 1024 it refuses", refused and "too many clients" in refused["error"], refused)
    for client in clients:
        client.close()
    eventually(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 40)


def slow_reader():
    client = Client()
    client.socket.setblocking(False)
    sent = 0
    end = time.monotonic() + 15
    dropped = False
    while not dropped and time.monotonic() < end:
        try:
            sent += client.socket.send(b'{"version":1,"request":"stats"}\n' * 100)
        except BlockingIOError:
            dropped = bool(select.select([], [client.socket], [], 0.2)[1])
        except (BrokenPipeError, ConnectionResetError):
            dropped = True
    check("others are served meanwhile", "tenants" in ask("stats"))
    check("a client that does not read is dropped",
          dropped and eventually(lambda: ask("status")["sidecar"]["dropped_clients"] == 1), ask("status"))
    check("and the sidecar has not grown by it", memory() < 64 * 1024, f"{memory()} KiB")
    client.close()


def delays(number=20):
    """How long the answers to so many questions took, in seconds."""
    took = []
    for _ in range(number):
        begin = time.monotonic()
        ask("status")
        took.append(time.monotonic() - begin)
    return took


def in_time(late, calm):
    """By the median of each, since the machine itself may stand still at any time: no more than a tenth of a second, or twenty
    times what it takes on this machine while nobody else asks."""
    return statistics.median(late) < max(0.1, 20 * statistics.median(calm))


def greedy():
    """A user that asks for long answers, with and without reading them, and takes all places it can get."""
    if os.geteuid() != 0:
        return
    resources = ["qp", "send_wr", "recv_wr", "cq", "cqe", "mr", "mr_bytes", "pd", "srq", "ah", "mw", "xrcd", "flow"]
    users = [User(f"device_{i:02}", *[f"{name}=1" for name in resources]) for i in range(30)]
    rounds_pass()
    before, calm = memory(), delays()
    others = as_nobody("""if True:
        import socket, sys
        clients = []
        for i in range(500):
            client = socket.socket(socket.AF_UNIX)
            client.connect(sys.argv[1])
            client.sendall(b'{"version":1,"request":"history"}\\n' * 400)
            clients.append(client)
        print("asked", flush=True)
        sys.stdin.read()
    """, control)
    most, late, until = 0, [], time.monotonic() + 5
    while time.monotonic() < until:
        begin = time.monotonic()
        ask("status")
        late.append(time.monotonic() - begin)
        most = max(most, memory())
        time.sleep(0.1)
    check("500 clients that do not read do not make the sidecar grow", most - before < 48 * 1024, f"{before} {most}")
    check("nor root wait", in_time(late, calm), (late, calm))
    end(others)
    others = as_nobody("""if True:
        import socket, sys, threading
        def one():
            client = socket.socket(socket.AF_UNIX)
            client.connect(sys.argv[1])
            read = lambda: [None for _ in iter(lambda: client.recv(1 << 20), b"")]
            threading.Thread(target=read, daemon=True).start()
            while True:
                client.sendall(b'{"version":1,"request":"history"}\\n' * 100)
        for _ in range(20):
            threading.Thread(target=one, daemon=True).start()
        print("asks", flush=True)
        sys.stdin.read()
        import os
        os._exit(0)
    """, control)
    late, until = [], time.monotonic() + 5
    while time.monotonic() < until:
        begin = time.monotonic()
        ask("status")
        late.append(time.monotonic() - begin)
        time.sleep(0.1)
    check("nor 20 that ask as fast as they can", in_time(late, calm), (late, calm))
    end(others)
    for user in users:
        user.end()


def places():
    """All the places that others can take leave some for root, and running out of descriptors costs nothing."""
    if os.geteuid() != 0:
        return
    script = """if True:
        import os, socket, sys
        os.setuid(int(sys.argv[2]))
        clients = [socket.socket(socket.AF_UNIX) for _ in range(600)]
        for client in clients:
            client.connect(sys.argv[1])
        print("there", flush=True)
        sys.stdin.read()
    """

    def take(user):
        process = subprocess.Popen(["/usr/bin/python3", "-c", script, control, str(user)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        return process
    takers = [take(65534), take(65533)]
    answer = eventually(lambda: ask("status"))
    check("two users with all their places leave some for root", answer["sidecar"]["clients"] == 993, answer)
    for taker in takers:
        end(taker)
    eventually(lambda: ask("status")["sidecar"]["clients"] == 1)
    pid = daemon.process.pid
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (60, old[1]))
    taker = take(65534)

    def busy():
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    begin = busy()
    time.sleep(2)
    check("without a descriptor for a client it waits for one", busy() - begin < 0.4, busy() - begin)
    end(taker)
    check("and goes on", eventually(lambda: "sidecar" in ask("status")))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)


def slow_subscriber():
    """One that reads, but less than there is to tell: it is not its idleness that ends it."""
    before = ask("status")["sidecar"]["dropped_clients"]
    client = Client()
    client.ask("subscribe")
    dropped, told = False, 0
    while not dropped and told < 10000:
        User("rxe0", "qp=1", "denials=500").end()
        told += 500
        time.sleep(0.3)  # the ledger keeps no more than 1024 for those who relay them
        client.socket.recv(4096)
        dropped = ask("status")["sidecar"]["dropped_clients"] == before + 1
    check("a subscriber for whom more than 256 KiB of events wait is dropped", dropped, ask("status"))
    ended = True
    try:
        while client.socket.recv(65536):
            pass
    except TimeoutError:
        ended = False
    except ConnectionError:
        pass
    check("and its connection ends", ended)
    check("others are served on", "tenants" in ask("stats"))
    client.close()


# --- the unit --------------------------------------------------------------------------------------

def unit():
    if not shutil.which("systemd-analyze"):
        print("# systemd-analyze is not installed")
        return
    with open(f"{build}/rdma-core.d/rdmaquotad.service") as file:
        text = file.read()
    with open("rdmaquotad.service", "w") as file:  # where the program is before it is installed
        text = re.sub(r"(?m)^ExecStart=.*", f"ExecStart={rdmaquotad}", text)
        file.write(re.sub(r"(?m)^ExecReload=\S+", f"ExecReload={rdmaquota}", text))
    verified = run("systemd-analyze", "verify", "--man=no", "./rdmaquotad.service")
    check("systemd finds no fault with the unit", verified.returncode == 0 and not verified.stderr, verified.stderr)
    rated = run("systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=50", "./rdmaquotad.service")
    print("#", rated.stdout.strip().splitlines()[-1])
    check("nor does it call it exposed", rated.returncode == 0, rated.stdout)


# --- dynamic rules --------------------------------------------------------------------------------

def dynamic():
    policy(rule)
    reload()
    user = User("rxe0", "qp=600")
    check("a rule tightens", eventually(lambda: process_limit() == 50), show())
    change = show()["changed_limits"][0]
    check("show --json says what is not as configured", (change["configured"], change["limit"]) == (100, 50)
          and change["reason"] == "[[dynamic]] rule 1: qp at 60 % of 1000, until 20 %", change)
    check("and show", "rxe0 qp of each process: 50 instead of 100 since 20" in run(rdmaquota, "show").stdout)
    lines = run(rdmaquota, "events").stdout
    check("it is an event, with its reason",
          "tightened   default      -        qp of each process of tenant default on rxe0: 100 -> 50; [[dynamic]] rule 1: qp at 60 % of 1000" in lines,
          lines[-1000:])
    run(rdmaquota, "set", "rxe0", "qp=40", "--process")
    check("a limit that an administrator sets meanwhile counts as configured",
          eventually(lambda: process_limit() == 20))
    run(rdmaquota, "set", "rxe0", "qp=20", "--process")
    check("also when it is what the rule has set", eventually(lambda: process_limit() == 10))
    reload()
    check("a reload begins again", eventually(lambda: process_limit() == 50))

    daemon.end(signal.SIGKILL)
    check("kill -9 leaves the limit as it was", process_limit() == 50 and len(show()["changed_limits"]) == 1)
    start()
    rounds_pass()
    check("one that is started again keeps it", process_limit() == 50 and len(show()["changed_limits"]) == 1)
    daemon.end(signal.SIGKILL)
    user.end()
    user = User("rxe0", "qp=300")
    start()
    rounds_pass()
    check("also where the rule is neither above nor below", process_limit() == 50)
    user.end()
    user = User("rxe0", "qp=1")
    check("and relaxes it", eventually(lambda: process_limit() == 100) and not show()["changed_limits"])

    high = User("rxe0", "qp=700")
    check("it is tightened again", eventually(lambda: process_limit() == 50))
    check("an orderly end exits with 0", daemon.end() == 0)
    check("and puts the configured limits back", process_limit() == 100 and not show()["changed_limits"])
    check("and leaves no socket", not os.path.exists(control))
    start()
    high.end()
    user.end()


def kills():
    """Killed at random while a limit goes up and down, it leaves one of its two values."""
    wrong = []
    holder = User("rxe0", "qp=1")
    for turn in range(12):
        high = User("rxe0", "qp=700") if turn % 2 == 0 else None
        time.sleep(random.uniform(0, 1.2))
        daemon.end(signal.SIGKILL)
        limit, changes = process_limit(), show()["changed_limits"]
        if (limit, len(changes)) not in ((100, 0), (50, 1)):
            wrong.append((limit, changes))
        if high:
            high.end()
        start()
    check("kill -9 at any moment leaves no limit half set", not wrong, wrong)
    check("and the last one puts all right",
          eventually(lambda: process_limit() == 100) and not show()["changed_limits"])
    holder.end()


def start():
    global daemon
    daemon = Daemon()


# --- history, ledger, metrics ---------------------------------------------------------------------

def rings():
    """Of the QPs on rxe0; none before there was any."""
    found = ask("history", tenant="default", device="rxe0", resource="qp")["history"]
    return found[0] if found else {"seconds": {"usage": []}, "hours": {"peak": [0]}}


def history():
    user = User("rxe0", "qp=333", "mr_bytes=4GiB")
    rounds_pass()
    answer = json.loads(run(rdmaquota, "show", "--history", "--json").stdout)
    series = [s for s in answer["history"] if (s["device"], s["resource"]) == ("rxe0", "qp")][0]
    check("history has usage and peak of seconds, minutes, hours",
          [series[r]["period"] for r in ("seconds", "minutes", "hours")] == [1, 60, 3600]
          and series["seconds"]["usage"][-1] == 333 and series["hours"]["peak"][-1] >= 333, series)
    check("for what was asked", [(s["tenant"], s["resource"]) for s in ask("history", device="rxe0", resource="mr_bytes")["history"]]
          == [("default", "mr_bytes"), ("node", "mr_bytes")])
    text = run(rdmaquota, "show", "--history").stdout
    check("show --history draws it", "rxe0    mr_bytes  second  4 GiB  4 GiB" in text and "#" in text, text)
    user.end()
    before = rings()
    daemon.end()
    start()
    after = rings()
    seen, now = (" ".join(map(str, side["seconds"]["usage"])) for side in (before, after))
    check("history outlives a restart", seen.rpartition(" ")[0][-20:] in now, f"{seen}\n{now}")
    daemon.end()
    with open(f"{directory}/history.json", "w") as file:
        file.write("no")
    start()
    check("one that cannot be read is told, and begins anew", "history.json is no history" in open("log").read()
          and len(rings()["seconds"]["usage"]) < 5, rings())


def new_ledger():
    run(rdmaquota, "repair", "--new")
    user = User("rxe5", "qp=5")
    check("a ledger that is replaced is taken up",
          eventually(lambda: "rxe5" in ask("stats")["tenants"][0]["devices"]), ask("stats"))
    user.end()


def journal():
    """What the rings of ledgers and the sidecar no longer have."""
    path = f"{directory}/events.json"

    def events(*words):
        return [json.loads(line) for line in run(rdmaquota, "events", "--json", *words).stdout.splitlines()]
    User("rxe7", "qp=5").end()
    check("a denial is kept in a file", eventually(lambda: '"rxe7"' in open(path).read()))
    check("which only root reads", os.stat(path).st_mode & 0o777 == 0o600)
    check("while the ring has it, it is told once", len(events("--since", "1h", "--device", "rxe7")) == 1)
    run(rdmaquota, "repair", "--new")
    check("a new ledger does not have it", events("--device", "rxe7") == [])
    kept = events("--since", "1h", "--device", "rxe7")
    check("events --since does", [(e["kind"], e["used"], e["user"]) for e in kept] == [("denied", 5, "root")], kept)
    check("also as a line", "rxe7 qp  5 of 5 used" in run(rdmaquota, "events", "--since", "1h", "--device", "rxe7").stdout)
    check("but not what is older", events("--since", "2099-01-31", "--device", "rxe7") == [])
    daemon.end()
    start()
    check("the sidecar's own survive its restart", {"tightened", "restored"} <= {e["kind"] for e in events("--since", "1h")},
          events("--since", "1h"))
    check("which without the file it has not", "tightened" not in {e["kind"] for e in events()})
    eventually(lambda: "rxe7" in ask("stats")["tenants"][0]["devices"], 2)
    before = os.path.getsize(path)
    User("rxe7", "qp=1", "denials=3000").end()
    check("a flood is cut short, which the log says", eventually(lambda: "events of a second were not kept" in open("log").read()))
    check("so that the file stays small", os.path.getsize(path) - before < 200_000, os.path.getsize(path) - before)
    with open(path, "ab") as file:
        file.write(b"\n" * (4 << 20))
    rounds_pass()  # the flood is over
    User("rxe8", "qp=5").end()
    check("a file that has grown gives way to a new one", eventually(lambda: os.path.getsize(path) < 1 << 20 and '"rxe8"' in open(path).read()))
    check("and is read too", len(events("--since", "1h", "--device", "rxe7", "--kind", "denied")) > 1
          and len(events("--since", "1h", "--device", "rxe8")) == 1)


def damaged_ledger():
    """By what every user may do to it. Later it waits a minute."""
    ledger = f"{ledger_of('default')}/ledger"
    whole = os.path.getsize(ledger)
    since = ask("events")["next"]
    os.truncate(ledger, 5000)
    check("a ledger that is cut short is replaced", eventually(lambda: os.path.getsize(ledger) == whole))
    told = eventually(lambda: [e for e in ask("events", since=since)["events"] if e["kind"] == "ledger_replaced"])
    check("which is an event that says where the old one is", os.path.isdir(told[0]["aside"]), told)
    check("it is again every user's", os.stat(ledger).st_mode & 0o777 == 0o666, oct(os.stat(ledger).st_mode))
    user = User("rxe6", "qp=5")
    check("and programs charge the new one",
          eventually(lambda: "rxe6" in ask("stats")["tenants"][0]["devices"]), ask("stats"))
    with open(ledger, "r+b") as file:
        file.write(bytes(whole))
    check("another one within a minute is told",
          eventually(lambda: "rdmaquota reload" in ask("stats")["tenants"][0].get("error", "")))
    rounds_pass()
    check("and not replaced", "error" in ask("stats")["tenants"][0]
          and "rdmaquota reload" in ask("status")["sidecar"]["missing"], ask("stats"))
    run(rdmaquota, "repair")
    check("until an administrator does it", eventually(lambda: "error" not in ask("stats")["tenants"][0]), ask("stats"))
    user.end()


def metrics():
    policy(f"[sidecar]\nmetrics_port = {port}\n")
    reload()
    user = User("rxe0", "qp=42")

    def scrape():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    eventually(lambda: 'resource="qp"} 42\n' in scrape()[1])  # they may be a second old
    kind, text = scrape()
    check("metrics come as Prometheus text", kind.startswith("text/plain; version=0.0.4")
          and 'rdmaquota_usage{tenant="default",device="rxe0",resource="qp"} 42\n' in text
          and 'rdmaquota_limit{tenant="default",device="rxe0",resource="qp"} 1000\n' in text
          and 'rdmaquota_changed_limits{tenant="default"} 0\n' in text, text)
    run(rdmaquota, "set", "rxe0", "commands_per_s=500")
    check("with rates, and 0 for what they delayed before they did", eventually(
        lambda: 'rdmaquota_rate_limit{tenant="default",device="rxe0",rate="commands_per_s"} 500\n' in scrape()[1])
        and 'rdmaquota_delayed_seconds_total{tenant="default",device="rxe0",rate="commands_per_s"} 0.000\n' in scrape()[1], scrape()[1])
    run(rdmaquota, "unset", "rxe0", "commands_per_s")
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        check("elsewhere there is nothing", False)
    except urllib.error.HTTPError as error:
        check("elsewhere there is nothing", error.code == 404)
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(16)]
    check("connections that send nothing do not keep it from its work", "tenants" in ask("stats"))
    for connection in idle:
        connection.close()
    dripping = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    served, until = 0, time.monotonic() + 12
    while time.monotonic() < until:
        for connection in dripping:
            try:
                connection.send(b"G")
            except OSError:
                pass
        try:
            served += "rdmaquota_usage" in scrape()[1]
        except OSError:
            pass
        time.sleep(0.5)
    check("nor do 100 that send a byte now and then", served >= 5, served)
    for connection in dripping:
        connection.close()
    taken = socket.create_server(("127.0.0.1", port + 2))
    policy(f"[sidecar]\nmetrics_port = {port + 2}\n")
    reload()
    check("where the port is taken it says that it serves no metrics",
          ask("status")["sidecar"]["metrics_served"] is False)
    taken.close()
    check("and tries again", eventually(lambda: ask("status")["sidecar"]["metrics_served"]))
    policy(f"[sidecar]\nmetrics_port = {port}\n")
    reload()
    real_prometheus(text)
    policy()
    reload()

    def refused():
        try:
            scrape()
            return False
        except OSError:
            return True
    check("a policy without a port ends it", eventually(refused))
    user.end()


def real_prometheus(text):
    found = subprocess.run(["bash", f"{here}/prometheus.sh"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"# a real Prometheus: {found.stderr.strip()}")
        check("Debian's prometheus can be had", os.environ.get("CI") != "true")
        return
    binaries = found.stdout.strip()
    lint = subprocess.run([f"{binaries}/promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    check("promtool finds no fault with the metrics", lint.returncode == 0 and not lint.stderr, lint.stderr)
    shutil.copy(f"{here}/../../rdma-core.d/prometheus/rdmaquota.rules.yml", ".")
    shutil.copy(f"{here}/rules_test.yml", ".")
    rules = subprocess.run([f"{binaries}/promtool", "test", "rules", "rules_test.yml"], capture_output=True, text=True)
    check("each example alert fires when it should, and only then", rules.returncode == 0, rules.stdout + rules.stderr)
    with open("prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: rdmaquota, static_configs: "
                   f"[{{targets: ['127.0.0.1:{port}']}}]}}]\n")
    server = subprocess.Popen([f"{binaries}/prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                               f"--web.listen-address=127.0.0.1:{port + 1}"], stderr=open("prometheus.log", "wb"))

    def query():
        try:
            url = f"http://127.0.0.1:{port + 1}/api/v1/query?query=rdmaquota_usage"
            with urllib.request.urlopen(url, timeout=300) as answer:
                return [(r["metric"]["tenant"], r["metric"]["device"], r["metric"]["resource"], r["value"][1])
                        for r in json.load(answer)["data"]["result"]]
        except OSError:
            return []
    series = eventually(lambda: [s for s in query() if s == ("default", "rxe0", "qp", "42")])
    check("a real Prometheus scrapes them", bool(series), query())
    server.terminate()
    server.wait(300)


# --- tenants --------------------------------------------------------------------------------------

of_tenants = """
[tenant.physics]
match = [{ user = "65532" }]
[tenant.physics."*"]
qp = 500
[tenant."user/{user}"]
match = [{ group = "65500" }]
[tenant."user/{user}"."*"]
qp = 20
"""


def as_user(user, group, *requests):
    """The answers to a user's requests, all by one process."""
    script = """if True:
        import socket, sys
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        lines = s.makefile()
        for request in sys.argv[2:]:
            s.sendall(request.encode() + b"\\n")
            print(lines.readline().strip())
    """
    texts = [json.dumps(dict(version=1, **request)) for request in requests]
    done = run("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "/usr/bin/python3", "-c", script,
               control, *texts)
    return [json.loads(line) for line in done.stdout.splitlines()]


def names(answer):
    return [tenant["name"] for tenant in answer["tenants"]]


def sockets():
    """What a container of `physics` asks, as its root: the directory `here` is all that it has."""
    path = f"{directory}/tenants/physics/here/control.sock"
    check("a tenant has a socket of its own", eventually(lambda: os.path.exists(path)))
    inside = Client(path)
    check("which shows it, and nothing else", names(inside.ask("stats")) == ["physics"])
    past = inside.ask("history")
    check("nor another's history", {series["tenant"] for series in past["history"]} <= {"physics"}, past)
    events = inside.ask("events", since=0)["events"]
    check("nor the node's events", all(event.get("tenant") == "physics" for event in events), events)
    refused = [inside.ask("set", device="rxe0", limits={"qp": 900}), inside.ask("instance")]
    check("root there changes nothing", all("error" in answer for answer in refused)
          and "outside of the container" in refused[0]["error"], refused)
    inside.close()
    shown = subprocess.run([rdmaquota, "show", "--json"], env=dict(environment, RDMAQUOTA_DIR=os.path.dirname(path)),
                           capture_output=True, text=True, timeout=300)
    check("show works there", [tenant["name"] for tenant in json.loads(shown.stdout)["tenants"]] == ["physics"], shown)
    stranger = subprocess.run(["setpriv", "--reuid=65531", "--regid=65531", "--clear-groups", "/usr/bin/python3", "-c",
                               "import socket, sys; c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[1]);"
                               "c.sendall(b'{\"version\":1,\"request\":\"stats\"}\\n'); print(c.makefile().readline())",
                               path], capture_output=True, text=True, timeout=300)
    check("who does not belong to it does not get in", "physics" not in stranger.stdout, stranger)
    check("the tenant of a template has none", not os.path.exists(f"{directory}/tenants/user+#65533/here/control.sock"))


def tenants():
    if os.geteuid() != 0:
        return
    policy(of_tenants)
    reload()
    check("its status tells how many tenants there are", ask("status")["sidecar"]["tenants"] == 2, ask("status"))
    first, second, stats = as_user(65533, 65500, {"request": "instance"}, {"request": "instance"}, {"request": "stats"})
    check("a user who asks gets the tenant that the matches say", first == {"version": 1, "tenant": "user/#65533",
                                                                            "made": True}, first)
    check("once", second["made"] is False, second)
    ledger = f"{ledger_of('user/#65533')}/ledger"
    writes = ["setpriv", "--reuid=65533", "--clear-groups", "test", "-w", ledger]
    check("whose ledger is that user's", subprocess.run(writes, check=False).returncode == 0 and os.stat(ledger).st_uid == 0,
          os.stat(ledger))
    check("with the template's limit", ask("stats")["tenants"][2]["devices"] is not None
          and names(ask("stats")) == ["default", "physics", "user/65533"], ask("stats"))
    check("a user sees default and its own tenant", names(stats) == ["default", "user/65533"], stats)
    answer, = as_user(65531, 65531, {"request": "instance"})
    check("one who needs none is told so", answer == {"version": 1, "tenant": "default", "made": False}, answer)

    physicist, user = User("rxe0", "qp=9", tenant="physics"), User("rxe0", "qp=5", tenant="user/#65533")
    eventually(lambda: "rxe0" in ask("stats")["tenants"][1]["devices"])
    rounds_pass()
    mine, other, past = as_user(65533, 65500, {"request": "process", "pid": user.process.pid},
                                {"request": "process", "pid": physicist.process.pid}, {"request": "history"})
    check("and its own processes", mine["processes"][0]["tenant"] == "user/65533" and "error" in other, (mine, other))
    check("and its own history", {series["tenant"] for series in past["history"]} <= {"default", "user/65533"}
          and any(series["tenant"] == "user/65533" for series in past["history"]), past)
    check("root sees all", {series["tenant"] for series in ask("history")["history"]} >= {"physics", "user/65533"})
    check("or those of one", {series["tenant"] for series in ask("history", tenant="physics")["history"]} == {"physics"})

    def titles(*tenant):
        shown = run(rdmaquota, "show", *tenant, "--history")
        return [line.removeprefix("tenant ") for line in shown.stdout.splitlines() if line.startswith("tenant ")], shown
    check("as show does", titles("physics")[0] == ["physics"], titles("physics"))
    check("and, where it has gone, of those below one", titles("user")[0] == ["user/65533"], titles("user"))
    check("and of all", titles("node")[0] == titles()[0] and {"physics", "user/65533"} <= set(titles()[0]), titles())
    check("but of none that never was", "no tenant" in titles("fysics")[1].stderr, titles("fysics"))

    answer = ask("set", tenant="physics", device="rxe0", limits={"qp": 11})
    limits = {t["name"]: t["devices"].get("rxe0", {}).get("qp", {}).get("limit") for t in ask("stats")["tenants"]}
    check("limits are set of one tenant", answer["limits"]["qp"]["before"] == 500
          and (limits["physics"], limits["user/65533"]) == (11, 20) and limits["default"] in (1000, None), (answer, limits))
    sockets()
    check("and not of one that is not there", "there is no tenant" in ask("set", tenant="fysics", device="rxe0",
                                                                       limits={"qp": 1})["error"])
    subscribers()
    hostile()
    physicist.end()
    user.end()


def subscribers():
    listener = as_nobody_in("65533", "65500", """if True:
        import json, socket, sys
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        s.sendall(b'{"version":1,"request":"subscribe"}\\n')
        lines = s.makefile()
        print(lines.readline().strip(), flush=True)
        while True:
            event = json.loads(lines.readline())["event"]
            if event.get("used") in (3, 4):
                print(event["tenant"], flush=True)
    """, control)
    User("rxe0", "qp=3", tenant="physics").end()
    rounds_pass()
    User("rxe0", "qp=4", tenant="user/#65533").end()
    check("a user is told its own tenant's events only", listener.stdout.readline() == "user/65533\n")
    listener.terminate()
    listener.wait(300)


def hostile():
    """What a member does to its ledger again and again is nobody else's trouble."""
    ledger = f"{ledger_of('user/#65533')}/ledger"
    whole, late, seen, calm = os.path.getsize(ledger), [], [], delays()
    for turn in range(40):
        os.truncate(ledger, 4096 * (turn % 3))
        with open(ledger, "r+b") as file:
            file.truncate(whole)
            file.seek(4096)
            file.write(os.urandom(1 << 20))
        begin = time.monotonic()
        ask("status")
        late.append(time.monotonic() - begin)
        seen.append(ask("stats")["tenants"][1]["devices"].get("rxe0", {}).get("qp", {}).get("usage"))
        time.sleep(0.05)
    check("a member that damages its ledger again and again delays no answer", in_time(late, calm), (late, calm))
    check("and no other tenant's figures", set(seen) == {9}, seen)
    check("and only its own is told to be damaged", "error" not in ask("stats")["tenants"][1], ask("stats"))


# --- a ledger that lies ---------------------------------------------------------------------------

def sparse_ledger():
    """A tenant can claim every slot of a ledger whose file is all holes. The sidecar's looks must not fill them."""
    global directory, control, environment
    kept = directory, control, environment
    directory = tempfile.mkdtemp(dir="/dev/shm")  # on ext4, reading a hole allocates nothing
    control = f"{directory}/control.sock"
    environment = dict(environment, RDMAQUOTA_DIR=directory)
    run(rdmaquota, "reload", "policy.toml")
    ledger = f"{ledger_of('default')}/ledger"
    locks = []
    for name in os.listdir(f"{ledger_of('default')}/owners"):
        lock = open(f"{ledger_of('default')}/owners/{name}", "r+b")
        fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK: none is reaped
        locks.append(lock)
    data = 4096
    with open(ledger, "r+b") as file:
        file.seek(data + 40)
        file.write(struct.pack("Q", 4096))  # slots_used
        for number in range(64):
            file.seek(data + 4096 + 128 * number)
            file.write(struct.pack("Q64s", 2 * number + 2, b"rxe%d" % number))
        file.seek(data + 307200)
        file.write(struct.pack("I", 1) * 4096)  # SlotState::live
    before = os.stat(ledger).st_blocks
    sidecar = subprocess.Popen([rdmaquotad], stderr=open("log-sparse", "wb"), env=environment)
    try:
        check("a ledger whose slots are all taken is shown", eventually(
            lambda: os.path.exists(control) and len(ask("stats")["tenants"][0]["processes"]) == 4096))
        rounds_pass(3)
        ask("stats")
        check("and none of its holes is filled by looking", os.stat(ledger).st_blocks == before,
              f"{before} blocks before, {os.stat(ledger).st_blocks} now")
    finally:
        sidecar.terminate()
        sidecar.wait(300)
        shutil.rmtree(directory, ignore_errors=True)
        directory, control, environment = kept
    del locks


# --- without root's power -------------------------------------------------------------------------

def tells_figures():
    """The socket's name is there before it listens."""
    try:
        return "tenants" in ask("stats")
    except OSError:
        return False


def unprivileged():
    if os.geteuid() != 0:
        return
    daemon.end()
    os.chmod(directory, 0o777)  # so that the lock and the socket can be made there
    os.unlink(f"{directory}/rdmaquotad.lock")
    copy = shutil.copy(rdmaquotad, work)  # which all users can reach, as the build need not be
    process = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy],
                               stderr=open("log-nobody", "wb"), env=environment)
    try:
        check("without root it runs for the node's directory and tells figures", eventually(tells_figures),
              open("log-nobody").read())
        check("but changes no limit, and says so", ask("status")["sidecar"]["may_change_limits"] is False
              and "may not change limits" in ask("set", device="rxe0", limits={"qp": 1})["error"])
    finally:
        process.terminate()
        check("and ends in order", process.wait(300) == 0)
    os.unlink(f"{directory}/rdmaquotad.lock")
    os.chmod(directory, 0o755)
    start()


def attempt(part):
    """Whatever goes wrong in one part, the others follow."""
    try:
        part()
    except Exception as error:
        check(f"{part.__name__}: {type(error).__name__}: {error}", False,
              traceback.format_exc() + open("log", errors="replace").read()[-2000:])


def ending():
    check("the last end is in order too", daemon.end() == 0)


open("log", "w").close()
for part in (starting, lock, silent, fullest, requests, permissions, changing, subscribing, crowd, slow_reader, places, slow_subscriber,
             unit, dynamic, kills, history, new_ledger, journal, damaged_ledger, metrics, tenants, greedy, sparse_ledger, unprivileged,
             ending):
    attempt(part)
if "daemon" in globals() and daemon.process.poll() is None:
    daemon.process.kill()
finish()

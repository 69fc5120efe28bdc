"""programs_test.py: real programs under quotas. Each pair of the table runs once with limits that it never reaches;
what it used at its peak is read off the ledger. Then it runs once for each resource that it used, limited to one less
than that peak: one side must be denied exactly that resource, by name, and end with an error. At last it runs under a rate that
delays it, and must end well.

Every run has a quota directory of its own (`rdmaquota run`). Runs as root in the guest after an installation; a name
on the command line picks the pairs whose name contains it. The last line is 'N passed, N failed'."""

import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ADDRESS = "192.168.77.1"
SECONDS = 300  # for one run; it takes one or two, and many more on a busy host
PAIRS_AT_ONCE = 2

# name, server, client; PORT becomes a free TCP port of the pair's own, unless it has a fixed one. `cm`: the server
# listens through librdmacm.
Pair = collections.namedtuple("Pair", "name server client cm port", defaults=(False, None))
PERFTEST = "-d rxe0 -x 1 -F -n 5 -p PORT"


def perftest(program, *options):
    common = " ".join((program, PERFTEST, *options))
    return Pair(" ".join((program, *options)), common, f"{common} {ADDRESS}", "-R" in options)


def pingpong(kind, options="-r 32"):
    program = f"ibv_{kind}_pingpong"
    common = f"{program} -d rxe0 -g 1 -n 5 -s 512 -p PORT {options}"
    return Pair(program, common, f"{common} {ADDRESS}")


PAIRS = [
    pingpong("rc"), pingpong("uc"), pingpong("ud"), pingpong("srq", "-r 32 -q 2"),
    perftest("ib_send_bw"), perftest("ib_send_bw", "-q 2"), perftest("ib_send_bw", "-R"),
    perftest("ib_send_bw", "--use-srq"), perftest("ib_send_lat"), perftest("ib_write_bw"), perftest("ib_read_bw"),
    perftest("ib_atomic_lat"),
    Pair("rping", f"rping -s -C 2 -a {ADDRESS} -p PORT", f"rping -c -C 2 -a {ADDRESS} -p PORT", True),
    Pair("ucmatose", "ucmatose -p PORT -C 2", f"ucmatose -p PORT -C 2 -s {ADDRESS}", True),
    Pair("udaddy", "udaddy -C 2", f"udaddy -C 2 -s {ADDRESS}", True, 7174),
    Pair("qperf", "qperf -lp PORT", f"qperf -lp PORT {ADDRESS} -t 1 -cm 1 rc_lat"),
]
# perftest's programs share the code by which they make these objects.
if os.environ.get("RDMAQUOTA_LONG"):
    PAIRS += [
        perftest("ib_send_lat", "-R"), perftest("ib_write_bw", "-q 2"), perftest("ib_write_bw", "-R"),
        perftest("ib_read_bw", "-q 2"), perftest("ib_read_bw", "-R"), perftest("ib_atomic_lat", "-R"),
    ]
# rxe has no XRC: with and without quotas this one says so.
NO_XRC = pingpong("xsrq", "")


def listens(port, by_cm, pid):
    """Whether that process does; of RDMA CM the kernel still lists what a killed one listened on for a moment."""
    if by_cm:
        ids = subprocess.run(["rdma", "resource", "show", "cm_id"], capture_output=True, text=True, check=False)
        return any(f":{port} " in line and f" pid {pid} " in line for line in ids.stdout.splitlines())
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as sockets:
            if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets):
                return True
    return False


class Run:
    """One run of a pair. `ends` are the exit statuses in the order in which the sides ended by themselves."""

    def __init__(self, pair, directory, port, limit=None):
        # Write-only: rdmaquota takes a stderr that can also be read for the program's own data.
        path = os.path.join(directory, "log")
        self.log = open(path, "w", encoding="utf-8")
        self.environment = dict(os.environ, RDMAQUOTA_DIR=directory)
        if limit:
            self.environment["RDMAQUOTA_TENANT_LIMIT"] = limit
        self.port = port
        self.sides, self.ends = [], []
        self.deadline = time.monotonic() + SECONDS
        self.start(pair.server)
        if self.wait(lambda: self.ends or listens(port, pair.cm, self.sides[0].pid)) and not self.ends:
            self.start(pair.client)
            self.wait(self.is_over)
        for side in self.sides:
            self.stop(side)
        self.log.close()
        with open(path, encoding="utf-8", errors="replace") as log:
            self.text = log.read()

    def start(self, command):
        arguments = command.replace("PORT", str(self.port)).split()
        self.sides.append(subprocess.Popen(arguments, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                           stderr=subprocess.STDOUT, start_new_session=True))

    def look(self):
        self.ends = [side.returncode for side in self.sides if side.poll() is not None]

    def is_over(self):
        """The client ends every run; a side that fails, too."""
        done = self.sides[-1].returncode is not None and (len(self.ends) == 2 or self.sides[0].args[0] == "qperf")
        return done or any(self.ends)

    def wait(self, condition):
        while time.monotonic() < self.deadline:
            self.look()
            if condition():
                return True
            time.sleep(0.05)
        return False

    @staticmethod
    def stop(side):
        try:
            os.killpg(side.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        side.wait()

    def passed(self):
        return bool(self.ends) and not any(self.ends) and self.sides[-1].returncode == 0

    def denied(self):
        return sorted(set(re.findall(r"rdmaquota: (\S+) on rxe0 denied \(EDQUOT\)", self.text)))


def peaks(directory):
    shown = subprocess.run(["rdmaquota", "--dir", directory, "show", "--json"],
                           capture_output=True, text=True, check=True)
    cells = json.loads(shown.stdout)["tenants"][0]["devices"].get("rxe0", {})
    return {name: cell["peak"] for name, cell in cells.items() if cell["peak"]}


class Report:
    def __init__(self):
        self.lock = threading.Lock()
        self.passed = self.failed = 0

    def check(self, name, problem, run):
        with self.lock:
            self.passed += not problem
            self.failed += bool(problem)
            print(f"{'not ok' if problem else 'ok'} - {name}", flush=True)
            if problem:
                print(f"    # {problem}; statuses {run.ends}")
                for line in run.text.splitlines()[-12:]:
                    print(f"    # {line}")


def attempt(pair, directory, port, limit=None):
    """The two sides of perftest and of qperf miss each other through librdmacm now and then (a rejection, no listener), before
    anything is asked for that could be denied. rping's server, once it knows that the client has gone (state 10), now and then fails
    nevertheless, by the requests that are flushed then."""
    for _ in range(10):
        run = Run(pair, directory, port, limit)
        ended = any(run.ends) and "RDMA_READ_ADV state 10" in run.text
        if run.denied() or run.passed() or not (ended or "REJECTED" in run.text.upper()):
            break
    return run


def try_limit(pair, directory, port, report, resource, peak):
    run = attempt(pair, directory, port, f"{resource}={peak - 1}")
    problem = ""
    if run.denied() != [resource]:
        problem = f"denied: {run.denied()}"
    elif not any(run.ends):
        problem = "no side ended with an error"
    report.check(f"{pair.name}: {resource} {peak - 1} of {peak}", problem, run)


RATE = """version = 1
[tenant.default]
max_delay = "60s"
[tenant.default."*"]
commands_per_s = { limit = 10, burst = 1 }
"""


def put_in_force(directory, text):
    path = os.path.join(directory, "policy.toml")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run(["rdmaquota", "--dir", directory, "reload", path], check=True, stdout=subprocess.DEVNULL)


def delayed_ms(directory):
    shown = subprocess.run(["rdmaquota", "--dir", directory, "show", "--json"], capture_output=True, text=True, check=True)
    return sum(rate["delayed_ms"] for rate in json.loads(shown.stdout)["tenants"][0]["rates"])


def try_rate(pair, directory, port, report):
    put_in_force(directory, RATE)
    run = attempt(pair, directory, port)
    problem = "" if run.passed() and not run.denied() else f"it failed; denied: {run.denied()}"
    delayed = delayed_ms(directory)
    report.check(f"{pair.name}: passes under a rate, {delayed} ms later", problem or ("" if delayed else "not delayed"), run)


def try_without_xrc(port, report):
    with tempfile.TemporaryDirectory() as directory:
        run = Run(NO_XRC, directory, port)
        report.check(f"{NO_XRC.name}: fails for want of XRC, not of quota", "" if any(run.ends) and not run.denied()
                     and "XRC" in run.text.upper() else f"denied: {run.denied()}", run)


def try_pair(pair, port, report):
    with tempfile.TemporaryDirectory() as directory:
        put_in_force(directory, "version = 1\n")
        started = time.monotonic()
        run = attempt(pair, directory, port)
        problem = "" if run.passed() and not run.denied() else f"denied: {run.denied()}"
        if not run.passed():
            problem = f"it failed; {problem}"
        used = peaks(directory)
        report.check(f"{pair.name}: passes without limits, and uses {used}", problem, run)
        for resource, peak in used.items() if not problem else ():
            try_limit(pair, directory, port, report, resource, peak)
        try_rate(pair, directory, port, report)
        print(f"# {pair.name} took {time.monotonic() - started:.0f} s", flush=True)


def main():
    # The node's own account would see all pairs at once.
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as policy:
        policy.write('version = 1\nmode = "off"\n')
        policy.flush()
        subprocess.run(["rdmaquota", "reload", policy.name], check=True, stdout=subprocess.DEVNULL)
    report = Report()
    pairs = [pair for pair in PAIRS if not sys.argv[1:] or any(word in pair.name for word in sys.argv[1:])]
    with concurrent.futures.ThreadPoolExecutor(PAIRS_AT_ONCE) as pool:
        list(pool.map(lambda pair: try_pair(pair, pair.port or 20000 + 7 * PAIRS.index(pair), report), pairs))
    try_without_xrc(19999, report)
    print(f"{report.passed} passed, {report.failed} failed")
    return report.failed != 0


sys.exit(main())

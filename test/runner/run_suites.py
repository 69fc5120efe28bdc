"""Runs suites: one alone, or several in one guest. Each ends with a result in the report."""
import os
import re
import signal
import subprocess
import threading
import time

from report import log_path
from suites import REPO, command, group_command

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed$")
CANNOT_RUN = 77  # exit status of a suite that something is missing for
LONGEST = "7500"  # seconds after which a suite is ended; only `packages` and --long take longer than half an hour


def judge(name, status, report, seconds, cpu, allow_skip):
    """A suite's result, by the last line of its output that has counts and by its exit status."""
    counts = None
    with open(log_path(name), "r+", encoding="utf-8", errors="replace") as log:
        for line in log:
            counts = COUNTS.match(line) or counts
        passed, failed = (int(counts[1]), int(counts[2])) if counts else (0, 1)
        if status == CANNOT_RUN:
            passed, failed = 0, 0 if allow_skip else 1
            log.write(f"not ok - {name} can run here\n")
        elif not counts:
            log.write(f"not ok - {name} ended without its counts, with status {status}\n")
        elif status and not failed:
            failed = 1
            log.write(f"not ok - {name} ended with status {status}\n")
    report.end(name, passed, failed, seconds, cpu)


def start(words):
    """A process with its output in a pipe. `timeout` ends what hangs, with all that it has started."""
    process = subprocess.Popen(["timeout", "--kill-after=10", LONGEST, *words], cwd=REPO, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    threading.Thread(target=end_rest, args=(process.pid,), daemon=True).start()
    return process


def end_rest(pid):
    """Ends what a suite has left in its process group, which `timeout` leads: it would keep the pipe open for ever."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.killpg(pid, signal.SIGKILL)
    except (ChildProcessError, ProcessLookupError, PermissionError):
        pass


def wait(process):
    """Exit status, and seconds of CPU of the process and all that it has waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def run_alone(name, report, allow_skip):
    begin = time.monotonic()
    report.begin(name)
    process = start(command(name))
    with open(log_path(name), "w", encoding="utf-8") as log:
        for line in process.stdout:
            log.write(line)
            log.flush()
            report.saw(line)
    status, cpu = wait(process)
    judge(name, status, report, time.monotonic() - begin, cpu, allow_skip)


class GuestOutput:
    """Takes the output of suites-in-guest.sh apart: a log for each suite, and a result when it has ended."""

    def __init__(self, names, report, allow_skip):
        self.left, self._report, self._allow_skip = list(names), report, allow_skip
        self._name, self._log, self._begin = f"guest-of-{names[0]}", None, time.monotonic()
        self._open()

    def _open(self):
        self._log = open(log_path(self._name), "w", encoding="utf-8")

    def take(self, line):
        if line.startswith("#begin "):
            self._log.close()
            self._name, self._begin = line.split()[1], time.monotonic()
            self._open()
            self._report.begin(self._name)
        elif line.startswith("#end "):
            _, name, status, _ = line.split()
            self._end(name, int(status))
        else:
            self._log.write(line)
            self._log.flush()
            self._report.saw(line)

    def _end(self, name, status):
        self._log.close()
        self.left.remove(name)
        judge(name, status, self._report, time.monotonic() - self._begin, None, self._allow_skip)
        self._name = f"guest-of-{name}"
        self._open()

    def guest_ended(self, status):
        """A suite that had begun and not ended took the guest along."""
        if self._name in self.left:
            self._log.write(f"not ok - {self._name} took the guest along\n")
            self._end(self._name, status)
        self._log.close()


def run_in_guest(where, names, report, allow_skip):
    """Suites of one guest; those behind one that hangs, or ends the guest, run in another."""
    left = list(names)
    while left:
        output = GuestOutput(left, report, allow_skip)
        process = start(group_command(where, left))
        for line in process.stdout:
            output.take(line)
        status, _ = wait(process)
        output.guest_ended(status)
        if len(output.left) == len(left):  # none has begun
            for name in left:
                with open(log_path(f"guest-of-{left[0]}"), encoding="utf-8") as source, open(log_path(name), "w", encoding="utf-8") as log:
                    log.write(source.read() + "not ok - the guest comes up\n")
                judge(name, status, report, 0, None, allow_skip)
            return
        left = output.left

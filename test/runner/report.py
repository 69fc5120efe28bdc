"""What a run shows: a line per suite, on a terminal also one line of progress; and every suite's whole output in a file. All of it
may be called by several threads."""
import os
import sys
import threading
import time

from suites import BUILD

LOGS = f"{BUILD}/test-logs"


class Report:
    """Collects the results of suites, each as (passed, failed, wall seconds, CPU seconds or None)."""

    def __init__(self, names, estimates):
        os.makedirs(LOGS, exist_ok=True)
        self.results, self.estimates = {}, estimates
        self._names, self._running, self._checks = names, {}, 0
        self._begin, self._lock = time.monotonic(), threading.RLock()
        self._terminal = sys.stdout.isatty()

    def say(self, line):
        with self._lock:
            print(f"\r\x1b[K{line}" if self._terminal else line, flush=True)

    def begin(self, name):
        with self._lock:
            self._running[name] = time.monotonic()
            self.progress()

    def saw(self, line):
        """A line that a suite has printed: counts checks."""
        if line.startswith(("ok - ", "not ok - ")):
            with self._lock:
                self._checks += 1
                self.progress()

    def end(self, name, passed, failed, seconds, cpu=None):
        with self._lock:
            self._running.pop(name, None)
            self.results[name] = (passed, failed, seconds, cpu)
            used = f", {cpu:.0f} s of CPU" if cpu is not None else ""
            self.say(f"{'ok    ' if not failed else 'FAILED'} {name:<22} {passed:>4} passed, {failed} failed  ({seconds:.0f} s{used})")
            if failed:
                for line in failures(name):
                    self.say(f"       {line}")
            self.progress()

    def left(self):
        """About how many seconds are left, by what the suites took last: two run at a time."""
        now, rest, longest = time.monotonic(), 0.0, 0.0
        for name in self._names:
            if name in self.results:
                continue
            expected = self.estimates.get(name, 60)
            if name in self._running:
                expected = max(expected - (now - self._running[name]), 5)
            rest, longest = rest + expected, max(longest, expected)
        return max(rest / 2, longest)

    def left_words(self):
        left = self.left()
        return f"about {left / 60:.0f} min left" if left >= 60 else "less than a minute left"

    def progress(self):
        if not self._terminal:
            return
        done, failed = len(self.results), sum(result[1] for result in self.results.values())
        running = " ".join(sorted(self._running))
        text = f"[{done}/{len(self._names)} suites, {self._checks} checks{f', {failed} FAILED' if failed else ''}, " \
               f"{self.left_words()}] {running}"
        columns = os.get_terminal_size().columns if self._terminal else 80
        print(f"\r\x1b[K{text[:columns - 1]}", end="", flush=True)

    def finish(self):
        """The slowest suites, what failed once more, and the counts in the last line; whether all passed."""
        passed, failed = (sum(result[i] for result in self.results.values()) for i in (0, 1))
        cpu = sum(result[3] or 0 for result in self.results.values())
        slowest = sorted(self.results, key=lambda name: -self.results[name][2])[:8]
        self.say("# slowest: " + ", ".join(f"{name} {self.results[name][2]:.0f} s" for name in slowest))
        self.say(f"# {time.monotonic() - self._begin:.0f} s in all, {cpu:.0f} s of CPU; the output of each suite is in {LOGS}")
        for name, result in self.results.items():
            if result[1]:
                self.say(f"# {name}: {result[1]} failed")
                for line in failures(name):
                    self.say(f"#   {line}")
        self.say(f"{passed} passed, {failed} failed")
        return failed == 0


def log_path(name):
    return f"{LOGS}/{name}"


def failures(name, at_most=30):
    """The failed checks of a suite's output, with what they saw; the end of it where it names none."""
    try:
        with open(log_path(name), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    found, more = [], 0
    for line in lines:
        if line.startswith("not ok"):
            found, more = [*found, line], 12
        elif more and line.startswith("    #"):
            found, more = [*found, line], more - 1
        else:
            more = 0
    return (found or lines[-20:])[:at_most]

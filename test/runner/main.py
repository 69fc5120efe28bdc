"""main.py [OPTION...] [SUITE...]: see test/run.sh, which calls it once all packages are installed."""
import argparse
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True  # leaves nothing in the source tree

import changes  # noqa: E402
import plan  # noqa: E402
from report import Report  # noqa: E402
from run_suites import run_alone, run_in_guest  # noqa: E402
from suites import BUILD, CACHE, REPO, read_table  # noqa: E402


def parse(table):
    parser = argparse.ArgumentParser(prog="test/run.sh", formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False)
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--allow-skip", action="store_true")
    parser.add_argument("--no-changes", action="store_true")
    parser.add_argument("suites", nargs="*")
    options = parser.parse_args()
    if options.help:
        with open(f"{REPO}/test/run.sh", encoding="utf-8") as file:
            head = [line[2:].rstrip() for line in file.readlines()[1:] if line.startswith("#")]
        print("\n".join(head), "", *(f"  {s.name:<22} {s.tier:<8} {s.purpose}" for s in table.values()), sep="\n")
        sys.exit(0)
    for name in options.suites:
        if name not in table:
            parser.error(f"unknown suite '{name}'; test/run.sh --help lists them")
    return options


def set_environment(options):
    """What all suites read."""
    os.environ["RDMAQUOTA_BUILD"] = BUILD
    if options.all:
        os.environ["RDMAQUOTA_TIER"] = "all"
    if options.long:
        os.environ["RDMAQUOTA_LONG"] = "yes"
    os.environ.setdefault("RDMAQUOTA_SEED", str(random.randrange(1, 32768)))
    # Meson finds ccache: so what another tree has compiled, or an earlier clone, is not compiled again.
    os.environ.setdefault("CCACHE_DIR", f"{CACHE}/ccache")
    os.environ.update(CCACHE_BASEDIR=REPO, CCACHE_NOHASHDIR="yes", CCACHE_SLOPPINESS="pch_defines,time_macros")


class Lanes:
    """Two lanes, since there are two cores and a guest keeps one busy."""

    def __init__(self, report, allow_skip):
        self._report, self._allow_skip, self._lock = report, allow_skip, threading.Lock()

    def run(self, jobs, fits=lambda job: True):
        """Runs jobs in their order; returns those for which `fits` says no when their turn comes."""
        waiting, left_out = list(jobs), []

        def lane():
            while True:
                with self._lock:
                    if not waiting:
                        return
                    job = waiting.pop(0)
                    if not fits(job):
                        left_out.append(job)
                        continue
                self._run(job)

        def beside():  # what mostly waits: it leaves the lanes to those that work
            for job in idle:
                self._run(job)

        idle = [job for job in waiting if job.where == "beside"]
        waiting = [job for job in waiting if job not in idle]
        threads = [threading.Thread(target=lane) for _ in range(plan.LANES)] + [threading.Thread(target=beside)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return left_out

    def _run(self, job):
        try:
            if job.where in ("host", "beside", "own"):
                run_alone(job.names[0], self._report, self._allow_skip)
            else:
                run_in_guest(job.where, job.names, self._report, self._allow_skip)
        except Exception as error:  # a lane must not end without a word
            for name in set(job.names) - set(self._report.results):
                self._report.say(f"{name}: {type(error).__name__}: {error}")
                self._report.end(name, 0, 1, 0)


def added(table, names, options, report):
    """The suites that are added for what has changed."""
    if options.suites or options.all or options.no_changes:
        return []
    base = changes.base_commit()
    if not base:
        return []
    reasons = {name: path for name, path in changes.added_suites(changes.changed_files(base)).items()
               if name in table and name not in names}
    if reasons:
        report.say(f"# added for what has changed since {base[:12]}: " + ", ".join(f"{name} ({path})" for name, path in reasons.items()))
    return [table[name] for name in reasons]


def main():
    table = read_table()
    options = parse(table)
    set_environment(options)
    begin = time.monotonic()
    tiers = ("default", "all") if options.all else ("default",)
    chosen = [table[name] for name in dict.fromkeys(options.suites)] or [suite for suite in table.values() if suite.tier in tiers]
    estimates = {name: suite.seconds for name, suite in table.items()} | plan.last_times()
    report = Report(["build", *(suite.name for suite in chosen)], estimates)
    report.say(f"# seed {os.environ['RDMAQUOTA_SEED']} (RDMAQUOTA_SEED takes it again)")
    run_alone("build", report, False)
    if report.results["build"][1]:
        return not report.finish()
    lanes = Lanes(report, options.allow_skip)
    lanes.run(plan.jobs_of(chosen, estimates))
    more = added(table, report.results, options, report)
    minutes = float(os.environ.get("RDMAQUOTA_MINUTES", 20))
    jobs = sorted(plan.jobs_of(more, estimates), key=lambda job: job.seconds)
    left_out = lanes.run(jobs, lambda job: time.monotonic() - begin + job.seconds <= minutes * 60)
    if left_out:
        report.say(f"# not run, since more than {minutes:.0f} minutes would pass (RDMAQUOTA_MINUTES): "
                   + " ".join(name for job in left_out for name in job.names))
    plan.remember_times(report.results)
    passed = report.finish()
    if passed and not options.suites and not options.no_changes:
        changes.remember_proven()
    return not passed


if __name__ == "__main__":
    sys.exit(main())

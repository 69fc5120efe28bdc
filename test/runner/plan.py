"""Which suites run, in which order, and together with which others."""
import json
import os

from suites import CACHE

LAST_TIMES = f"{CACHE}/suite-seconds.json"  # seconds that each suite took when it last passed on this machine
BOOT_SECONDS = 25
GUEST_SECONDS = 240  # suites share a guest until they take about that long: two lanes are then busy to the end
LANES = int(os.environ.get("RDMAQUOTA_LANES", 2))


def last_times():
    try:
        with open(LAST_TIMES, encoding="utf-8") as file:
            return {name: float(seconds) for name, seconds in json.load(file).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def remember_times(results):
    times = last_times() | {name: round(result[2], 1) for name, result in results.items() if not result[1]}
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{LAST_TIMES}.new", "w", encoding="utf-8") as file:
        json.dump(times, file, indent=0, sort_keys=True)
    os.replace(f"{LAST_TIMES}.new", LAST_TIMES)


class Job:
    """Suites that run one after the other in one lane: several that share a guest, or one."""

    def __init__(self, where, names, seconds):
        self.where, self.names, self.seconds = where, names, seconds


def jobs_of(suites, estimates):
    """The longest first, so that the lanes end at about the same time. What shares a guest is split into boots of about
    GUEST_SECONDS. guard_degraded locks its kernel down, and guard unloads modules: they come last in their guest."""
    jobs, guests = [], {}
    for suite in suites:
        if not suite.shares_guest:
            boot = BOOT_SECONDS if suite.where == "own" else 0
            jobs.append(Job(suite.where, [suite.name], estimates[suite.name] + boot))
            continue
        guests.setdefault(suite.where, []).append(suite)
    for where, group in guests.items():
        jobs += split(where, group, estimates)
    return sorted(jobs, key=lambda job: -job.seconds)


BEFORE_INSTALLATION = ("uninstalled",)
ENDS_ITS_GUEST = ("guard", "guard_degraded")


def split(where, group, estimates):
    boots = max(1, round(sum(estimates[suite.name] for suite in group) / GUEST_SECONDS))
    boots = max(boots, sum(suite.name in ENDS_ITS_GUEST for suite in group))
    bins = [Job(where, [], BOOT_SECONDS) for _ in range(boots)]
    last = [suite for suite in group if suite.name in ENDS_ITS_GUEST]
    for suite, job in zip(last, bins):
        job.seconds += estimates[suite.name]
    for suite in sorted((suite for suite in group if suite not in last), key=lambda suite: -estimates[suite.name]):
        job = min(bins, key=lambda job: job.seconds)
        job.names.append(suite.name)
        job.seconds += estimates[suite.name]
    for job in bins:
        job.names.sort(key=lambda name: name not in BEFORE_INSTALLATION)
    for suite, job in zip(last, bins):
        job.names.append(suite.name)
    return [job for job in bins if job.names]

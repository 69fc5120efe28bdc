"""The suites: the table test/suites.txt, and the command that runs each. Nothing here starts a process."""
import os
from dataclasses import dataclass

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RDMAQUOTA_BUILD") or f"{REPO}/build"
CACHE = os.environ.get("RDMAQUOTA_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "rdmaquota")
INTEGRATION = f"{REPO}/test/integration"
GUEST = [f"{REPO}/test/vm/run.sh", "--timeout", "1800"]
PYTHON = "/usr/bin/python3"
RELEASES = ("trixie", "sid")
# What is set of these is handed on to guests.
HANDED_ON = ("RDMAQUOTA_TIER", "RDMAQUOTA_LONG", "RDMAQUOTA_SEED", "RDMAQUOTA_STEPS", "RDMAQUOTA_ROUNDS", "RDMAQUOTA_SECONDS",
             "RDMAQUOTA_PATIENCE")


@dataclass(frozen=True)
class Suite:
    name: str
    tier: str     # default, all, named
    where: str    # host, beside, own, or a guest that suites share: devices and number of CPUs
    seconds: float
    purpose: str

    @property
    def shares_guest(self):
        return self.where not in ("host", "beside", "own")


def read_table():
    """All suites by name, in the table's order."""
    suites = {}
    with open(f"{REPO}/test/suites.txt", encoding="utf-8") as file:
        for line in file:
            if not line.strip() or line.startswith("#"):
                continue
            name, tier, where, seconds, purpose = line.split(None, 4)
            suites[name] = Suite(name, tier, where, float(seconds), purpose.strip())
    return suites


def variables():
    """The options that hand variables on to a guest."""
    return [word for name in HANDED_ON if os.environ.get(name) for word in ("--env", f"{name}={os.environ[name]}")]


def in_guest(*words):
    return [*GUEST, *variables(), *words]


def in_kernel(suite):
    """NAME or NAME_RELEASE: test/integration/NAME_test.sh in a guest with the kernel of this machine's release or another."""
    name, _, release = suite.rpartition("_")
    kernel = ["--kernel", release] if release in RELEASES else []
    name = name if kernel else suite
    cpus = "2" if name == "guard_races" else "1"
    return in_guest(*kernel, "--cpus", cpus, "--install", "--", "bash", f"{INTEGRATION}/{name}_test.sh", BUILD)


def group_command(where, names):
    """Several suites in one guest; see test/vm/suites-in-guest.sh for what it prints."""
    devices, cpus = where.split("-")
    return [GUEST[0], "--timeout", str(1500 * len(names)), *variables(), "--stage", "--device", devices, "--cpus", cpus, "--",
            "bash", f"{REPO}/test/vm/suites-in-guest.sh", *names]


def command(name):
    """What runs a suite that shares no guest."""
    test, long = f"{REPO}/test", "--long" if os.environ.get("RDMAQUOTA_LONG") else ""
    thorough = os.environ.get("RDMAQUOTA_TIER") == "all"
    seed = os.environ["RDMAQUOTA_SEED"]
    helper = ["bash", f"{test}/runner/prepared.sh"]
    storm_seconds = "7200" if long else "60" if thorough else "20"
    commands = {
        "build": [*helper, "build", BUILD],
        "house": [PYTHON, f"{test}/house.py"],
        "unit": [*helper, "unit", BUILD],
        "provider": ["bash", f"{INTEGRATION}/provider_test.sh", BUILD],
        "cli": ["bash", f"{INTEGRATION}/cli_test.sh", BUILD],
        "persist": ["bash", f"{INTEGRATION}/persist_test.sh", BUILD],
        "policy": ["bash", f"{INTEGRATION}/policy_test.sh", BUILD],
        "service": [PYTHON, f"{INTEGRATION}/service_test.py", BUILD],
        "scrape": [PYTHON, f"{INTEGRATION}/scrape_test.py", BUILD],
        "service_hostile": [PYTHON, f"{INTEGRATION}/service_hostile_test.py", BUILD],
        "cluster_sim": [f"{BUILD}/test/cluster/cluster_sim", "--seeds", "500000" if long else "10000"],
        "cluster_mutants": ["bash", f"{test}/cluster/mutants.sh", BUILD],
        "cluster": [PYTHON, f"{INTEGRATION}/cluster_test.py", BUILD],
        "web": [PYTHON, f"{INTEGRATION}/web_test.py", BUILD],
        "web_axe": ["bash", f"{INTEGRATION}/web_axe.sh", BUILD],
        "storm": [f"{BUILD}/test/storm/storm", "--seconds", storm_seconds, "--seed", seed],
        "model": ["bash", f"{test}/model/run.sh", *([long] if long else [])],
        "sanitize": ["bash", f"{test}/sanitize/run.sh"],
        "fuzz": ["bash", f"{test}/fuzz/run.sh", *(["1800"] if long else [])],
        "clang": [*helper, "clang", f"{BUILD}-clang"],
        "demo": ["bash", f"{INTEGRATION}/demo_test.sh"],
        "metrics": [*helper, "metrics", BUILD],
        "systemd": in_guest("--systemd", "--", "bash", f"{INTEGRATION}/systemd_test.sh", BUILD),
        "hardened": in_guest("--systemd", "--install", "--", "bash", f"{INTEGRATION}/hardened_test.sh", BUILD),
        "guard_no_lsm": in_guest("--argument", "lsm=lockdown,capability,yama", "--install", "--", "bash",
                                 f"{INTEGRATION}/guard_smoke_test.sh", BUILD),
        "trixie": [*helper, "root", BUILD, "trixie", "34"],
        "sid": [*helper, "root", BUILD, "sid", "65"],
        "containers": [*helper, "containers", BUILD],
        "slurm": [*helper, "slurm", BUILD],
        "packages": ["bash", f"{test}/packages/run.sh"],
        "rpm": ["bash", f"{test}/packages/rpm.sh"],
        "kubernetes": ["bash", f"{test}/kubernetes/run.sh"],
        "kubernetes_node": ["bash", f"{test}/kubernetes/node_test.sh", BUILD],
        "vm": ["bash", f"{test}/vm/selftest.sh"],
    }
    return commands.get(name) or in_kernel(name)

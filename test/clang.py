#!/usr/bin/python3
"""clang.py BUILD: whether clang has a warning for a source of the product. BUILD becomes a build by clang."""
import os
import re
import shutil
import subprocess
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def said_by(command, **more):
    """What a command prints that fails, and its status; nothing when it succeeds."""
    run = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False, **more)
    if not run.returncode:
        return ""
    steps = re.compile(r"\[\d+/\d+\] ")
    rest = "".join(line for line in run.stdout.splitlines(keepends=True) if not steps.match(line))
    return f"{rest}{command[0]} ended with status {run.returncode}\n"


def check(build):
    """All sources, and the BPF program for this machine."""
    if not os.path.exists(f"{build}/build.ninja"):
        setup = ["meson", "setup", build, REPO, "-Dtests=false", "-Doptimization=0", "-Ddebug=false",
                 "-Db_pch=false", "--werror"]  # clang's precompiled headers name the tree that they are of
        cache = "ccache " if shutil.which("ccache") else ""
        said = said_by(setup, env={**os.environ, "CC": f"{cache}clang", "CXX": f"{cache}clang++"})
        if said:
            return said
    jobs = os.environ.get("RDMAQUOTA_JOBS")
    return said_by(["ninja", "-C", build, "-k", "0", *(["-j", jobs] if jobs else [])])


def check_bpf(arch):
    """The BPF program, compiled for another architecture, whose headers are not here."""
    multiarch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    return said_by(
        ["clang", "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{arch}",
         "-include", f"{REPO}/test/registers_{arch}.h", "-I", REPO, "-idirafter", f"/usr/include/{multiarch}",
         "-c", f"{REPO}/tools/rdmaquotad/kernel/bpf/kernel_counts.bpf.c", "-o", "/dev/null"])


if __name__ == "__main__":
    found = check(sys.argv[1]) + check_bpf("arm64")
    print(found, end="")
    sys.exit(1 if found else 0)

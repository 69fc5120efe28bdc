#!/usr/bin/python3
"""clang.py BUILD: whether clang has a warning for a source of the product.

It reads them and makes no code, which takes half as long as a build. BUILD gets the sources that are generated, and the
headers that are compiled before.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GENERATED = re.compile(r"(\S+\.(?:pch|h|cpp)): ")


def set_up(build):
    """Meson's build directory for clang, with all headers."""
    if not os.path.exists(f"{build}/build.ninja"):
        subprocess.run(["meson", "setup", build, REPO, "-Dtests=false", "-Doptimization=0", "-Ddebug=false", "--werror"],
                       env={**os.environ, "CC": "clang", "CXX": "clang++"}, stdout=subprocess.DEVNULL, check=True)
    targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True, check=True)
    subprocess.run(["ninja", "-C", build, *GENERATED.findall(targets.stdout)], stdout=subprocess.DEVNULL, check=True)


def check(entry):
    """What clang says of one source; nothing when it is content."""
    words = shlex.split(entry["command"])
    words = words[words[0] == "ccache":]
    words[words.index("-c")] = "-fsyntax-only"
    for option in ("-o", "-MF", "-MQ"):
        at = words.index(option)
        del words[at:at + 2]
    words.remove("-MD")
    found = subprocess.run(words, cwd=entry["directory"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
                           check=False)
    return found.stdout + (f"{entry['file']}: clang ended with status {found.returncode}\n" if found.returncode else "")


def check_bpf(arch):
    """What clang says of the BPF program, compiled for another architecture, whose headers are not here."""
    multiarch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    found = subprocess.run(
        ["clang", "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{arch}",
         "-include", f"{REPO}/test/registers_{arch}.h", "-I", REPO, "-idirafter", f"/usr/include/{multiarch}",
         "-c", f"{REPO}/tools/rdmaquotad/kernel/bpf/kernel_counts.bpf.c", "-o", "/dev/null"],
        stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout + (f"the BPF program for {arch}: clang ended with status {found.returncode}\n" if found.returncode else "")


def main():
    """Reads every source that Meson compiles, and the BPF program for arm64."""
    build = sys.argv[1]
    set_up(build)
    with open(f"{build}/compile_commands.json", encoding="utf-8") as database:
        entries = [entry for entry in json.load(database) if not entry["file"].endswith(".pch")]
    jobs = int(os.environ.get("RDMAQUOTA_JOBS") or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        said = "".join(pool.map(check, entries)) + check_bpf("arm64")
    print(f"{len(entries)} sources\n{said}", end="")
    return bool(said) or not entries


if __name__ == "__main__":
    sys.exit(main())

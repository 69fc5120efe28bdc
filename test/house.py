"""house.py: what holds of the source tree as a whole. Needs no build. Prints 'ok - NAME' or 'not ok - NAME' with the
places; the last line is 'N passed, N failed'."""

import os
import re
import sys

sys.dont_write_bytecode = True  # leaves nothing in the source tree
from commands import foreign_programs  # noqa: E402
from documents import wrong_blocks  # noqa: E402
from signals import bare_signals  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRODUCT = ("policy", "shm", "provider", "tools")
LONGEST = 400  # lines of a file; tests may be longer
LONGEST_NEWS = 60  # lines of the newest section of CHANGELOG.md

# Each room and the rooms that its files may include, besides itself. A file is in the longest room that its path begins
# with. Dependencies point one way: policy <- shm <- provider, tools.
MAY_INCLUDE = {
    "policy": (),
    "policy/file": ("policy",),
    "shm": ("policy",),
    "provider": ("shm", "policy"),
    "tools/common": ("policy/file", "shm", "policy"),
    "tools/rdmaquota": ("tools/common", "tools/slurm", "policy/file", "shm", "policy"),
    "tools/slurm": ("policy",),
    "tools/cluster/core": ("tools/common", "shm", "policy"),
    "tools/cluster/wire": ("tools/cluster/core", "tools/common", "policy"),
    "tools/cluster/etcd": ("tools/cluster/wire", "tools/cluster/core", "policy"),
    "tools/cluster/coordinator": ("tools/cluster/etcd", "tools/cluster/wire", "tools/cluster/core", "tools/common", "policy"),
    "tools/cluster/agent": ("tools/cluster/wire", "tools/cluster/core", "tools/common", "shm", "policy"),
}
# The sidecar's rooms, each with those that it may include; daemon.cpp and main.cpp are their only roof.
SIDECAR = {
    "loop": (),
    "kernel": ("loop",),
    "node": ("kernel", "loop"),
    "bypass": ("node", "kernel", "loop"),
    "dynamic": ("node", "kernel", "loop"),
    "grants": ("node", "loop"),
    "serve": ("node", "loop"),
    "guard": ("bypass", "node", "kernel", "loop"),
    "history": ("serve", "node", "loop"),
    "metrics": ("serve", "guard", "dynamic", "bypass", "node", "kernel", "loop"),
    "web": ("serve", "history", "dynamic", "bypass", "node", "loop"),
}
BELOW_SIDECAR = ("tools/common", "policy/file", "shm", "policy")
for sidecar_room, others in {**SIDECAR, "": tuple(SIDECAR)}.items():
    MAY_INCLUDE[f"tools/rdmaquotad/{sidecar_room}".rstrip("/")] = (*(f"tools/rdmaquotad/{other}" for other in others), *BELOW_SIDECAR)
SOURCES = (".c", ".cpp", ".h", ".hpp")
GENERATED = (".skel.h", "recipes.hpp", ".pb.h")


def product_files(tops=PRODUCT):
    for top in tops:
        for directory, _, names in os.walk(os.path.join(ROOT, top)):
            for name in sorted(names):
                yield os.path.relpath(os.path.join(directory, name), ROOT)


def lines_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().splitlines()


def room_of(path):
    return max((room for room in MAY_INCLUDE if path.startswith(room + "/")), key=len, default=None)


def included(path, name):
    """The file of this project that an `#include` of `name` in `path` means, which may be generated; else None."""
    for directory in (os.path.dirname(path), ""):
        candidate = os.path.normpath(os.path.join(directory, name))
        if os.path.isfile(os.path.join(ROOT, candidate)):
            return candidate
    return name if room_of(name) else None


def problem_of_include(path, name):
    target = included(path, name)
    if not target:
        return "" if name.endswith(GENERATED) else "no such file"
    room, other = room_of(path), room_of(target)
    if other == room or other in MAY_INCLUDE.get(room, ()):
        return ""
    return f"{room or path} may not depend on {other or target}"


def wrong_includes():
    for path in product_files():
        if not path.endswith(SOURCES):
            continue
        for number, line in enumerate(lines_of(path), 1):
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            # Of the names in angle brackets, those that lie in a room are ours as well.
            if match and ('"' in line or included(path, match[1])):
                problem = problem_of_include(path, match[1])
                if problem:
                    yield f"{path}:{number}: {match[1]}: {problem}"


def folders_without_build():
    for folder in sorted({os.path.dirname(path) for path in product_files() if path.endswith(SOURCES)}):
        # A precompiled header needs a folder of its own, and is built where it is used.
        if os.path.basename(folder) != "pch" and not os.path.isfile(os.path.join(ROOT, folder, "meson.build")):
            yield f"{folder} has no meson.build"


def files_outside_rooms():
    for path in product_files():
        if path.endswith(SOURCES) and not room_of(path):
            yield f"{path} is in no room"


def long_files():
    for path in product_files():
        length = len(lines_of(path))
        if length > LONGEST:
            yield f"{path} has {length} lines"


def throwing_loops():
    """A range-for over a directory_iterator throws at `++`, whatever its constructor was given."""
    for path in product_files():
        for number, line in enumerate(lines_of(path) if path.endswith(SOURCES) else (), 1):
            if re.search(r"\bfor \([^;]* : [^;]*\bdirectory_iterator\b", line):
                yield f"{path}:{number}: use directory_names"


def kinds_of_events():
    """rdmaquota-events(1) describes what tools/common/events/event_kinds.hpp lists, and nothing else."""
    listed = set()
    for block in re.findall(r"_kinds\{(.*?)\};", "\n".join(lines_of("tools/common/events/event_kinds.hpp")), re.S):
        listed |= set(re.findall(r'"([a-z_]+)"', block))
    page = "\n".join(lines_of("rdma-core.d/man/rdmaquota-events.1.in"))
    section = page[page.index(".SH KINDS"):page.index(".SH EXIT STATUS")]
    described = set(re.findall(r"^\.TP\n\.B ([a-z_]+)$", section, re.M))
    if not listed:
        yield "tools/common/events/event_kinds.hpp lists none"
    yield from (f"the kind '{name}' is not in rdmaquota-events(1)" for name in sorted(listed - described))
    yield from (f"rdmaquota-events(1) has a kind '{name}' that there is not" for name in sorted(described - listed))


def recipes():
    """docs/recipes.md shows each policy of rdma-core.d/recipes as it is installed, and `rdmaquota init` knows it."""
    page = "\n".join(lines_of("docs/recipes.md")) + "\n"
    known = "\n".join(lines_of("tools/rdmaquota/propose/recipe.cpp"))
    for name in sorted(os.listdir(os.path.join(ROOT, "rdma-core.d/recipes"))):
        text = "\n".join(lines_of(f"rdma-core.d/recipes/{name}"))
        if f"```toml\n{text}\n```" not in page:
            yield f"docs/recipes.md does not show {name} as it is"
        if f'{{"{name.removesuffix(".toml")}", ' not in known:
            yield f"'rdmaquota init' does not know {name}"


def metrics():
    """docs/prometheus.md describes each figure of tools/rdmaquotad/metrics/metrics.cpp; alerts and dashboard use no other."""
    pattern = r"\b(?:rdmaquota|process)_[a-z_]+(?:_[a-z]+)*\b"
    written = set(re.findall(rf'"({pattern})"', "\n".join(lines_of("tools/rdmaquotad/metrics/metrics.cpp"))))
    described = set(re.findall(rf"`({pattern})`", "\n".join(lines_of("docs/prometheus.md"))))
    if not written:
        yield "tools/rdmaquotad/metrics/metrics.cpp has none"
    yield from (f"{name} is not in docs/prometheus.md" for name in sorted(written - described))
    yield from (f"docs/prometheus.md has {name}, which there is not" for name in sorted(described - written))
    for path in ("rdma-core.d/prometheus/rdmaquota.rules.yml", "rdma-core.d/grafana/rdmaquota.json"):
        for name in sorted(set(re.findall(pattern, "\n".join(lines_of(path)))) - written):
            yield f"{path} asks for {name}, which there is not"


def version():
    """meson.build alone names the version; CHANGELOG.md's newest section is the version's or unreleased, and is short."""
    found = re.search(r"^  version: '([\d.]+)',$", "\n".join(lines_of("meson.build")), re.M)[1]
    newest = re.search(r"^## \[(.*?)\](.*?)^## ", "\n".join(lines_of("CHANGELOG.md")), re.M | re.S)
    if newest[1] not in ("Unreleased", found):
        yield f"CHANGELOG.md begins with {newest[1]}, meson.build has {found}"
    if newest[2].count("\n") > LONGEST_NEWS:
        yield f"CHANGELOG.md's newest section has more than {LONGEST_NEWS} lines; what changed in detail is in the next one"
    for path in ("README.md", "CONTRIBUTING.md", *product_files((*PRODUCT, "rdma-core.d", "docs", "debian"))):
        for number, line in enumerate(() if path.endswith(".png") else lines_of(path), 1):
            if re.search(rf"(?<![\d.]){re.escape(found)}(?![\d.])", line):
                yield f"{path}:{number} repeats the version of meson.build"
    for path in sorted(os.listdir(os.path.join(ROOT, "rdma-core.d/man"))):
        if path.endswith(".in") and '"rdmaquota @version@"' not in lines_of(f"rdma-core.d/man/{path}")[0]:
            yield f"rdma-core.d/man/{path} has no version in its first line"


def map_of_the_source():
    """docs/source-map.md has each folder of sources among its rooms, and names no file or folder that is not there."""
    text = "\n".join(lines_of("docs/source-map.md"))
    for folder in sorted({os.path.dirname(path) for path in product_files() if path.endswith(SOURCES)}):
        if os.path.basename(folder) not in ("pch", "bpf") and f"| `{folder}/` |" not in text:
            yield f"{folder}/ is not among the rooms of docs/source-map.md"
    for path in sorted(set(re.findall(r"`([\w.-]+/[\w./-]*)`", text))):
        is_ours = os.path.isdir(os.path.join(ROOT, path.split("/")[0])) and not re.search(r"[A-Z]{4,}", path)
        if is_ours and not path.startswith("build/") and not os.path.exists(os.path.join(ROOT, path)):
            yield f"docs/source-map.md names {path}, which there is not"


def main():
    checks = (
        ("dependencies between rooms point one way", wrong_includes),
        ("every source is in a room", files_outside_rooms),
        ("every folder of sources has a meson.build", folders_without_build),
        ("no loop over a directory can throw", throwing_loops),
        (f"no file of the product has more than {LONGEST} lines", long_files),
        ("every kind of event is in rdmaquota-events(1)", kinds_of_events),
        ("every figure for Prometheus is in docs/prometheus.md", metrics),
        ("docs/recipes.md shows each recipe as it is installed", recipes),
        ("YAML, TOML and JSON in docs/ can be applied", lambda: wrong_blocks(ROOT)),
        ("docs/source-map.md is the map of the source", map_of_the_source),
        ("the version stands in meson.build alone, and CHANGELOG.md's newest section is short", version),
        ("what scripts and tests call is installed by tools/setup.sh", lambda: foreign_programs(ROOT)),
        ("tests signal nothing but processes that they have", lambda: bare_signals(ROOT)),
    )
    failed = 0
    for name, check in checks:
        problems = list(check())
        failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} - {name}")
        for problem in problems:
            print(f"    # {problem}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

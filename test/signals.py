"""Which tests and tools send signals without a look at the pid: 0 would mean the whole test run, -1 every process of the
machine. For house.py."""

import os
import re

# test/processes.hpp looks itself, as do these C programs.
LOOK_THEMSELVES = ("test/processes.hpp", "test/bench/verbs_death.c", "test/programs/forker.c")
# These signal only what the shell's $! gave, or run as process 1 of the guest.
KNOWN_PIDS = ("test/bench/guest.sh", "test/bench/guest_guard.sh", "test/vm/guest-init", "test/vm/native.sh", "test/vm/qemu.sh", "test/vm/selftest.sh")
BY_C = re.compile(r"(?<![\w.>])(?:::)?(?:std::)?kill(?:pg)?\s*\(")
BY_SHELL = re.compile(r"(?:^|[;|&{(]|\b(?:then|do|else|trap|if|until|while|!)\s)\s*[\"']?(?:builtin )?kill\s+[-\"$%0-9]")
GUARDED_SHELL = re.compile(r"^\. .*/(?:processes|tap|guest)\.sh\b|^# .*sourced after tap\.sh", re.M)


def files(root):
    for directory, _, names in os.walk(os.path.join(root, "test")):
        yield from (os.path.relpath(os.path.join(directory, name), root) for name in sorted(names))


def text_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_shell(path, text):
    return path.endswith(".sh") or re.match(r"#!.*\bsh\b|#!.*\bbash\b", text) is not None


def bare_signals(root):
    """Yields PATH:LINE of each call that may reach a pid below 1."""
    for path in files(root):
        if path in LOOK_THEMSELVES + KNOWN_PIDS or path == "test/processes.sh":
            continue
        text = text_of(root, path)
        if path.endswith((".c", ".cpp", ".h", ".hpp")):
            found = BY_C
        elif is_shell(path, text) and not GUARDED_SHELL.search(text):
            found = BY_SHELL
        else:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if found.search(line.split("//")[0]):
                yield f"{path}:{number}: {line.strip()}"

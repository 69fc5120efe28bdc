#!/usr/bin/env python3
"""manual_options.py RDMAQUOTA MAN_DIRECTORY: prints each option that a command's --help has and its man page has not, and
the other way round. Nothing: they agree."""

import pathlib
import re
import subprocess
import sys

binary, manual = sys.argv[1], pathlib.Path(sys.argv[2])
everywhere = {"--help", "--version", "--dir"}


def help_of(*command):
    return subprocess.run([binary, *command, "--help"], capture_output=True, text=True, check=True).stdout


def section(text, head):
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith(head)), len(lines))
    end = next((i for i in range(begin + 1, len(lines)) if not lines[i].strip()), len(lines))
    return [line.split()[0] for line in lines[begin + 1 : end] if re.match(r"  \S", line)]


def options(*command):
    found = set(re.findall(r"--[a-z][a-z-]*", " ".join(section(help_of(*command), "Options:"))))
    for below in section(help_of(*command), "Subcommands:"):
        found |= options(*command, below)
    return found - everywhere


def documented(page):
    text = (manual / f"{page}.1.in").read_text().replace("\\-", "-")
    own = text[: text.find(".SH SEE ALSO")]
    tagged = "\n".join(re.findall(r"^\.TP\n(.*)$", own, re.M))
    return set(re.findall(r"--[a-z][a-z-]*", tagged)) - everywhere


commands = section(help_of(), "Subcommands:")
assert len(commands) > 15, commands
for command in commands:
    told, written = options(command), documented(f"rdmaquota-{command}")
    for option in sorted(told - written):
        print(f"rdmaquota-{command}(1) lacks {option}")
    for option in sorted(written - told):
        print(f"rdmaquota {command} --help lacks {option}")

"""Which programs scripts and tests call, and whether a fresh Debian has them once tools/setup.sh has run: a program that happens to
be on a developer's machine would hide a missing package."""
import os
import re
import subprocess

SCRIPTS = ("tools", "test", ".ci")
KEYWORDS = set("if then else elif fi for do done while until case esac in function select time { } ! [[ ]] [ coproc".split())
BUILTINS = set(subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True).stdout.split())
# Programs that are called where they need not come from a package of tools/setup.sh, and why.
EXCUSED = {
    "git": "README asks for it", "man": "test/packages/cycle.sh runs in a root that has it", "reboot": "busybox has it in the guest",
    "node": "test/kubernetes/run.sh asks for it", "npm": "test/kubernetes/run.sh asks for it, and test/integration/web_axe.sh",
    "valgrind": "test/bench/instructions.sh asks for it", "file": "test/packages/arm64.sh installs it",
    "red": "a tenant's name",
}
PYTHON_CALL = re.compile(r"""(?:\[|\brun\(|\bPopen\()\s*["']([a-z][a-z0-9_.+-]+)["']\s*[,\]]""")
COMMAND = re.compile(r"""(?:^|[;&|(`]|\$\(|&&|\|\||\bthen\b|\bdo\b|\belse\b|\bif\b|\bwhile\b|\buntil\b|!|\bexec\b|\{)\s*
                         (?:[A-Za-z_]\w*=\S*\s+)*([a-z][a-z0-9_.+-]*)(?=\s|$|;|\))""", re.X)


def shell_files(root):
    for top in SCRIPTS:
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    if file.read(64).startswith((b"#!/bin/bash", b"#!/bin/sh", b"#!/usr/bin/env bash")) or name.endswith(".sh"):
                        yield path


def python_files(root):
    for top in SCRIPTS:
        for directory, _, names in os.walk(os.path.join(root, top)):
            yield from (os.path.join(directory, name) for name in sorted(names) if name.endswith(".py"))


def code_of(path):
    """A script's lines without comments, here-documents and quoted text, in which words are no commands."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?\n\s*\2\n", "\n", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"(^|\s)#[^\n]*", r"\1", text)
    text = re.sub(r"'[^']*'", "QUOTED", text, flags=re.S)
    text = re.sub(r'"(?:\\.|\$\((?:[^()]|\([^()]*\))*\)|[^"\\])*"', lambda match: " ".join(re.findall(r"\$\([^()]*\)", match[0])) or "QUOTED", text,
                  flags=re.S)
    text = re.sub(r"\bcase\b[^\n]*\bin\b|^\s*[^\s()]+(?:\s*\|\s*[^\s()|]+)*\)", "\n", text, flags=re.M)
    return re.sub(r"=\(.*?\)", "=QUOTED", text, flags=re.S)


def called(root):
    """Words in the place of a command, each with a file that has it; without functions and what the shell does itself. A word may be
    none of a command: who asks looks whether there is a program of that name."""
    words, functions = {}, set()
    for path in python_files(root):
        with open(path, encoding="utf-8") as file:
            for word in PYTHON_CALL.findall(file.read()):
                words.setdefault(word, os.path.relpath(path, root))
    for path in shell_files(root):
        code = code_of(path)
        functions |= set(re.findall(r"^\s*([\w-]+)\s*\(\)", code, re.M))
        for line in code.splitlines():
            for word in COMMAND.findall(line):
                words.setdefault(word, os.path.relpath(path, root))
    return {word: path for word, path in words.items() if word not in functions | KEYWORDS | BUILTINS and word not in EXCUSED}


def installed_packages(root):
    """What setup.sh names, what is essential or required in each Debian, and all that these depend on."""
    with open(os.path.join(root, "tools/setup.sh"), encoding="utf-8") as file:
        listed = re.search(r"packages=\((.*?)\n\)", file.read(), re.S)[1]
    packages = set(re.sub(r"#[^\n]*", "", listed).split())
    fields = "${Package}\t${Essential}\t${Priority}\t${Depends}, ${Pre-Depends}\t${Provides}\n"
    depends, providers = {}, {}
    for line in subprocess.run(["dpkg-query", "-W", "-f", fields], capture_output=True, text=True, check=True).stdout.splitlines():
        name, essential, priority, needs, provides = line.split("\t")
        depends[name] = [re.sub(r"[\s:(].*", "", one.strip()) for group in needs.split(",") for one in group.split("|")]
        for virtual in provides.split(","):
            providers.setdefault(re.sub(r"[\s(].*", "", virtual.strip()), set()).add(name)
        if essential == "yes" or priority == "required":
            packages.add(name)
    found, left = set(), list(packages)
    while left:
        name = left.pop()
        if name in found or not name:
            continue
        found.add(name)
        left += depends.get(name, []) + list(providers.get(name, ()) if name not in depends else ())
    return found


def foreign_programs(root):
    """Programs of this machine that are called and that belong to no package which a fresh Debian has after tools/setup.sh. What this
    machine lacks, too, need not be found here: it fails where it is called."""
    words, packages = called(root), installed_packages(root)
    paths = {f"{directory}/{word}": word for word in words for directory in ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
             if os.path.exists(f"{directory}/{word}")}
    owners = {}
    for line in subprocess.run(["dpkg-query", "-S", *paths], capture_output=True, text=True, check=False).stdout.splitlines():
        names, _, path = line.rpartition(": ")
        if path in paths:
            owners.setdefault(paths[path], set()).update(name.split(":")[0] for name in names.split(", "))
    for word in sorted(owners):
        if not owners[word] & packages:
            yield f"{words[word]} calls {word}, of package {', '.join(sorted(owners[word]))}, which tools/setup.sh does not install"

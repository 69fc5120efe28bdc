"""What a change could break: which files differ from the commit that was last proven, and the suites that test/changes.txt adds
for them."""
import os
import re
import subprocess

from suites import CACHE, REPO

PROVEN = f"{CACHE}/proven"  # the commit of the last complete run that passed


def git(*words):
    run = subprocess.run(["git", "-C", REPO, *words], capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else ""


def base_commit():
    """The proven commit where HEAD descends from it, else the last one that is older than two days; '' where none is known."""
    try:
        with open(PROVEN, encoding="utf-8") as file:
            proven = file.read().strip()
    except OSError:
        proven = ""
    if proven and git("merge-base", proven, "HEAD") == proven:
        return proven
    return git("rev-list", "-1", "--before=2 days ago", "HEAD")


def changed_files(base):
    """Paths that differ between `base` and the working tree, new files among them."""
    return sorted({*git("diff", "--name-only", base).split("\n"), *git("ls-files", "--others", "--exclude-standard").split("\n")} - {""})


def rules():
    with open(f"{REPO}/test/changes.txt", encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, _, names = line.rpartition(" : ")
                yield re.compile(pattern.strip()), names.split()


def added_suites(files):
    """For each suite that the rules add, the first changed file that is the reason."""
    reasons = {}
    for pattern, names in rules():
        reason = next((path for path in files if pattern.search(path)), None)
        for name in names if reason else ():
            reasons.setdefault(name, reason)
    return reasons


def remember_proven():
    """Call after a complete run that passed. A tree with uncommitted changes proves no commit."""
    head = git("rev-parse", "HEAD")
    if head and not git("status", "--porcelain"):
        os.makedirs(CACHE, exist_ok=True)
        with open(f"{PROVEN}.new", "w", encoding="utf-8") as file:
            file.write(head + "\n")
        os.replace(f"{PROVEN}.new", PROVEN)

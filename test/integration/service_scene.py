"""What the suites of the sidecar's service share: a working directory that all users can reach, with a quota directory in it, and
checks that are counted. Exits with 77 where the build has no rdmaquotad. The build directory is the program's first argument."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from waiting import eventually  # noqa: E402, F401

build = os.path.realpath(sys.argv[1])
here = os.path.dirname(os.path.realpath(__file__))
rdmaquota = f"{build}/tools/rdmaquota/rdmaquota"
rdmaquotad = f"{build}/tools/rdmaquotad/rdmaquotad"
if not os.path.exists(rdmaquotad):
    print("SKIP: this build has no rdmaquotad; see -Dsidecar", file=sys.stderr)
    sys.exit(77)

work = tempfile.mkdtemp()
os.chmod(work, 0o755)
os.chdir(work)
directory = f"{work}/quota"
control = f"{directory}/control.sock"
environment = dict(os.environ, RDMAQUOTA_DIR=directory, LC_ALL="C.UTF-8", TZ="UTC")
counts = {True: 0, False: 0}


def check(name, condition, seen=""):
    counts[bool(condition)] += 1
    print(("ok - " if condition else "not ok - ") + name)
    if not condition:
        for line in str(seen).splitlines():
            print(f"    # {line}")


def finish():
    """Removes the working directory, and exits with the counts."""
    shutil.rmtree(work, ignore_errors=True)
    print(f"{counts[True]} passed, {counts[False]} failed")
    sys.exit(0 if counts[False] == 0 else 1)

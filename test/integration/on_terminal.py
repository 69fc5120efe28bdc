#!/usr/bin/env python3
"""on_terminal.py COMMAND...: runs it on a terminal of 80 by 24, presses q after a second, prints what it wrote as text
without colours, and fails when a line is wider than 80."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

columns, rows = 80, 24
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
program = subprocess.Popen(sys.argv[1:], stdin=theirs, stdout=theirs, env=os.environ | {"TERM": "xterm"})
os.close(theirs)

written, press_at, end = b"", time.monotonic() + 1, time.monotonic() + 30
while time.monotonic() < end:
    if press_at is not None and time.monotonic() >= press_at:
        os.write(ours, b"q")
        press_at = None
    if not select.select([ours], [], [], 0.1)[0]:
        continue
    try:
        more = os.read(ours, 65536)
    except OSError:  # the program has ended
        break
    if not more:
        break
    written += more
status = program.wait(10)

text = written.decode(errors="replace")
text = re.sub(r"\x1b\[[0-9;?]*H", "\n", text)
text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
print(text)
wide = [line for line in text.split("\n") if len(line) > columns]
for line in wide:
    print(f"{len(line)} columns: {line}", file=sys.stderr)
sys.exit(status if not wide else 99)

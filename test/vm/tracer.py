#!/usr/bin/env python3
"""tracer.py DIR CONTROL MONITOR LOG: has QEMU write down which instructions the guest executes, for `run.sh --trace DIR`.

CONTROL is the socket of the guest's second serial port. A line there, "begin NAME" or "end", is done by QEMU's MONITOR, and then
answered by a line. DIR/NAME gets a line for each address: how often it was executed, in hexadecimal what it is.
"""

import os
import socket
import sys
import time
from collections import Counter


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    while True:
        try:
            connection.connect(path)
            return connection
        except OSError:
            time.sleep(0.05)


class Monitor:
    """Each command is done when the next prompt comes."""

    prompt = b"(qemu) "

    def __init__(self, path):
        self.connection = connect(path)
        self.wait()

    def wait(self):
        said = b""
        while not said.endswith(self.prompt):
            more = self.connection.recv(4096)
            if not more:
                sys.exit("tracer.py: the guest has ended")
            said += more

    def do(self, *commands):
        for command in commands:
            self.connection.sendall(command.encode() + b"\n")
            self.wait()


def count(log, path):
    """Of "Trace 0: 0x7f1b [0000000000000000/ffffffff81c00ef0/18c0c2b0/ff020201]", each instruction a line."""
    addresses = Counter()
    with open(log) as lines:
        for line in lines:
            if line.startswith("Trace"):
                addresses[line.split("/", 2)[1]] += 1
    os.truncate(log, 0)
    with open(path, "w") as file:
        file.writelines(f"{times} {address}\n" for address, times in addresses.items())


def main():
    directory, control, monitor, log = sys.argv[1:]
    guest, qemu, name = connect(control), Monitor(monitor), ""
    for line in guest.makefile():
        word, _, rest = line.strip().partition(" ")
        if word == "begin":
            name = rest
            qemu.do("singlestep on", "log exec,nochain")
        elif word == "end":
            qemu.do("log none", "singlestep off")
            count(log, os.path.join(directory, os.path.basename(name)))
        guest.sendall(b"\n")


main()

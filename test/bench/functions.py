#!/usr/bin/env python3
"""functions.py PREFIX OBJECT PAIRS COMMAND...: the instructions that each function takes of a pair, by callgrind.

COMMAND is run for so many pairs and for twice as many, a word {} of it being their number; the difference leaves out what
else it does. Functions of files whose names contain OBJECT are told apart, by names without types and arguments, the rest is
"elsewhere". Prints "PREFIX.FUNCTION INSTRUCTIONS" lines.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter


def short_name(name):
    """Of ibv_qp* rdmaquota::provider::(anonymous namespace)::create<1>(int): create"""
    if name.startswith("_Z"):  # a part or a copy of a function, which callgrind leaves as it is
        name = subprocess.run(["c++filt", name], stdout=subprocess.PIPE, text=True).stdout.strip()
    name = name.replace("(anonymous namespace)", "").replace("operator()", "lambda")
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)) != name:
        name = shorter
    words = name.split("[")[0].split("'")[0].strip().removesuffix(" const").split(" ")[-1].split("::")
    return "::".join(word for word in words if word not in ("", "rdmaquota", "provider", "bench"))


class Names:
    """callgrind writes "(ID) NAME" once, and "(ID)" from then on."""

    def __init__(self):
        self.by_id = {}

    def of(self, text):
        number, _, name = text.partition(" ")
        return self.by_id.setdefault(number, name)


def own_costs(path, wanted):
    costs, objects, functions = Counter(), Names(), Names()
    of_object = function = ""
    is_callee = False
    with open(path) as file:
        for line in map(str.rstrip, file):
            key, _, value = line.partition("=")
            if key in ("ob", "cob"):
                name = objects.of(value)
                of_object = name if key == "ob" else of_object
            elif key in ("fn", "cfn"):
                name = functions.of(value)
                function = name if key == "fn" else function
            elif key == "calls":
                is_callee = True  # the next line is what the callee took
            elif line[:1] in "+-*0123456789" and line:
                if not is_callee:
                    costs[short_name(function) if wanted in of_object else "elsewhere"] += int(line.split()[1])
                is_callee = False
    return costs


def count(command, pairs, wanted):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "out")
        words = [str(pairs) if word == "{}" else word for word in command]
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + path] + words,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "valgrind failed")
        return own_costs(path, wanted)


def main():
    prefix, wanted, pairs, *command = sys.argv[1:]
    pairs = int(pairs)
    few, many = (count(command, times * pairs, wanted) for times in (1, 2))
    many.subtract(few)
    for name, cost in many.most_common():
        if cost >= pairs / 2:
            print(f"{prefix}.{name} {cost / pairs:.1f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""traced.py PREFIX DIR PAIRS: what the sidecar's program and the guard take of a pair, function by function, from what
guest_guard.sh had traced: the BPF programs, and the kernel's functions that they, and only they or for them more often, call.

Prints "PREFIX.KIND.VARIANT INSTRUCTIONS" for all of them together, and "PREFIX_functions.KIND.FUNCTION INSTRUCTIONS" with the
guard.
"""

import bisect
import os
import sys
from collections import Counter

KINDS = ("qp", "mr_4k", "pd", "ioctl")
VARIANTS = ("watched", "crowded", "guarded")  # of the last the functions
CALLED = ("bpf_", "__bpf_", "migrate_", "__rcu_read_", "update_prog_stats", "copy_user_", "_copy_from_user",
          "__check_object_size", "check_stack_object", "copy_from_kernel_nofault", "rep_movs_", "fprobe_", "kprobe_",
          "ftrace_trampoline")


class Symbols:
    def __init__(self, path):
        with open(path) as file:
            pairs = sorted((int(line.split()[0], 16), line.split()[2]) for line in file)
        self.addresses, self.names = zip(*pairs)

    def name(self, address):
        return self.names[bisect.bisect_right(self.addresses, address) - 1]


def functions(directory, variant, kind):
    symbols, counts = Symbols(os.path.join(directory, variant + ".symbols")), Counter()
    with open(os.path.join(directory, f"{variant}.{kind}")) as file:
        for line in file:
            times, address = line.split()
            if int(address, 16) >> 63:  # the kernel's
                counts[symbols.name(int(address, 16))] += int(times)
    return Counter({name: count for name, count in counts.items() if name.startswith(CALLED)})


def short(name):
    """Of bpf_prog_d82e4802a56a6c3e_on_commit: on_commit"""
    words = name.split("_", 3)
    if name.startswith("bpf_prog_"):
        return words[3]
    return "bpf_trampoline" if name.startswith("bpf_trampoline") else name


def main():
    prefix, directory, pairs = sys.argv[1:]
    for kind in KINDS:
        bare = functions(directory, "bare", kind)
        for variant in VARIANTS:
            added = functions(directory, variant, kind)
            added.subtract(bare)
            print(f"{prefix}.{kind}.{variant} {sum(added.values()) / int(pairs):.0f}")
        parts = Counter()
        for name, count in added.items():
            parts[short(name)] += count
        for name, count in parts.items():
            if count / int(pairs) >= 1:
                print(f"{prefix}_functions.{kind}.{name} {count / int(pairs):.0f}")


main()

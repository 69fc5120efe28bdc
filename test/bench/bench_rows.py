"""The rows of the table: what each is made of, beside what it stands, and what it is to reach."""

from figures import row

OBJECTS = {"qp": "QP", "mr_4k": "MR of 4 KiB", "mr_1m": "MR of 1 MiB", "pd": "PD", "cq": "CQ", "srq": "SRQ", "mw": "MW",
           "ah": "AH"}


def charge(figures):
    for case, name in (("one", "one resource"), ("qp", "a QP's worth")):
        ours, mutex, socket = (figures.get(f"charge.{case}.{side}", "ns") for side in ("ours", "mutex", "socket"))
        ratio = socket.median / ours.median
        judged = case == "qp"
        yield row(f"charge and release, one thread: {name}", ours,
                  [("mutex", mutex), ("socket", socket), ("=", f"{ratio:.0f}×")],
                  "≤ 150 ns; ≥ 50× less than socket" if judged else "≥ 50× less than socket",
                  ratio >= 50 and (ours.median <= 150 or not judged))
    yield row("… one locked operation, of which a QP's worth takes 20", figures.get("charge.locked", "ns"))


def instructions(figures):
    for case, name in (("one", "one resource"), ("qp", "a QP's worth")):
        if f"charge_instructions.{case}" in figures.runs:
            yield row(f"charge and release: {name}", figures.get(f"charge_instructions.{case}", "instructions"))


def pairs(figures):
    for kind, most in (("pd", 420), ("qp", 600), ("mr_4k", 520)):
        bare, ours = (figures.mean(f"pairs.{kind}.{variant}", "instructions") for variant in ("bare", "ours"))
        added = ours.beyond(bare)
        yield row(f"{OBJECTS[kind]} created and destroyed on a fake device, added", added,
                  [("whole with", ours), ("whole without", bare)], f"≤ {most}", added.median <= most)
        deep = figures.mean(f"pairs.{kind}.deep", "instructions").beyond(bare)
        yield row("… by a tenant five levels down", deep, [("one level down", added)], "the same ± 10",
                  abs(deep.median - added.median) <= 10)


def shares(figures):
    for case, name, most in (("rest", "none of them does anything", 5), ("ask", "one of them asks for more", 5),
                             ("nothing", "all ledgers are read, and nothing changed", None),
                             ("one", "the same, and one wants more of a resource", None),
                             ("one_resource", "all of them use a little more of a resource", None),
                             ("all", "all of them use a little more of every resource", None),
                             ("first_use", "all at once after a start", None), ("first", "the very first", None)):
        figure = figures.get(f"shares.{case}", "ns")
        yield row(f"dividing among 1,000 tenants, 8 devices, all resources: {name}", figure, [],
                  f"≤ {most} ms" if most else "", figure.median <= most * 1e6 if most else None)
    vain = figures.get("shares.ask_in_vain", "ns")
    yield row("… for one who asks and gets nothing: its own ledger, then a pass over all of 4 ms at most", vain, [], "≤ 10 ms",
              vain.median <= 10e6)
    paced, passes = figures.get("shares.paced", "ns"), figures.get("shares.passes")
    yield row("… the last but two as the sidecar does it, in passes of 4 ms at most: the longest", paced, [("passes", passes)],
              "≤ 5 ms", paced.median <= 5e6)


def processes(figures):
    for count in (1, 4, 16, 64):
        ours, mutex, socket = (figures.get(f"processes.{count}.{side}", "/s") for side in ("ours", "mutex", "socket"))
        ratio = ours.median / mutex.median
        yield row(f"{count} {'process' if count == 1 else 'processes'} charging one tenant", ours,
                  [("mutex", mutex), ("socket", socket), ("=", f"{ratio:.2f}× the mutex")])
        ours, mutex, socket = (figures.get(f"processes_cpu.{count}.{side}", "/s")
                               for side in ("ours", "mutex", "socket"))
        ratio = ours.median / mutex.median
        yield row("… for each second of CPU that they take", ours,
                  [("mutex", mutex), ("socket", socket), ("=", f"{ratio:.2f}× the mutex")],
                  "≥ 1.2× the mutex" if count == 64 else "", ratio >= 1.2 if count == 64 else None)
    for count in (4, 16, 64):
        ours, mutex, socket = (figures.get(f"fairness.{count}.{side}") for side in ("ours", "mutex", "socket"))
        yield row(f"share of the slowest of {count} processes, 1 is fair", ours, [("mutex", mutex), ("socket", socket)],
                  "≥ 0.1", ours.least >= 0.1)


def processes_guest(figures):
    """On a kernel's device, where the kernel's own work stands before any ledger's."""
    for count in (1, 16, 64):
        bare, ours, rdmacg = (figures.get(f"many.{variant}.processes.{count}", "/s")
                              for variant in ("bare", "ours", "rdmacg"))
        yield row(f"{count} {'process' if count == 1 else 'processes'} making PDs on rxe", ours,
                  [("without", bare), ("rdma cgroup", rdmacg),
                   ("=", f"{ours.median / rdmacg.median:.2f}× the rdma cgroup")])
    slowest = [figures.get(f"many.{variant}.fairness.64") for variant in ("ours", "bare", "rdmacg")]
    yield row("share of the slowest of these 64, 1 is fair", slowest[0],
              [("without", slowest[1]), ("rdma cgroup", slowest[2])])


def percent(ours, bare):
    return f"{(ours.median / bare.median - 1) * 100:+.1f} %"


def objects(figures, measured="guest", device="rxe", judged=True, early=False):
    for key, name in OBJECTS.items():
        if f"{measured}.bare.pair.{key}" not in figures.runs:
            continue  # the device has none
        bare, ours, rdmacg = (figures.mean(f"{measured}.{variant}.pair.{key}", "instructions")
                              for variant in ("bare", "ours", "rdmacg"))
        yield row(f"{name} created and destroyed on {device}", ours,
                  [("without", bare), ("rdma cgroup", rdmacg), ("=", percent(rdmacg, bare))] +
                  ([("libmlx5 loaded first", figures.mean(f"{measured}.early.pair.{key}", "instructions"))]
                   if early else []),
                  "≤ +1 %" if judged else "", ours.median <= bare.median * 1.01 if judged else None,
                  " = " + percent(ours, bare))


    for key, name in OBJECTS.items():
        if f"{measured}.bare.pair_live.{key}" not in figures.runs:
            continue
        bare, ours = (figures.mean(f"{measured}.{variant}.pair_live.{key}", "instructions")
                      for variant in ("bare", "ours"))
        yield row(f"… {name} among 100,000 live MRs", ours, [("without", bare)], "≤ +1 %" if judged else "",
                  ours.median <= bare.median * 1.01 if judged else None, " = " + percent(ours, bare))


def guard(figures):
    for key, most in (("qp", 2500), ("mr_4k", 3000), ("pd", None)):
        bare, watched, guarded = (figures.mean(f"guard.{variant}.pair.{key}", "instructions")
                                  for variant in ("bare", "watched", "guarded"))
        added = guarded.beyond(bare)
        yield row(f"{OBJECTS[key]} created and destroyed on rxe under the guard, three levels down: added", added,
                  [("for the counts alone", watched.beyond(bare)), ("without", bare)], f"≤ {most}" if most else "",
                  added.median <= most if most else None)
    bare, guarded = (figures.mean(f"guard.{variant}.pair.ioctl", "instructions") for variant in ("bare", "guarded"))
    added = guarded.beyond(bare)
    yield row("an ioctl of something else under the guard: added", added, [("whole", guarded), ("without", bare)], "≤ 220",
              added.median <= 220)


def objects_watched(figures):
    """What the sidecar's program in the kernel takes, without the provider."""
    for key, name in OBJECTS.items():
        if f"guest.watched.pair.{key}" not in figures.runs:
            continue
        bare, watched = (figures.mean(f"guest.{variant}.pair.{key}", "instructions")
                         for variant in ("bare", "watched"))
        yield row(f"{name} created and destroyed on rxe, watched by the sidecar", watched, [("without", bare)],
                  "≤ +2 %", watched.median <= bare.median * 1.02, " = " + percent(watched, bare))


def objects_mlx5(figures):
    """The real libmlx5 with a simulated adapter: a driver that does less than any real one."""
    yield from objects(figures, "mlx5", "mlx5", judged=False, early=True)


def receipts(figures):
    for live in (1, 1000, 100000):
        each = figures.get(f"receipt_bytes.{live}")
        yield row(f"receipt of an object among {live:,} live ones: filed and taken out",
                  figures.get(f"receipt_ns.{live}", "ns"),
                  note=f"; {each.median:.0f} bytes each")


def open_native(figures):
    """By CPU time: what else runs on the machine does not count, and nothing here waits."""
    bare, ours = (figures.get(f"native.{variant}.open.cpu", "ns") for variant in ("bare", "ours"))
    added = ours.beyond(bare)
    yield row("list, open and close a fake device: CPU time added", added,
              [("whole with", ours), ("whole without", bare)], "≤ 1 ms", added.median <= 1e6)
    for step in ("list", "open", "close"):
        yield row(f"… {step}, by the clock", figures.get(f"native.ours.open.{step}", "ns"),
                  [("without", figures.get(f"native.bare.open.{step}", "ns"))])


def open_guest(figures, measured="guest", device="rxe0"):
    bare, ours = (figures.mean(f"{measured}.{variant}.open.cpu", "instructions") for variant in ("bare", "ours"))
    added = ours.beyond(bare)
    yield row(f"list, open and close {device}: added", added, [("whole with", ours), ("whole without", bare)],
              "≤ 2 M", added.median <= 2e6)


def open_mlx5(figures):
    yield from open_guest(figures, "mlx5", "mlx5_0")


def open_tenants(figures):
    default = figures.mean("tenants.default.open.cpu", "instructions")
    for policy, name in (("instance", "by group"), ("cgroup", "by group, after a match by cgroup")):
        ours = figures.mean(f"tenants.{policy}.open.cpu", "instructions")
        ratio = ours.median / default.median
        yield row(f"list, open and close rxe0 as an instance's user, matched {name}", ours,
                  [("in default of a policy without tenants", default), ("=", f"{ratio:.2f}×")], "≤ 1.2×", ratio <= 1.2)
        yield row("… opening alone", figures.mean(f"tenants.{policy}.open.open", "instructions"),
                  [("in default", figures.mean("tenants.default.open.open", "instructions"))])


def death(figures):
    yield row("next charge after kill -9 of a holder of 1,000 QPs", figures.get("death.next", "ns"),
              [("the charge after it", figures.get("death.later", "ns"))], "usage back at once",
              figures.get("death.usage").most == 1, f"; usage seen {figures.get('death.usage').median:.0f}")


def death_guest(figures):
    yield row("next ibv_create_qp on rxe after it", figures.mean("guest.ours.guest_death.next", "instructions"),
              [("an undisturbed pair", figures.mean("guest.ours.pair.qp", "instructions"))], "usage back at once",
              figures.get("guest.ours.guest_death.usage").median == 0)


def start(figures):
    bare, ours = (figures.get(f"native.{variant}.many.ms", "ms") for variant in ("bare", "ours"))
    failed = figures.get("native.ours.many.failed").most
    yield row("300 processes open, charge, end (fake device)", ours, [("without", bare)], "≤ 1 s on 2 cores",
              ours.median <= 1000 and failed == 0, f"; {failed:.0f} failed" if failed else "")
    bare, ours = (figures.get(f"native.{variant}.many.cpu_ms", "ms") for variant in ("bare", "ours"))
    yield row("… CPU time of them all", ours, [("without", bare)])


def denial(figures):
    for owners in (1, 100, 4000):
        first = figures.get(f"denial_first.{owners}", "ns")
        yield row(f"a process's first denial among {owners:,} live owners", first, target="≤ 3 ms",
                  met=first.median <= 3e6)
        later = figures.get(f"denial.{owners}", "ns")
        yield row("… a later one", later, target="≤ 100 µs", met=later.median <= 1e5)
        after_death = figures.get(f"denial_after_death.{owners}", "ns")
        yield row("… the first charge after a death", after_death, target="≤ 200 µs", met=after_death.median <= 2e5)
    yield row("… the least system call; each owner is asked by one", figures.get("denial_call", "ns"))


def memory(figures):
    for key, name in (("rss", "resident"), ("pss", "proportional")):
        bare, ours = (figures.get(f"native.{variant}.memory.{key}", "KiB") for variant in ("bare", "ours"))
        added = ours.beyond(bare)
        yield row(f"memory added to a process, {name}", added, [("whole with", ours), ("whole without", bare)],
                  "≤ 1 MiB", added.median <= 1024)
    ledger = figures.get("native.ours.memory.ledger", "KiB")
    yield row("… of which the ledger's pages", ledger, note=f" = {ledger.median / 4:.0f} pages")


# Row → what must have been measured, and what is made of it.
ROWS = {
    "charge": [("charge", charge), ("instructions", instructions)],
    "pairs": [("pairs", pairs)],
    "processes": [("processes", processes), ("many", processes_guest)],
    "receipts": [("receipts", receipts)],
    "objects": [("guest", objects), ("guest", objects_watched), ("mlx5", objects_mlx5)],
    "open": [("device", open_native), ("guest", open_guest), ("tenants", open_tenants), ("mlx5", open_mlx5)],
    "death": [("death", death), ("guest", death_guest)],
    "start": [("device", start)],
    "denial": [("denial", denial)],
    "guard": [("guard", guard)],
    "shares": [("shares", shares)],
    "memory": [("device", memory)],
}

"""The rows of the table: what each is made of, beside what it stands, and what it is to reach."""

from figures import Value, row
from isolation_rows import ISOLATION, NOTE as ISOLATION_NOTE

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


def functions(figures, prefix):
    """Of one function after the other, the dearest first."""
    costs = {name: figures.mean(prefix + name, "instructions") for name in figures.below(prefix)}
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].median):
        yield row(f"… of these in {name}", cost)


def pairs(figures):
    for kind, most in (("pd", 420), ("qp", 600), ("mr_4k", 520)):
        bare, ours = (figures.mean(f"pairs.{kind}.{variant}", "instructions") for variant in ("bare", "ours"))
        added = ours.beyond(bare)
        yield row(f"{OBJECTS[kind]} created and destroyed on a fake device, added", added,
                  [("whole with", ours), ("whole without", bare)], f"≤ {most}", added.median <= most)
        deep = figures.mean(f"pairs.{kind}.deep", "instructions").beyond(bare)
        yield row("… by a tenant five levels down", deep, [("one level down", added)], "the same ± 10",
                  abs(deep.median - added.median) <= 10)
        yield from functions(figures, f"pairs_functions.{kind}.")


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


def processes_functions(figures):
    """What a pair consists of, whose times are above."""
    for side, name in (("ours", "rdmaquota"), ("mutex", "the mutex")):
        costs = [figures.mean(f"processes_functions.{side}.{function}", "instructions").median
                 for function in figures.below(f"processes_functions.{side}.")]
        yield row(f"a QP's worth charged and released by {name}", Value(sum(costs), sum(costs), sum(costs), "instructions", True))
        yield from functions(figures, f"processes_functions.{side}.")


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


# What a pair may take more on rxe, in percent.
OBJECT_AIMS = {"qp": 0.7, "mr_4k": 2, "pd": 4.5}


def object_row(figures, name, measured, figure, rivals, most=None):
    """Beside it the rivals, each with what it adds."""
    bare, ours = (figures.mean(f"{measured}.{variant}.{figure}", "instructions") for variant in ("bare", "ours"))
    beside = [("without", bare)]
    for variant, rival in rivals:
        other = figures.mean(f"{measured}.{variant}.{figure}", "instructions")
        beside += [(rival, other), ("=", percent(other, bare))]
    return row(name, ours, beside, f"≤ +{most} %" if most else "",
               ours.median <= bare.median * (1 + most / 100) if most else None, " = " + percent(ours, bare))


def objects(figures, measured="guest", device="rxe", aims=OBJECT_AIMS, rivals=(("rdmacg", "rdma cgroup"),)):
    for key, name in OBJECTS.items():
        if f"{measured}.bare.pair.{key}" not in figures.runs:
            continue  # the device has none
        yield object_row(figures, f"{name} created and destroyed on {device}", measured, f"pair.{key}", rivals,
                         aims.get(key))
        yield object_row(figures, "… the plain mean of all", measured, f"pair_plain.{key}", rivals)
    for key, name in OBJECTS.items():
        if f"{measured}.bare.pair_live.{key}" in figures.runs:
            yield object_row(figures, f"{name} on {device} among 100,000 live MRs", measured, f"pair_live.{key}", ())


GUARD_AIMS = (("qp", 2500), ("mr_4k", 3000), ("pd", None), ("ioctl", 220))


def guarded_call(key):
    what = f"{OBJECTS[key]} created and destroyed on rxe" if key in OBJECTS else "an ioctl of something else"
    return f"{what} under the guard, three levels down"


def guard_traced(figures):
    """By the functions that it consists of, which leaves out what the kernel's own part varies by."""
    for key, most in GUARD_AIMS:
        watched, guarded, crowded = (figures.get(f"guard_traced.{key}.{variant}", "instructions")
                                     for variant in ("watched", "guarded", "crowded"))
        yield row(f"{guarded_call(key)}: its own instructions", guarded,
                  [("the counts' alone", watched), ("among 300 other tenants and 12,000 objects", crowded)],
                  f"≤ {most}" if most else "", guarded.median <= most if most else None)
        yield from functions(figures, f"guard_traced_functions.{key}.")


def guard(figures):
    """All that a pair takes; the kernel's own part varies by more than a difference of these could judge."""
    for key, _ in GUARD_AIMS:
        bare, watched, guarded = (figures.mean(f"guard.{variant}.pair.{key}", "instructions")
                                  for variant in ("bare", "watched", "guarded"))
        yield row(guarded_call(key), guarded, [("with the counts alone", watched), ("without", bare)])


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
    yield from objects(figures, "mlx5", "mlx5", {}, (("rdmacg", "rdma cgroup"), ("early", "libmlx5 loaded first")))


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
    for step in ("list", "open", "close"):
        bare, ours = (figures.mean(f"{measured}.{variant}.open.{step}", "instructions") for variant in ("bare", "ours"))
        yield row(f"… {step}: added", ours.beyond(bare), [("whole with", ours), ("whole without", bare)])


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
    for owners, most_ms in ((1, 0.1), (100, 0.3), (512, 0.6), (4000, 3)):
        denied = figures.get(f"denial.{owners}", "ns")
        yield row(f"a denial among {owners:,} live owners", denied, target=f"≤ {most_ms} ms", met=denied.median <= most_ms * 1e6)
        yield row("… the first charge after a death", figures.get(f"denial_after_death.{owners}", "ns"))
    yield row("… the least system call; each owner is asked by one", figures.get("denial_call", "ns"))


def memory(figures):
    for key, name in (("rss", "resident"), ("pss", "proportional")):
        bare, ours = (figures.get(f"native.{variant}.memory.{key}", "KiB") for variant in ("bare", "ours"))
        added = ours.beyond(bare)
        yield row(f"memory added to a process, {name}", added, [("whole with", ours), ("whole without", bare)],
                  "≤ 936 KiB", added.median <= 936)
    ledger = figures.get("native.ours.memory.ledger", "KiB")
    yield row("… of which the ledger's pages", ledger, note=f" = {ledger.median / 4:.0f} pages")


# Row → what must have been measured, what is made of it, and for what limits are set meanwhile.
ROWS = {
    "charge": [("charge", charge, "process, tenant"), ("instructions", instructions, "process, tenant")],
    "pairs": [("pairs", pairs, "all, of process and tenant")],
    "processes": [("processes", processes, "process, tenant"),
                  ("processes_functions", processes_functions, "process, tenant"),
                  ("many", processes_guest, "all, of process and tenant")],
    "receipts": [("receipts", receipts, "none")],
    "objects": [("guest", objects, "all, of process and tenant"), ("guest", objects_watched, "none"),
                ("mlx5", objects_mlx5, "all, of process and tenant")],
    "open": [("device", open_native, "qp, of process and tenant"), ("guest", open_guest, "all, of process and tenant"),
             ("tenants", open_tenants, "all, of process and tenant"), ("mlx5", open_mlx5, "all, of process and tenant")],
    "death": [("death", death, "qp, of the tenant"), ("guest", death_guest, "all, of process and tenant")],
    "start": [("device", start, "qp, of process and tenant")],
    "denial": [("denial", denial, "qp, of the tenant")],
    "guard": [("guard", guard, "all, of process, three tenants and node"),
              ("guard_traced", guard_traced, "all, of process, three tenants and node")],
    "shares": [("shares", shares, "all")],
    "isolation": ISOLATION,
    "memory": [("device", memory, "qp, of process and tenant")],
}

# What must be known of how a row was measured.
NOTES = {
    "isolation": ISOLATION_NOTE,
    "objects": "the address space's holes are filled with single pages, PROT_NONE and PROT_READ by turns, 512 before and one for "
               "each 8 pairs: mapping a queue costs the kernel more or less by the hole that it comes to lie in, and the "
               "libraries that are loaded make holes by chance. So each group of 8 meets another place, with and without "
               "rdmaquota. Means are of the middle half of these groups, since the kernel has two ways to serve a PD.",
    "pairs": "receipts lie by address, some beside others: means of eight places in memory; of functions, the first of them.",
}

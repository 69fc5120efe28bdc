"""The rows of `isolation`: what a victim's calls take beside attackers.

A figure's name is NAME.VARIANT.ATTACKER.FIGURE, as isolation_rxe.rates.qp.4.mr.p99; alone is an attacker, too. What passes was
decided before anything was measured: the victim's 99th percentile with rates is at most 1.25 times what it is alone under the same
policy, its bandwidth at least 1/1.25. Without a guard nothing is promised of what goes around the library.
"""

from figures import row

MOST = 1.25
VICTIMS = {"pingpong": "a ping-pong", "bandwidth": "bandwidth", "qp": "creating a QP", "mr": "registering 64 KiB",
           "open": "opening the device"}
JUDGED = ("rates", "guarded")
VARIANTS = {"bare": "without us", "counts": "with counts", "rates": "with rates", "guarded": "with rates and guard"}


class Cell:
    """One victim's figure beside one attacker under one variant, and the same alone under that variant."""

    def __init__(self, figures, name, variant, attacker, victim):
        self.variant = variant
        self.is_rate = victim == "bandwidth"
        stat, unit = ("rate", "/s") if self.is_rate else ("p99", "ns")
        self.value = figures.get(f"{name}.{variant}.{attacker}.{victim}.{stat}", unit)
        self.alone = figures.get(f"{name}.{variant}.alone.{victim}.{stat}", unit)
        middle, mean, alone = (figures.get(f"{name}.{variant}.{place}.{victim}.{stat}", "ns")
                               for place, stat in ((attacker, "p50"), (attacker, "mean"), ("alone", "mean")))
        self.rest = "" if self.is_rate else f", p50 {middle.text()}, mean {mean.median / alone.median:.2f}×"

    def slower(self):
        pair = (self.alone.median, self.value.median) if self.is_rate else (self.value.median, self.alone.median)
        return pair[0] / pair[1]

    def passes(self):
        return self.slower() <= MOST

    def verdict(self):
        word = "" if self.variant not in JUDGED else ": pass" if self.passes() else ": FAIL"
        return f" = {self.slower():.2f}× alone{word}"

    def text(self):
        return self.value.text() + self.verdict() + self.rest


def attackers(figures, name):
    """In the order in which they were measured."""
    words = [figure.split(".") for figure in figures.below(f"{name}.bare.")]
    return list(dict.fromkeys(f"{word[0]}.{word[1]}" for word in words if len(word) == 4))


def described(attacker):
    kind, processes = attacker.split(".")
    around = kind.startswith("around_")
    kind = kind.removeprefix("around_")
    what = f"MRs of {kind[3:-1]} {kind[-1].upper()}iB" if kind.startswith("mr_") else f"{kind if kind == 'context' else kind.upper()}s"
    return f"{processes} × {what}{' around the library' if around else ''}"


def cells_of(figures, name, attacker, victim):
    return {variant: Cell(figures, name, variant, attacker, victim) for variant in VARIANTS
            if f"{name}.{variant}.{attacker}.{victim}.{'rate' if victim == 'bandwidth' else 'p99'}" in figures.runs}


def victim_row(cells, device, attacker, victim):
    chosen = next(cells[variant] for variant in ("rates", "guarded", "counts", "bare") if variant in cells)
    beside = [("alone", chosen.alone)]
    beside += [(VARIANTS[variant], cell.text()) for variant, cell in cells.items() if cell is not chosen]
    judged = [cell.passes() for variant, cell in cells.items() if variant in JUDGED]
    stat = "" if victim == "bandwidth" else ", p99"
    return row(f"{VICTIMS[victim]} on {device}{stat}, beside {described(attacker)}", chosen.value, beside,
               f"≤ {MOST}× alone" if victim != "bandwidth" else f"≥ alone / {MOST}", all(judged) if judged else None,
               f" {VARIANTS[chosen.variant]}{chosen.verdict()}{chosen.rest}")


def attack_row(figures, name, device, attacker):
    rates = {variant: figures.get(f"{name}.{variant}.{attacker}.attack.creations", "/s") for variant in VARIANTS
             if f"{name}.{variant}.{attacker}.attack.creations" in figures.runs}
    variant = list(rates)[-1]
    return row(f"{described(attacker)} on {device}: creations", rates[variant],
               [(VARIANTS[other], value) for other, value in rates.items() if other != variant], note=f" {VARIANTS[variant]}")


def isolation(figures, name, device):
    capacity = figures.get(f"{name}.capacity.commands", "/s")
    yield row(f"4 × QPs on {device} alone: creations", capacity,
              [("the attacker's rate", figures.get(f"{name}.capacity.rate", "/s")),
               ("bytes registered, the attacker's rate", figures.get(f"{name}.capacity.bytes_rate", "/s"))])
    for attacker in attackers(figures, name):
        yield attack_row(figures, name, device, attacker)
        for victim in VICTIMS:
            cells = cells_of(figures, name, attacker, victim)
            if cells:
                yield victim_row(cells, device, attacker, victim)


def isolation_rxe(figures):
    yield from isolation(figures, "isolation_rxe", "rxe")


def isolation_mlx5(figures):
    yield from isolation(figures, "isolation_mlx5", "mlx5")


def measured_above(figures):
    """For what has its figures in the rows of its device, or a reason."""
    return iter(())


LIMITS = "counts and rates of the attacker"
ISOLATION = [("isolation_rxe", isolation_rxe, LIMITS), ("isolation_rxe_counts", measured_above, LIMITS),
             ("isolation_rxe_rates", measured_above, LIMITS), ("isolation_rxe_guarded", measured_above, LIMITS),
             ("isolation_mlx5", isolation_mlx5, LIMITS), ("isolation_mlx5_counts", measured_above, LIMITS),
             ("isolation_mlx5_rates", measured_above, LIMITS), ("isolation_mlx5_guarded", measured_above, LIMITS)]
NOTE = ("the victim and the attackers share one emulated CPU whose time is executed instructions: compare ratios, not times. On mlx5 "
        "the victim has the CPU first, so that what it waits for is the adapter's queue: one command at a time, 100 µs each and 25 ns a "
        "page, which was chosen and is no adapter's. A value alone is that under the same policy.")

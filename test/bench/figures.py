"""Figures as the benchmark programs print them, and how a table's cell is made of them."""

UNITS = {
    "ns": [(1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
    "ms": [(1e-3, "µs"), (1, "ms"), (1e3, "s")],
    "/s": [(1, "/s"), (1e3, "k/s"), (1e6, "M/s")],
    "KiB": [(1, "KiB")],
    "instructions": [(1, "instr."), (1e6, "M instr.")],
    "": [(1, "")],
}


def scaled(value, unit):
    factor, name = UNITS[unit][0]
    for larger, its_name in UNITS[unit]:
        if abs(value) >= larger:
            factor, name = larger, its_name
    number = value / factor
    digits = 0 if float(number).is_integer() or abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{digits}f}", name


class Value:
    """A median with the least and the most of its runs; or a mean."""

    def __init__(self, median, least, most, unit, is_mean=False):
        self.median, self.least, self.most, self.unit, self.is_mean = median, least, most, unit, is_mean

    def beyond(self, other):
        """What it adds to that, least and most to the other's median."""
        return Value(*[value - other.median for value in (self.median, self.least, self.most)], self.unit,
                     self.is_mean)

    def text(self):
        number, name = scaled(self.median, self.unit)
        spread = ""
        if self.least != self.most:
            ends = (" ".join(scaled(end, self.unit)).strip() for end in (self.least, self.most))
            spread = " (" + "–".join(ends) + ")"
        return f"{number} {name}".strip() + spread

    def as_json(self):
        return {"value": self.median, "is": "mean" if self.is_mean else "median", "least": self.least, "most": self.most,
                "unit": self.unit, "text": self.text()}


class Figures:
    def __init__(self, path):
        self.runs = {}
        with open(path) as file:
            for line in file:
                words = line.split()
                numbers = [float(word) for word in words[1:]]
                if len(numbers) == 1:
                    numbers *= 3
                if len(numbers) == 3:
                    self.runs.setdefault(words[0], []).append(numbers)

    def get(self, name, unit=""):
        """KeyError when no program printed it."""
        runs = sorted(self.runs[name])
        return Value(runs[len(runs) // 2][0], min(r[1] for r in runs), max(r[2] for r in runs), unit)

    def mean(self, name, unit=""):
        """For what varies with where memory lies."""
        runs = [run[0] for run in self.runs[name]]
        return Value(sum(runs) / len(runs), min(runs), max(runs), unit, is_mean=True)

    def below(self, prefix):
        """The names of figures that begin so, without that."""
        return [name[len(prefix):] for name in self.runs if name.startswith(prefix)]


def row(figure, ours, beside=(), target="", met=None, note=""):
    """`beside`: pairs of a rival's name and its Value, or a text."""
    return {
        "figure": figure,
        "ours": {**ours.as_json(), "text": ours.text() + note},
        "beside": [{"name": name, **(value.as_json() if isinstance(value, Value) else {"text": value})}
                   for name, value in beside],
        "target": target,
        "met": met,
    }

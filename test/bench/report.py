"""Makes the table of test/bench/run.sh out of the figures that its programs printed.

A line of figures is NAME VALUE or NAME MEDIAN LEAST MOST; a name that comes again is another run.
Rows and notes are in bench_rows.py. The exit status is 1 when a row could not be measured.
"""

import argparse
import datetime
import json
import os
import platform
import sys

from bench_rows import NOTES, ROWS
from figures import Figures


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load": os.getloadavg()[1],
    }


def read_reasons(path):
    with open(path) as file:
        return dict(line.rstrip("\n").split(" ", 1) for line in file)


def make_rows(figures, reasons, wanted):
    for name in wanted:
        for need, build, limits in ROWS[name]:
            if need in reasons:
                yield {"row": name, "figure": name if need == name else f"{name}: {need}", "unmeasured": reasons[need]}
                continue
            try:
                for row in build(figures):
                    yield {"row": name, **row, "limits": limits}
            except KeyError as missing:
                yield {"row": name, "figure": name, "unmeasured": f"{missing.args[0]} was not printed"}


def as_cells(row):
    if "unmeasured" in row:
        return [row["figure"], "not measured: " + row["unmeasured"], "", "", "–", ""]
    met = {True: "yes", False: "NO", None: "–"}[row["met"]]
    ours = row["ours"]
    return [row["figure"], ("mean " if ours["is"] == "mean" else "") + ours["text"],
            "; ".join(b["name"] + " " + b["text"] for b in row["beside"]), row["target"], met, row["limits"]]


def print_table(rows, about):
    cells = [["Figure", "rdmaquota", "Beside it", "To reach", "Met", "Limits set"]] + [as_cells(row) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print("\n".join(lines))
    of = about["machine"]
    for note in about["notes"]:
        print("\n" + note)
    print(f"\nMedians, or means where it says so (least–most), on {of['cpu']}, {of['cores']} cores, Linux {of['kernel']}, "
          f"{about['date']}, build type {about['build']}; the load of the last 5 minutes was {of['load']:.1f}, "
          f"and times by the clock mean something only when the benchmarks made most of it.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--build", default="")
    parser.add_argument("--figures", required=True)
    parser.add_argument("--reasons", required=True)
    parser.add_argument("rows", nargs="+", choices=ROWS)
    options = parser.parse_args()
    figures = Figures(options.figures)
    rows = list(make_rows(figures, read_reasons(options.reasons), options.rows))
    about = {"machine": machine(), "date": datetime.date.today().isoformat(), "build": options.build,
             "notes": [f"{name}: {NOTES[name]}" for name in options.rows if name in NOTES]}
    if options.json:
        print(json.dumps({**about, "rows": rows}, ensure_ascii=False))
    else:
        print_table(rows, about)
    sys.exit(1 if any("unmeasured" in row for row in rows) else 0)


if __name__ == "__main__":
    main()

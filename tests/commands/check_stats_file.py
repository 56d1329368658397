#!/usr/bin/env python3
"""check_stats_file.py: what commands take from NAME.json beside a snapshot.

Every command knows the memory limit that the file states (`cap`). validate
compares the counters of a recording that began late as far as they can be compared.
Environment: FRAGSIM (default build/fragsim).
"""
import json
import lzma
import os
import pickle
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, attempt, need

UNKNOWN = "the memory limit is not known"
COMMANDS = ("replay T", "fit T", "sweep T -o out.h5", "tune T",
            "info T", "steps T", "top T", "summary T",
            "export T -o out.csv", "import T -o out.trace.h5",
            "diff T T", "validate T",
            "explain T")
OTHER = {"no": "counters"}
IGNORED = "the file with the name of the snapshot's counters is ignored: " \
    "t.json: expected a JSON object with \"stats\" " \
    "(torch.cuda.memory_stats()), found none"
failures = []


def expect(holds, words):
    if not holds:
        failures.append(words)
        print(words)


def write_json(value):
    with open("t.json", "w", encoding="utf-8") as file:
        json.dump(value, file)


def check_limit():
    with lzma.open(os.path.join(
            BUNDLED, "lstm_varlen__cap_below.pickle.xz")) as file, \
            open("t.pickle", "wb") as out:
        out.write(file.read())
    with open(os.path.join(BUNDLED, "lstm_varlen__cap_below.json"),
              encoding="utf-8") as file:
        counters = json.load(file)
    told = 0
    for command in COMMANDS:
        words = [w.replace("T", "t.pickle") if w == "T" else w
                 for w in command.split()] + ["--force"] * (" -o " in command)
        said = []
        for value in (None, counters, OTHER):
            if value is None and os.path.exists("t.json"):
                os.remove("t.json")
            elif value is not None:
                write_json(value)
            done = attempt(*words)
            expect(done.returncode in (0, 1),
                   f"{words}: {done.returncode} {done.stderr[-200:]}")
            ignored = IGNORED in done.stdout + done.stderr
            expect(ignored == (value == OTHER), f"{words}: {done.stderr[-300:]}")
            said.append(UNKNOWN in done.stdout + done.stderr)
        expect(not said[1], f"{command}: {UNKNOWN}, although t.json states it")
        expect(said[0] == said[2],
               f"{command}: a file without counters changes the note: {said}")
        told += said[0]
    expect(told >= len(COMMANDS) // 2, f"{told} commands state the unknown limit")


def validate(*words):
    done = attempt("validate", "t.pickle", "--json", "-", *words)
    return json.loads(done.stdout)["results"][0], done


def check_late():
    """The first 40 % of the entries are missing; the counters are complete."""
    with lzma.open(os.path.join(BUNDLED, "leak.pickle.xz")) as file:
        snapshot = pickle.load(file)
    entries = snapshot["device_traces"][0]
    snapshot["device_traces"][0] = entries[len(entries) * 2 // 5:]
    with open("t.pickle", "wb") as out:
        pickle.dump(snapshot, out)
    with open(os.path.join(BUNDLED, "leak.json"), encoding="utf-8") as file:
        whole = json.load(file)
    write_json(whole)
    row, done = validate()
    expect(row["exact"], f"late: {row['first_divergence']}")
    bounds = [s for s in row["stats"] if s["is_lower_bound"]]
    note = [n for n in row["notes"] if "lower bounds" in n]
    expect(len(note) == 1 and f"{len(bounds)} counters" in note[0], row["notes"])
    expect(note[0] in done.stderr, "the note is in the text too")
    expect(all(not s["name"].endswith(".current") for s in bounds) and
           any(s["recorded"] > s["replayed"] for s in bounds), bounds)
    current = [s for s in row["stats"] if s["name"].endswith(".current")]
    expect(current and all(s["determined"] for s in current), current)
    for name, change in (("allocated_bytes.all.current", 512),
                         ("allocated_bytes.all.peak", -10 ** 12)):
        stats = dict(whole["stats"])
        flat = name in stats
        part = dict(stats if flat else stats["0"])
        part[name] = max(0, part[name] + change)
        write_json(dict(whole, stats=part if flat else {"0": part}))
        row, _ = validate()
        expect(not row["exact"] and name in row["first_divergence"]["expected"],
               f"{name} changed by {change}: {row['first_divergence']}")


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_limit()
        check_late()
        os.chdir(ROOT)
    print(f"stats file: {len(COMMANDS)} commands, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""leaks_table.py: the verdicts of `fragsim leaks` on all recordings whose
programs are known to leak or not to: leaks that were missed, false alarms, and
recordings with too few steps.

Writes pages/leaks.md. tests/check_leaks.py examines the recordings.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import os
import subprocess
import sys

from places import PAGES, ROOT

CHECK = os.path.join(ROOT, "tests", "check_leaks.py")
HEAD = """# Leaks: verdicts against the truth

Made by `paper/tables/leaks_table.py`. A recording is right if the program leaks and `fragsim
leaks` says so, or if it does not leak and there is no alarm. The verdict is
unknown if the recording has fewer than seven complete steps.

| recordings of | traces | leak | found | missed | do not leak | false alarms | unknown |
|---|---|---|---|---|---|---|---|
"""
SITES = """
| leak | site | bytes a step | grows in |
|---|---|---|---|
"""


def count(rows, **wanted):
    return sum(all(row[key] == value for key, value in wanted.items())
               for row in rows)


def line(name, rows):
    known = [row for row in rows if row["verdict"] != "unknown"]
    return [name, len(rows), count(rows, leaks=True),
            count(rows, leaks=True, verdict="leak"),
            count(rows, leaks=True) - count(rows, leaks=True, verdict="leak"),
            count(known, leaks=False),
            count(known, leaks=False, verdict="leak"),
            len(rows) - len(known)]


def site_lines(row):
    for leak in row["found"]:
        site = (f"{leak['function']} ({os.path.basename(leak['file'])}:"
                f"{leak['line']})" if leak["function"] else
                f"no stacks; {leak['most_block_bytes']} bytes")
        yield [row["name"].split(".pickle")[0], site,
               round(leak["growth_bytes_per_step"]),
               f"{leak['num_steps_growing']} of {leak['num_steps_examined']}"]


def text(cells):
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main():
    done = subprocess.run([sys.executable, CHECK, "--table"], check=True,
                          capture_output=True, text=True)
    rows = json.loads(done.stdout)
    groups = list(dict.fromkeys(row["group"] for row in rows))
    with open(os.path.join(PAGES, "leaks.md"), "w", encoding="utf-8") as out:
        out.write(HEAD)
        for group in groups:
            out.write(text(line(group, [row for row in rows
                                        if row["group"] == group])))
        out.write(text(line("all", rows)))
        out.write(SITES)
        for row in rows:
            for cells in site_lines(row):
                out.write(text(cells))


if __name__ == "__main__":
    main()

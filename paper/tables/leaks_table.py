#!/usr/bin/env python3
"""leaks_table.py: the verdicts of `fragsim leaks` on all recordings whose
programs are known to leak or not to, and on made-up programs: leaks that were
missed, false alarms, and recordings that cannot tell.

Writes pages/leaks.md. tests/commands/check_leaks.py and tests/commands/check_leak_programs.py
examine the recordings and the programs.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import os
import subprocess
import sys

from places import PAGES, ROOT

CHECKS = ("check_leaks.py", "check_leak_programs.py")
HEAD = """# Leaks: verdicts against the truth

Made by `paper/tables/leaks_table.py`. A verdict is right if the program leaks and `fragsim
leaks` says so, or if it does not leak and there is no alarm. The verdict is unknown where the
recording cannot tell: its work repeats too seldom, or neither marked steps nor Python stacks say
where it ends. The made-up programs are those of `tests/commands/check_leak_programs.py`, written with the
marks of the optimizer, with Python stacks only, and with neither.

| recordings of | traces | leak | found | missed | unknown | do not leak | false alarms | unknown |
|---|---|---|---|---|---|---|---|---|
"""
SITES = """
| leak | site | bytes a step | grows in |
|---|---|---|---|
"""


def count(rows, **wanted):
    return sum(all(row[key] == value for key, value in wanted.items())
               for row in rows)


def line(name, rows):
    return [name, len(rows)] + [
        count(rows, leaks=leaks, **verdict) for leaks, verdicts in
        ((True, ("leak", "none", "unknown")), (False, ("leak", "unknown")))
        for verdict in [{}, *({"verdict": v} for v in verdicts)]]


def site_lines(row):
    for leak in row["found"]:
        site = (f"{leak['function']} ({os.path.basename(leak['file'])}:"
                f"{leak['line']})" if leak["function"] else
                f"no stacks; {leak['most_block_bytes']} bytes")
        yield [row["name"].split(".pickle")[0], site,
               round(leak["growth_bytes_per_step"]),
               f"{leak['num_windows_growing']} of {leak['num_windows_examined']}"]


def text(cells):
    return "| " + " | ".join(map(str, cells)) + " |\n"


def rows_of(check):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "commands", check),
                           "--table"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    rows = [row for check in CHECKS for row in rows_of(check)]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    with open(os.path.join(PAGES, "leaks.md"), "w", encoding="utf-8") as out:
        out.write(HEAD)
        for group in groups:
            out.write(text(line(group, [row for row in rows
                                        if row["group"] == group])))
        out.write(text(line("all", rows)))
        out.write(SITES)
        for row in (row for row in rows if row["verdict"] == "leak" and "found" in row):
            for cells in site_lines(row):
                out.write(text(cells))


if __name__ == "__main__":
    main()

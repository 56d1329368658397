#!/usr/bin/env python3
"""check_size.py [--update]: the size of the house, held against tests/structure/size.csv.

Each row of size.csv names something that is counted and the most that it may be. The
check fails if a count is above its row, if a row is missing, or if a row names nothing
that is counted. With --update it lowers the rows that are too high and raises none: a
commit that raises a row by hand lowers another one, or says in its message why the
product is worth more with it.

Lines are those of the files of a folder, blank lines and comments included; a symbolic
link is not counted. The options are the rows of `fragsim COMMAND --help` without --help
and --usage, which the parser adds.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import csv
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need

TABLE = os.path.join(ROOT, "tests", "structure", "size.csv")
C = (".c", ".h", ".cpp", ".cu")
# What is counted in lines: the folders, those that are left out, the endings.
LINES = {
    "C of traces": (["traces"], [], C),
    "C of policies": (["policies"], [], C),
    "C of sim/answers": (["sim/answers"], [], C),
    "C of sim/cli": (["sim/cli"], [], C),
    "C of sim/experiments": (["sim/experiments"], [], C),
    "C of the rest of sim": (["sim"], ["sim/answers", "sim/cli", "sim/experiments"], C),
    "C of real without real/dry": (["real"], ["real/dry"], C),
    "C of the product without real/dry": (["traces", "policies", "sim", "real"],
                                          ["real/dry"], C),
    "C of real/dry": (["real/dry"], [], C),
    "C of tests": (["tests"], [], C),
    "Python of the product": (["traces", "policies", "sim", "real"], [], (".py",)),
    "Python of tests": (["tests"], [], (".py",)),
    "Python of paper": (["paper"], [], (".py",)),
    "Python": (["."], [], (".py",)),
    "JavaScript": (["."], [], (".js",)),
    "shell": (["."], [], (".sh",)),
}


def is_left_out(place, left_out):
    """Whether a folder is left out; a build and the history of git always are."""
    return place in left_out or (os.sep not in place
                                 and place.startswith((".", "build")))


def lines_in(folders, left_out, endings):
    """The lines of the files with these endings, below the folders."""
    total = 0
    for top in folders:
        for folder, below, files in os.walk(os.path.join(ROOT, top)):
            place = os.path.relpath(folder, ROOT)
            below[:] = [name for name in below
                        if not is_left_out(os.path.normpath(os.path.join(place, name)),
                                           left_out)]
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith(endings) and not os.path.islink(path):
                    with open(path, "rb") as file:
                        total += file.read().count(b"\n")
    return total


def help_of(*words):
    return subprocess.run([FRAGSIM, *words], capture_output=True, text=True,
                          check=True).stdout


def commands():
    """The names of the commands; an alias is none."""
    listed = help_of("help").split("\nMore:")[0]
    return [name for name, text in re.findall(r"^  (\w+) +(.*)$", listed, re.M)
            if "(alias of" not in text]


def options():
    """The options of all commands, one entry for each row of a --help."""
    rows = []
    for name in commands():
        rows += re.findall(r"^ +(?:-\S, )?--([\w-]+)", help_of(name, "--help"), re.M)
    return [row for row in rows if row not in ("help", "usage")]


def entries(path, word):
    """The number of rows of a list such as import_list.h."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return len(re.findall(rf"^{word}\(", file.read(), re.M))


def counted():
    found = {what: lines_in(*how) for what, how in LINES.items()}
    rows = options()
    found["commands"] = len(commands())
    found["option rows"] = len(rows)
    found["different options"] = len(set(rows))
    found["input formats"] = entries("traces/import/import_list.h", "IMPORTER")
    found["figures"] = entries("sim/cli/figures/figure_list.h", "FIGURE")
    return found


def read_table():
    if not os.path.exists(TABLE):
        return {}
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["what"]: int(row["most"]) for row in csv.DictReader(file)}


def write_table(rows):
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("what", "most"))
        writer.writerows(rows.items())


def faults(found, most):
    for what, size in found.items():
        if what not in most:
            yield f"size.csv has no row for \"{what}\", which is {size}"
        elif size > most[what]:
            yield f"{what}: {size}, and size.csv allows {most[what]}"
    yield from (f"size.csv: \"{what}\" is nothing that is counted"
                for what in most if what not in found)


def main():
    need(FRAGSIM)
    # One of each fault: above its row, without a row, a row of nothing.
    assert len(list(faults({"a": 2, "b": 1, "c": 1}, {"a": 1, "c": 1, "d": 1}))) == 3
    found, most = counted(), read_table()
    if "--update" in sys.argv[1:]:
        write_table({what: min(size, most.get(what, size))
                     for what, size in found.items()})
        most = read_table()
    wrong = list(faults(found, most))
    for fault in wrong:
        print(f"check_size: {fault}")
    below = sum(found[what] < size for what, size in most.items() if what in found)
    if below:
        print(f"check_size: {below} rows could be lower (--update)")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

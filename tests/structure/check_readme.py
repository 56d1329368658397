#!/usr/bin/env python3
"""check_readme.py [--update]: checks that README.md agrees with the tool.

The table of policies must be that of `fragsim policies --json -`, and each
command of a console block (`$ fragsim ...`, run from the top of the tree) must
print the text below it. --update writes both into README.md instead.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import difflib
import json
import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need

README = os.path.join(ROOT, "README.md")

TABLE = re.compile(r"(<!-- policies[^>]*-->\n)(.*?)(<!-- end -->)", re.S)
CONSOLE = re.compile(r"(```console\n)(.*?)(```)", re.S)


def run(arguments):
    done = subprocess.run([FRAGSIM, *arguments], capture_output=True, text=True,
                          cwd=ROOT, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"fragsim {shlex.join(arguments)}: exit "
                         f"{done.returncode}: {done.stderr.strip()}")
    return done.stdout


def policies():
    rows = ["| policy | what it does | source |", "|---|---|---|"]
    for policy in json.loads(run(["policies", "--json", "-"]))["policies"]:
        only = " (traces only)" if {"moves", "future"} & set(policy["needs"]) else ""
        rows.append(f"| `{policy['name']}` | {policy['summary']}{only} | "
                    f"{policy['source']} |")
    return "\n".join(rows) + "\n"


def console(block):
    """The block with the current output of its commands."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ fragsim "):
            arguments = shlex.split(line)[2:]
            lines += [line, *run(arguments).rstrip("\n").splitlines()]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def main():
    need(FRAGSIM)
    with open(README, encoding="utf-8") as file:
        found = file.read()
    if len(TABLE.findall(found)) != 1 or \
            not any("\n$ fragsim " in f"\n{m[1]}" for m in CONSOLE.findall(found)):
        print("check_readme: README.md has no table of policies or no command")
        return 1
    expected = TABLE.sub(lambda m: m[1] + policies() + m[3], found)
    expected = CONSOLE.sub(lambda m: m[1] + console(m[2]) + m[3], expected)
    if found == expected:
        return 0
    if "--update" in sys.argv[1:]:
        with open(README, "w", encoding="utf-8") as file:
            file.write(expected)
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        found.splitlines(True), expected.splitlines(True),
        "README.md", "the tool"))
    print("check_readme: run tests/structure/check_readme.py --update")
    return 1


if __name__ == "__main__":
    sys.exit(main())

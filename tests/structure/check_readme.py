#!/usr/bin/env python3
"""check_readme.py [--update]: checks that README.md and the pages of the site
(sim/cli/site) agree with the tool.

The table of policies must be that of `fragsim policies --json -`, and the commands of
each console block ($ ...) must print the text below them: those of one page run in one
folder, which has the folders of the tree that they name, and a command that fails is
followed by `$ echo $?`. README.md has less than 150 lines. --update writes table and
output into the files instead.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import difflib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need, output, skip

README = os.path.join(ROOT, "README.md")
PAGES = sorted(glob.glob(os.path.join(ROOT, "sim", "cli", "site", "*.md")))
LINES = 149  # of README.md

TABLE = re.compile(r"(<!-- policies[^>]*-->\n)(.*?)(<!-- end -->)", re.S)
CONSOLE = re.compile(r"(```console\n)(.*?)(```)", re.S)
# Prints what a command prints, then a mark and its exit code.
STEP = "(exit $code)\n{ %s\n} 2>&1; code=$?; printf '\\0%%s\\0' $code\n"


def policies():
    rows = ["| policy | what it does | source |", "|---|---|---|"]
    for policy in json.loads(output("policies", "--json", "-"))["policies"]:
        only = " (traces only)" if {"moves", "future"} & set(policy["needs"]) else ""
        rows.append(f"| `{policy['name']}` | {policy['summary']}{only} | "
                    f"{policy['source']} |")
    return "\n".join(rows) + "\n"


def commands(text):
    """The commands of all blocks; a line that ends in \\ goes on."""
    return [line[2:] for block in CONSOLE.findall(text)
            for line in block[1].splitlines() if line.startswith("$ ")]


def printed(path, wanted):
    """What the commands of a page print, run in one folder."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("traces", "tests", "policies"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        tools = os.path.join(folder, ".bin")
        os.mkdir(tools)
        os.symlink(FRAGSIM, os.path.join(tools, "fragsim"))
        env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LC_ALL": "C",
               "TERM": "dumb"}
        done = subprocess.run(["bash", "-c", "code=0\n" + "".join(
            STEP % command for command in wanted)], cwd=folder, env=env, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, check=True)
    parts = done.stdout.split("\0")
    found = list(zip(parts[0::2], parts[1::2]))
    assert len(found) == len(wanted), (path, done.stderr)
    for i, (_, code) in enumerate(found):
        if code != "0" and wanted[i + 1:i + 2] != ["echo $?"]:
            raise SystemExit(f"{path}: {wanted[i]}: exit {code}: {found[i][0]}")
    return [text for text, _ in found]


def as_found(path, text):
    """The page with the current table and the current output of its commands."""
    wanted = commands(text)
    outputs = iter(zip(wanted, printed(path, wanted)))

    def block(match):
        lines = []
        for line in match[2].splitlines():
            if line.startswith("$ "):
                lines += [line, *next(outputs)[1].splitlines()]
        return match[1] + "".join(f"{line.rstrip()}\n" for line in lines) + match[3]

    text = TABLE.sub(lambda m: m[1] + policies() + m[3], text)
    return CONSOLE.sub(block, text)


def judge(path):
    """The number of faults of a page: 1 if it does not agree."""
    name = os.path.relpath(path, ROOT)
    with open(path, encoding="utf-8") as file:
        found = file.read()
    expected = as_found(name, found)
    if found == expected:
        return 0
    if "--update" in sys.argv[1:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(expected)
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        found.splitlines(True), expected.splitlines(True), name, "the tool"))
    return 1


def main():
    need(FRAGSIM)
    for program in ("gnuplot", "cc"):
        if not shutil.which(program):
            skip(f"{program} is missing")
    texts = {}
    for path in [README, *PAGES]:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    count = texts[README].count("\n")
    if len(TABLE.findall("".join(texts.values()))) != 1 or not commands(texts[README]):
        print("check_readme: no table of policies, or no command in README.md")
        return 1
    faults = sum(judge(path) for path in texts)
    if faults:
        print("check_readme: run tests/structure/check_readme.py --update")
    if count > LINES:
        print(f"check_readme: README.md has {count} lines, more than {LINES}")
        faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""commands.py OLD: what each command costs beside an older build of the tool.

Prints the processor time (user and system) of both builds, which run in turns, the
ratio new/old of each turn (median, least and largest), the peak memory of both, and
whether their outputs are equal: the exit status, the text, and the bytes of the
output file. A result file or trace file names the commit of its tool, so its dump
(h5dump) is compared, with the word COMMIT in place of the commit.

The recordings are those of FRAG_SHARED_DIR; without them the bundled ones, whose runs
are short.

Environment: FRAGSIM (the tool, a Release build), TURNS (5), FRAG_SHARED_DIR.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TURNS = int(os.environ.get("TURNS", "5"))
SHARED = pathlib.Path(os.environ.get("FRAG_SHARED_DIR", ROOT.parent / "shared"))
BUNDLED = ROOT / "traces" / "bundled"
FOLDER, NAMES = (SHARED / "recorded", (
    "large/generate_long", "dev/t5_varlen", "dev/llama_varlen__cap_below"))
if not FOLDER.is_dir():
    FOLDER, NAMES = BUNDLED, ("gpt2_train", "multistream", "lstm_varlen__cap_below")
COMPRESSED, MIDDLE, DEAD = (FOLDER / f"{name}.pickle.xz" for name in NAMES)

# The name in the table, and the words of the command line: {long} is the imported
# trace, {out} the output file.
GRID = "-p torch -p best_fit -p size_class -p tlsf -c 0.9x,1.1x,inf"
COMMANDS = [
    ("--version", "--version"),
    ("info", "info -q {compressed}"),
    ("import", "import -q {compressed} -o {out}.h5"),
    ("replay", "replay -q {long} -o {out}.h5"),
    ("replay, expandable", "replay -q -p torch:expandable_segments:True {long}"),
    ("replay, best_fit", "replay -q -p best_fit {long}"),
    ("replay --check", "replay -q --check {middle} -o {out}.h5"),
    ("replay, plan", "replay -q -p plan {middle}"),
    ("fit", "fit -q -p torch -p best_fit {middle}"),
    ("fit, plan", "fit -q -p plan {middle}"),
    ("tune", "tune -q -j1 {long}"),
    ("tune, dead job", "tune -q -j1 {dead} --capacity 24GiB"),
    ("sweep", f"sweep -q -j2 {GRID} {{middle}} {{dead}} -o {{out}}.h5"),
    ("validate", "validate -q {middle}"),
    ("explain", "explain -q {dead}"),
    ("triage", "triage -q {dead} --capacity 24GiB -o {out}.html"),
    ("top", "top -q {middle}"),
    ("steps", "steps -q {middle}"),
    ("leaks", "leaks -q {middle} -c 80GiB"),
    ("summary", "summary -q {middle} --at peak"),
    ("diff", "diff -q {middle} {dead}"),
    ("edit", "edit -q {middle} -e scale:factor=1.5,min=1MiB -o {out}.h5"),
    ("export", "export -q {middle} -o {out}.csv"),
    ("gen", "gen -q training -o {out}.h5"),
]


def run(tool, words):
    """Returns seconds, MiB, and what the command gave: its status, text and files."""
    for path in outputs():
        path.unlink()
    # A child of Python begins with Python's memory, so the peak is that of time(1).
    timed = ["/usr/bin/time", "-q", "-o", "kib", "-f", "%M", tool, *words]
    with open("text", "wb") as text:
        process = subprocess.Popen(timed, stdout=text, stderr=text,
                                   env={**os.environ, "SOURCE_DATE_EPOCH": "1"})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return (used.ru_utime + used.ru_stime, int(pathlib.Path("kib").read_text()) / 1024,
            [status, pathlib.Path("text").read_bytes(), *map(content, outputs())])


def outputs():
    return sorted(pathlib.Path(".").glob("out.*"))


def content(path):
    if path.suffix != ".h5":
        return path.read_bytes()
    return subprocess.run(["h5dump", path], stdout=subprocess.PIPE, check=True).stdout


def commit(tool):
    words = subprocess.run([tool, "--version"], capture_output=True, check=True).stdout
    return re.search(rb"\(([\w-]+)\)", words)[1]


def without(commit_of_tool, written):
    """Replaces the commit of the tool in what it wrote."""
    return [part.replace(commit_of_tool, b"COMMIT") if isinstance(part, bytes) else part
            for part in written]


def row(name, words, tools, commits):
    words = words.split()
    turns = [[run(tool, words) for tool in tools] for _ in range(TURNS)]
    new, old = ([turn[k][0] for turn in turns] for k in (0, 1))
    ratios = sorted(a / b for a, b in zip(new, old))
    equal = without(commits[0], turns[0][0][2]) == without(commits[1], turns[0][1][2])
    print(f"| `{name}` | {statistics.median(old):.3f} | {statistics.median(new):.3f} | "
          f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | "
          f"{turns[0][1][1]:.0f} | {turns[0][0][1]:.0f} | "
          f"{'yes' if equal else 'no'} |", flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tools = [os.path.abspath(os.environ.get("FRAGSIM", ROOT / "build" / "fragsim")),
             os.path.abspath(sys.argv[1])]
    commits = [commit(tool) for tool in tools]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([tools[0], "import", "-q", COMPRESSED, "-o", "long.h5"], check=True)
        print("| command | before, s | after, s | new/old | MiB | MiB after | equal |")
        print("|---|---:|---:|---:|---:|---:|---|")
        for name, words in COMMANDS:
            row(name, words.format(compressed=COMPRESSED, long="long.h5", middle=MIDDLE,
                                   dead=DEAD, out="out"), tools, commits)


if __name__ == "__main__":
    main()

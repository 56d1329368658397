#!/usr/bin/env python3
"""compare_builds.py OLD NEW [COMMAND...]: whether two builds of the tool answer the same.

OLD and NEW are two programs. Each command line of the table below runs with both over
every bundled recording, in a folder of its own; stdout, stderr, the exit code and the
files that it writes must be equal, but for the version and for times that were measured.
Prints, for each command, how many command lines were equal, and of each that differs the
first line that does. Exit 1 if one differs.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SMALL = os.path.join(ROOT, "tests", "cli", "small.csv")
# `{}` is the recording; words after it are options. {small} is a csv, {made} a result file
# of the same tool, {out} a folder.
LINES = """
triage -q {} -c 24GiB -o {out}/page.html
triage -q {} -c 8GiB --process-limit 6GiB
explain -q {}
explain -q {} --json -
tune -q {}
tune -q {} --json -
fit -q {} -p torch -p best_fit
fit -q {} -p torch@recorded --json -
replay -q {} -p torch -p torch:expandable_segments:True -p best_fit -c inf,1.05x
replay -q {} -p torch@recorded -p expandable -p remap -p bfc -c inf,1.01x --json -
replay -q {} -p torch -c 1.1x --csv - --check
top -q {}
top -q {} --json -
steps -q {}
steps -q {} --json -
leaks -q {}
leaks -q {} --json -
summary -q {}
summary -q {} --json -
diff -q {} {}
diff -q {} {small} --json -
validate -q {}
validate -q {} --json -
info -q {}
info -q {} --json -
import -q {} -o {out}/trace.h5
edit -q {} -e scale:factor=2 -o {out}/edited.h5
export -q {} -t csv -o {out}/events.csv
export -q {} -t snapshot -o {out}/run.pickle
export -q {} -t chrome -p torch -o {out}/run.json
plot -q {} map -o {out}/map.html
plot -q {made} timeline -o {out}/timeline.svg
plot -q {made} compare -o {out}/compare.svg
report -q {made} -o {out}/review.html
merge -q {made} -o {out}/merged.h5
compare -q {} -p torch
check -q {}
"""
ONCE = """
gen
gen stationary -o {out}/made.h5
policies
policies torch
policies --json -
conf expandable_segments:True
conf max_split_size_mb:32,roundup_power2_divisions:4 --json -
help words
help results
help exits
sweep -q {small} -p best_fit -c inf,1.1x --need device -o {out}/sweep.h5 --csv -
"""
# What may differ: the version and the commit, and what a clock measured.
VARIES = re.compile(rb"fragsim \d\.\d\.\d+( \([0-9a-f]{7,}(-dirty)?\))?|"
                    rb"\"(ns_per_event|seconds|elapsed_seconds)\": ?[0-9.e+-]+|"
                    rb"[0-9a-f]{12}(-dirty)?")


def held(path):
    """A file's bytes; of HDF5, which has dates and versions, what h5dump shows of them."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"\x89HDF") and shutil.which("h5dump"):
        return subprocess.run(["h5dump", "-A", "0", path], capture_output=True,
                              check=False).stdout.replace(path.encode(), b"")
    return data


def answer(tool, line, recording):
    with tempfile.TemporaryDirectory() as out:
        made = os.path.join(out, "made.h5")
        environment = dict(os.environ, SOURCE_DATE_EPOCH="0", LC_ALL="C.UTF-8")
        if "{made}" in line:
            subprocess.run([tool, "replay", "-q", recording, "-p", "torch", "-p", "best_fit",
                            "-c", "inf,1.1x", "-o", made], env=environment, check=False,
                           capture_output=True)
        words = [word.format(recording, recording, small=SMALL, made=made, out=out)
                 for word in line.split()]
        done = subprocess.run([tool, *words], capture_output=True, check=False,
                              env=environment, stdin=subprocess.DEVNULL, timeout=600)
        parts = [str(done.returncode).encode(), done.stdout, done.stderr]
        for path in sorted(glob.glob(os.path.join(out, "*"))):
            parts += [os.path.basename(path).encode(), held(path)]
        return [VARIES.sub(b"", part.replace(out.encode(), b"")) for part in parts]


def first_difference(old, new):
    for a, b in zip(old, new):
        for left, right in zip(a.splitlines() + [b"(end)"], b.splitlines() + [b"(end)"]):
            if left != right:
                return f"{left[:150]!r} -> {right[:150]!r}"
    return None if len(old) == len(new) else "another number of files"


def main():
    old, new, *only = sys.argv[1:]
    recordings = [path for path in sorted(
        glob.glob(os.path.join(ROOT, "traces", "bundled", "**", "*"), recursive=True))
        if path.endswith((".xz", ".pt"))]
    jobs = [(line, recording) for line in LINES.split("\n") if line
            for recording in recordings]
    jobs += [(line, SMALL) for line in ONCE.split("\n") if line]
    jobs = [job for job in jobs if not only or job[0].split()[0] in only]
    equal, differ = {}, {}

    def judge(job):
        line, recording = job
        found = first_difference(answer(old, line, recording),
                                 answer(new, line, recording))
        return line, recording, found

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for line, recording, found in pool.map(judge, jobs):
            if found is None:
                equal[line] = equal.get(line, 0) + 1
            else:
                differ.setdefault(line, []).append((os.path.basename(recording), found))
    for line in dict.fromkeys(line for line, _ in jobs):
        wrong = differ.get(line, [])
        print(f"{equal.get(line, 0)} of {equal.get(line, 0) + len(wrong)}: {line}")
        for name, found in wrong[:3]:
            print(f"    {name}: {found}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()

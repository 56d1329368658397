#!/usr/bin/python3
"""check_damage.py [PLACES]: damages result files and trace files at hundreds of
places (a byte is changed, a run of bytes is changed, the file is cut off) and
runs the commands that read them. Each must end within the limit, by itself,
with a documented exit code. The files are those of this fragsim and of schema
1, whose texts have variable length.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SANITIZED, SMALL, earlier, need

DOCUMENTED = {0, 1, 2, 3, 4}
LIMIT = 30  # seconds, on a machine with other work; the tool needs 2 for each file
# The commands, and what {} and {out} stand for: the file, and an output.
RESULT = (("diff", "{}", "{}"), ("plot", "{}", "compare", "-o", "{out}.svg"),
          ("plot", "{}", "heatmap", "-o", "{out}2.svg"),
          ("report", "-q", "{}", "-o", "{out}.html"),
          ("merge", "-q", "{out}.h5", "{}"))
TRACE = (("info", "{}"), ("summary", "{}"),
         ("report", "-q", "{}", "-o", "{out}.html"),
         ("replay", "-q", "{}", "-p", "torch", "-o", "{out}.h5"))


def damaged(content, rng, places):
    """(name, bytes) of each damaged copy. The places are spread evenly, and the
    first 4 KiB, where most of the structure lies, have as many again."""
    size = len(content)
    for number in range(places):
        where = number * size // places if number % 2 else \
            rng.randrange(min(size, 4096))
        copy = bytearray(content)
        kind = ("byte", "bit", "run", "zeros", "cut")[number % 5]
        if kind == "byte":
            copy[where] ^= rng.randrange(1, 256)
        elif kind == "bit":
            copy[where] ^= 1 << rng.randrange(8)
        elif kind == "run":
            copy[where:where + 16] = rng.randbytes(len(copy[where:where + 16]))
        elif kind == "zeros":
            copy[where:where + 64] = bytes(len(copy[where:where + 64]))
        else:
            del copy[where:]
        yield f"{kind} at {where}", bytes(copy)


def run(command, path, out):
    """(exit code, seconds, stderr); the code is None past the limit."""
    words = [word.format(path, out=out) for word in command]
    begin = time.monotonic()
    try:
        done = subprocess.run([FRAGSIM, *words], check=False, timeout=LIMIT,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        return None, LIMIT, b""
    return done.returncode, time.monotonic() - begin, done.stderr


def try_all(job):
    folder, number, name, content, commands = job
    path = os.path.join(folder, f"{number}.h5")
    with open(path, "wb") as file:
        file.write(content)
    faults, codes = [], []
    for i, command in enumerate(commands):
        out = os.path.join(folder, f"{number}-{i}-out")
        code, _, words = run(command, path, out)
        codes.append(code)
        if code not in DOCUMENTED:
            faults.append(f"{name}: {command[0]}: exit code {code}: "
                          f"{words[:200]!r}")
        if code and not words:
            faults.append(f"{name}: {command[0]}: {code} without a message")
    os.unlink(path)
    return faults, codes


def check_kind(title, content, commands, places, folder):
    rng = random.Random(title)
    jobs = [(folder, number, f"{title}: {name}", copy, commands)
            for number, (name, copy) in
            enumerate(damaged(content, rng, places))]
    faults, refused, runs = [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found, codes in pool.map(try_all, jobs):
            faults += found
            refused += sum(1 for code in codes if code)
            runs += len(codes)
    print(f"{title}: {len(jobs)} damaged copies, {runs} commands, {refused} "
          f"refused, {len(faults)} faults")
    for fault in faults[:10]:
        print("  " + fault)
    return len(faults)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def made(folder, *words):
    out = os.path.join(folder, "made.h5")
    subprocess.run([FRAGSIM, *words, "-o", out], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    content = read(out)
    os.unlink(out)
    return content


def main():
    need(FRAGSIM)
    # Every place is read in a process of its own, which sanitizers slow down.
    usual = 12 if SANITIZED else 60
    places = int(sys.argv[1]) if len(sys.argv) > 1 else usual
    folder = tempfile.mkdtemp()
    try:
        trace = os.path.join(ROOT, "traces", "bundled", "two_streams.pt")
        results = made(folder, "replay", "-q", SMALL, "-p", "torch", "-p",
                       "best_fit", "-c", "inf,1MiB")
        old = earlier("results-1.0")
        imported = made(folder, "import", trace)
        faults = check_kind("results", results, RESULT, places, folder)
        faults += check_kind("results of schema 1", old, RESULT, places, folder)
        faults += check_kind("trace", imported, TRACE, places, folder)
    finally:
        shutil.rmtree(folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

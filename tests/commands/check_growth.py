#!/usr/bin/env python3
"""check_growth.py [--table] [NAME...]: how the work of each policy and each
command grows with its input, in instructions.

A policy replays n live blocks of random sizes (up to 4 MiB, most of them
small), of which half are freed in random order and requested again with other
sizes; and n / 8 large blocks (2 to 8 MiB) likewise. A command reads a recording
in which one thing is frequent, n / 32 times: live blocks, streams, or requests
that failed. Instructions are counted by the processor (perf stat) where it has
a counter for them, as virtual machines often have not, else by valgrind
(cachegrind), which gives the same count in each run.

A policy is measured at n, 2n and 8n, a command at n, 2n, 4n and 8n, because the
way in which it reads changes once in between. The exponent compares what the last
and the first step add, so that the cost of starting cancels: 1 is linear, 2 is
quadratic, and n log n is 1.1 at these sizes. Fails if an exponent exceeds MOST,
or the one that KNOWN states. --table prints rows for README.md. NAME: only rows
with such a text in their names. `./run test` measures one row in eight: valgrind takes
half a second to start, and three or four runs make a row.
Environment: FRAGSIM (default build/fragsim); FRAG_GROWTH_N: n, default 8000.
Exit 77 if neither counts, or if the tool has sanitizers, which valgrind cannot
run.
"""
import concurrent.futures
import json
import math
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, sample

N = int(os.environ.get("FRAG_GROWTH_N", "8000"))
MOST = 1.2
# The treap of pages under `paged` becomes deeper in steps. `remap`, which is also
# below plan_online, shares pages when nothing fits, and each wait for the device looks
# through all shared pages.
KNOWN = {"paged": 1.3, "remap, large": 1.45,
         "plan_online, large": 1.45}
EXPANDABLE = "torch:expandable_segments:True"


def small(rng):
    return rng.randrange(1, 1 << rng.randrange(9, 23))


def large(rng):
    return rng.randrange(2 << 20, 8 << 20)


def live_blocks(n, path, sizes):
    """n live blocks of random sizes; half are freed, half allocated again."""
    rng = random.Random(1)
    ids = list(range(n))
    rng.shuffle(ids)
    with open(path, "w", encoding="ascii") as out:
        out.write("op,id,bytes,stream\n")
        for i in range(n):
            out.write(f"alloc,{i},{sizes(rng)},0\n")
        for i in ids[:n // 2]:
            out.write(f"free,{i},,\n")
        for i in range(n // 2):
            out.write(f"alloc,{n + i},{sizes(rng)},0\n")


TIMES = {False: (1, 2, 8), True: (1, 2, 4, 8)}  # of a policy, of a command


def snapshot(entries, path):
    """A recording of PyTorch with these (action, address, size, stream)."""
    trace = [{"action": action, "addr": addr, "size": size, "stream": stream,
              "time_us": 1000 + i, "frames": [],
              **({"device_free": 1 << 20} if action == "oom" else {})}
             for i, (action, addr, size, stream) in enumerate(entries)]
    with open(path, "wb") as out:
        pickle.dump({"segments": [], "device_traces": [trace],
                     "allocator_settings": {}}, out, 4)


BASE = 0x302000000
MIB = 1 << 20


def segment(i, stream=0):
    """A segment with one block that fills it."""
    at = BASE + i * 2 * MIB
    return [("segment_alloc", at, 2 * MIB, stream), ("alloc", at, MIB, stream)]


def blocks(n, path):
    """n live blocks, freed at the end."""
    made = [e for i in range(n) for e in segment(i)]
    freed = [(action, at, MIB, 0) for _, at, _, _ in made[1::2]
             for action in ("free_requested", "free_completed")]
    snapshot(made + freed, path)


def streams(n, path):
    """n streams with a block each."""
    snapshot([e for i in range(n) for e in segment(i, i)], path)


def ooms(n, path):
    """n requests that failed, after each a step with a block."""
    entries = segment(0)
    for i in range(n):
        at = BASE + 2 * MIB
        entries += [("segment_alloc", at, 2 * MIB, 0), ("alloc", at, MIB, 0),
                    ("oom", 0, 64 << 30, 0),
                    ("free_requested", at, MIB, 0),
                    ("free_completed", at, MIB, 0),
                    ("segment_free", at, 2 * MIB, 0)]
    snapshot(entries, path)


# Words of the commands; {} is the input, which has n / PART things.
PART = 32
VERBS = {
    "info": ["info", "{}"],
    "validate": ["validate", "{}"],
    "top": ["top", "{}"],
    "steps": ["steps", "{}"],
    "leaks": ["leaks", "{}"],
    "summary": ["summary", "{}"],
    "explain": ["explain", "{}"],
    "import": ["import", "{}", "-o", "{}.h5", "-f"],
    "export": ["export", "{}", "-o", "{}.csv", "-f"],
    "replay": ["replay", "{}", "-p", "torch"],
    "triage": ["triage", "{}", "-c", "80GiB", "-o", "{}.html", "-f"],
}
# The least capacity is sought in steps of 2 MiB under expandable segments, and
# each stream adds a segment: steps x events is quadratic, and takes minutes.
LEFT_OUT = {("triage", "streams")}
INPUTS = {"blocks": blocks, "streams": streams, "OOMs": ooms}


def policies():
    listed = json.loads(subprocess.run(
        [FRAGSIM, "policies", "--json", "-"], check=True,
        capture_output=True).stdout)["policies"]
    names = [row["name"] for row in listed] + [EXPANDABLE]
    names.remove("plan")  # compares blocks that live at one time in pairs
    return names


# The command that counts, and where its output has the number.
COUNTERS = (
    (["perf", "stat", "-x,", "-e", "instructions:u"], r"^(\d+),,instructions:u"),
    (["valgrind", "--tool=cachegrind", "--cache-sim=no",
      "--cachegrind-out-file=/dev/null"], r"I +refs: +([\d,]+)"),
)


def counter():
    """The first counter that works here; None: there is none."""
    for words, number in COUNTERS:
        if shutil.which(words[0]):
            done = subprocess.run([*words, "true"], capture_output=True,
                                  text=True, check=False)
            if re.search(number, done.stderr, re.M):
                return words, number
    return None


def count(words):
    """Instructions of a run; a text that says why there is no number."""
    tool, number = COUNTER
    done = subprocess.run([*tool, FRAGSIM, *words, "-q"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, check=False)
    found = re.search(number, done.stderr, re.M)
    if done.returncode not in (0, 1) or not found:
        return done.stderr.strip()[-300:]
    return int(found.group(1).replace(",", ""))


def rows_of(folder):
    """(name, [words at n, 2n, ...]) of everything that is measured."""
    rows = []
    made = {}

    def log(kind, sizes, n):
        if (kind, n) not in made:
            path = made[kind, n] = os.path.join(folder, f"{kind}{n}.h5")
            live_blocks(n, path + ".csv", sizes)
            subprocess.run([FRAGSIM, "import", path + ".csv", "-o", path, "-q"],
                           check=True)
        return made[kind, n]

    def recording(kind, n):
        if (kind, n) not in made:
            path = made[kind, n] = os.path.join(folder, f"{kind}{n}.pickle")
            INPUTS[kind](n, path)
        return made[kind, n]

    for policy in policies():
        rows.append((policy, lambda k, p=policy: [
            "replay", log("small", small, N * k), "-p", p]))
        rows.append((f"{policy}, large", lambda k, p=policy: [
            "replay", log("large", large, N * k // 8), "-p", p]))
    for verb, words in VERBS.items():
        for kind in INPUTS:
            if (verb, kind) in LEFT_OUT:
                continue
            rows.append((f"{verb}, {kind}", lambda k, w=words, i=kind: [
                x.replace("{}", recording(i, N * k // PART)) for x in w]))
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")]
    rows = [r for r in rows if any(c in r[0] for c in chosen)] if chosen \
        else sample(rows, 8)
    return [(name, [words(k) for k in TIMES["," in name and
                                            "large" not in name]])
            for name, words in rows]


COUNTER = counter()


def exponent(counts):
    """e, if the work is a + b n^e."""
    ratio = (counts[-1] - counts[-2]) / (counts[1] - counts[0])
    if len(counts) == 4:
        return math.log2(ratio) / 2
    # With x = 2^e, the steps are as x^3 - x to x - 1, which is x (x + 1).
    return math.log2((math.sqrt(1 + 4 * ratio) - 1) / 2)


def has_sanitizers():
    with open(FRAGSIM, "rb") as tool:
        return b"__asan_init" in tool.read()


def main():
    if not COUNTER or not os.access(FRAGSIM, os.X_OK) or has_sanitizers():
        print("check_growth: no counter (perf stat or valgrind), no tool, or a "
              "tool with sanitizers: instructions cannot be counted; skipped")
        return 77
    table = "--table" in sys.argv
    faults = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = rows_of(folder)
        for (name, _), counts in zip(rows, pool.map(
                lambda r: [count(words) for words in r[1]], rows)):
            said = next((c for c in counts if isinstance(c, str)), None)
            grows = 0 if said else exponent(counts)
            bad = said or grows > KNOWN.get(name, MOST)
            faults += bool(bad)
            millions = " | ".join(f"{c / 1e6:.1f}" for c in counts) \
                if not said else said
            if table:
                print(f"| `{name}` | {millions} | {grows:.2f} |", flush=True)
            elif bad:
                print(f"{name}: exponent {grows:.2f}; millions of "
                      f"instructions: {millions}", flush=True)
    print(f"check_growth: {len(rows)} rows, {faults} faults", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

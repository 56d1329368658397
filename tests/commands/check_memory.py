#!/usr/bin/env python3
"""check_memory.py: checks that the memory of a replay does not grow with its
trace.

A bundled recording is repeated to half a million events and to sixteen times as
many. Besides the mapped trace file (page cache), both replays must stay under
32 MiB, and the long one must not exceed the short one by more than a tenth plus
1 MiB. The pages of the trace file that a replay has passed are released, so the
resident pages of files stay under MAPPED for both. If the memory of a replay was
read fewer than LEAST times, the measurement is invalid and the check fails; a
program that has already ended proves that this happens.
usage: FRAGSIM=TOOL check_memory.py [REPEAT]   prints the peaks
"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SANITIZED

MAPPED = 64 * 2**20
LEAST = 5  # samples of a replay, 2 ms apart
TRACE = os.path.join(ROOT, "traces", "bundled", "gpt2_train.pickle.xz")


def resident(pid):
    """Bytes of memory of the process: those that are not backed by a file, and
    those that are."""
    found = {"RssAnon": 0, "RssFile": 0}
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024
    return found["RssAnon"], found["RssFile"]


def start(command, stdin=None):
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL)


def watch(run):
    """The most memory of both kinds that a running program had at any reading.
    """
    samples = []
    while run.poll() is None:
        try:
            samples.append(resident(run.pid))
        except OSError:
            break
        time.sleep(0.002)
    code = run.wait()
    if code:
        sys.exit(f"check_memory: the replay ended with {code}")
    samples = [s for s in samples if s[0]]
    if len(samples) < LEAST:
        sys.exit(f"check_memory: {len(samples)} samples of the replay, "
                 f"expected at least {LEAST}")
    return max(s[0] for s in samples), max(s[1] for s in samples)


def prove():
    """Checks that a program that has ended is not counted as a replay without
    memory."""
    ended = start(["true"])
    ended.wait()
    try:
        watch(ended)
    except SystemExit:
        return
    sys.exit("check_memory: it accepts a program whose memory it never read")


def peak(folder, repeat):
    trace = os.path.join(folder, f"{repeat}.h5")
    subprocess.run([FRAGSIM, "import", "-q", TRACE, "-o", trace, "-e",
                    f"repeat:times={repeat}"], check=True)
    most, mapped = watch(start([FRAGSIM, "replay", "-q", trace, "--csv", "-", "-p",
                        "torch", "-p", "size_class"]))
    size = os.path.getsize(trace)
    os.unlink(trace)
    print(f"{repeat:6} x: trace {size / 2**20:8.1f} MiB, "
          f"memory {most / 2**20:6.2f} MiB, "
          f"mapped {mapped / 2**20:6.2f} MiB")
    if mapped > MAPPED:
        sys.exit("check_memory: the pages that were passed stay resident")
    return most


def check_growth(what, short, long):
    if long >= 32 * 2**20 or long > short * 1.1 + 2**20:
        sys.exit(f"check_memory: the memory of a replay grew with its {what}")


def main():
    if SANITIZED:
        print("check_memory: a sanitizer's own memory would be measured; "
              "skipped")
        return 77
    prove()
    repeat = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    with tempfile.TemporaryDirectory() as folder:
        check_growth("trace", peak(folder, repeat), peak(folder, 16 * repeat))
    return 0


if __name__ == "__main__":
    sys.exit(main())

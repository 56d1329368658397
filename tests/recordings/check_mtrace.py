#!/usr/bin/env python3
"""check_mtrace.py: counts the calls of the bundled mtrace log with rules of its
own, and of a log that glibc writes now where its malloc_debug library and a C
compiler are there, and compares the counts with those of fragsim.
Environment: FRAGSIM (the tool; default build/fragsim), CC (default cc).
"""
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT

BUNDLED = os.path.join(ROOT, "traces", "bundled", "recorded",
                       "fragsim_leaks.mtrace.xz")
CALL = re.compile(r"(?:@ .* )?([-+<>!]) (\S+)(?: (\S+))?")
PROGRAM = r"""
#include <mcheck.h>
#include <stdint.h>
#include <stdlib.h>

int main(void)
{
    void *volatile blocks[100];
    void *volatile none;

    mtrace();
    for (size_t i = 0; i < 100; i++)
        blocks[i] = calloc(i, 24);
    for (size_t i = 0; i < 100; i += 3)
        blocks[i] = realloc(blocks[i], 4000 * (i + 1));
    none = malloc(SIZE_MAX / 4);
    for (size_t i = 1; i < 100; i += 2)
        free(blocks[i]);
    muntrace();
    return none != NULL;
}
"""


def count(text):
    """What `info` states of a log: requests, frees, failures, peak, end."""
    live, held, peak, unknown = {}, 0, 0, 0
    allocs = frees = failures = 0
    for line in text.splitlines():
        call = CALL.fullmatch(line)
        if not call:
            assert line.startswith("="), line
            continue
        op, pointer, size = call.groups()
        if op in "+>" and pointer != "(nil)":
            assert pointer not in live, line
            live[pointer] = max(int(size, 0), 1)
            held += live[pointer]
            peak = max(peak, held)
            allocs += 1
        elif op in "+!":
            failures += 1
        elif pointer in live:
            held -= live.pop(pointer)
            frees += 1
        else:
            unknown += 1
    return {"alloc": allocs + failures, "free": frees + failures,
            "failed": failures, "peak": peak, "end": held, "unknown": unknown}


def read(path):
    text = subprocess.run([FRAGSIM, "info", "--json", "-", path], text=True,
                          check=True, capture_output=True).stdout
    row = json.loads(text)["results"][0]
    device = row["devices"][0]
    assert row["format"] == "mtrace", row
    unknown = re.search(r"(\d+) frees are of blocks", "\n".join(row["notes"]))
    return {"alloc": device["requests"]["alloc"],
            "free": device["requests"]["free"],
            "failed": device["failed_requests"],
            "peak": device["peak_requested_bytes"],
            "end": device["end_live_bytes"],
            "unknown": int(unknown.group(1)) if unknown else 0}


def record(folder):
    """Returns the path of a log, or None if it cannot be recorded here."""
    source, program, log = (os.path.join(folder, name)
                            for name in ("a.c", "a b", "run.mtrace"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    try:
        subprocess.run([os.environ.get("CC", "cc"), "-w", "-o", program,
                        source], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    subprocess.run([program], check=False, stderr=subprocess.DEVNULL,
                   env={"MALLOC_TRACE": log,
                        "LD_PRELOAD": "libc_malloc_debug.so.0"})
    return log if os.path.exists(log) else None


def main():
    with lzma.open(BUNDLED, "rt") as file:
        wanted = count(file.read())
    assert read(BUNDLED) == wanted, (read(BUNDLED), wanted)
    assert wanted["unknown"] and wanted["alloc"] > 5000, wanted
    with tempfile.TemporaryDirectory() as folder:
        log = record(folder)
        if not log:
            print("no libc_malloc_debug.so.0 or no compiler: no log is "
                  "recorded")
            return 0
        with open(log, encoding="utf-8") as file:
            wanted = count(file.read())
        assert read(log) == wanted, (read(log), wanted)
        assert wanted["alloc"] >= 135 and wanted["free"] > 80, wanted
    return 0


if __name__ == "__main__":
    sys.exit(main())

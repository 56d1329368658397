#!/usr/bin/env python3
"""check_recorder_programs.py: checks tests/gpu/record/recorder_programs.py.

The program without a library runs under the recorder on the stand-in of
check_record.sh; the allocators are invented: what they say is compared with
traces written here.
Environment: FRAGSIM (the tool), FRAG_BUILD_DIR (default build).
"""
import csv
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM, ROOT

STAND_IN = os.path.join(BUILD, "tests", "record")
RECORD = os.path.join(ROOT, "tests", "gpu", "record")
sys.path.insert(0, RECORD)
import recorder_programs as programs  # noqa: E402

failures = []


def expect(holds, words):
    if not holds:
        failures.append(words)
        print(words)


MIB = 1 << 20
TRACE = f"""op,id,bytes,stream
alloc,1,{2 * MIB},0
alloc,2,300,0
free,1,,
alloc,3,{20 * MIB},0
alloc,1,{programs.MARK},0
free,1,,
alloc,1,7,0
"""
ALL = [2 * MIB, 300, 20 * MIB]

# What an allocator says, and how the difference begins ('': none).
SAID = (
    ({"sizes": ALL}, ""),
    ({"sizes": ALL[:2]}, "request 2: said [], recorded [20971520]; 2 said, 3"),
    ({"sizes": [2 * MIB, 301, 20 * MIB]}, "request 1: said [301, 20971520]"),
    ({"sizes": ALL + [1]}, "request 3: said [1], recorded []; 4 said, 3"),
    ({"count": 3, "now": 20 * MIB + 300, "peak": 20 * MIB + 300}, ""),
    ({"count": 2}, "2 requests said, 3 recorded"),
    ({"now": 20 * MIB}, "now: 20971520 bytes said, 20971820 recorded"),
    ({"peak": 7}, "peak: 7 bytes said, 20971820 recorded"),
    ({"sizes": ALL, "now": 1}, "now: 1 bytes said"),
    ({"graphs": 20 * MIB}, ""),
    ({"graphs": 22 * MIB}, ""),
    ({"graphs": 21 * MIB}, "graphs: 22020096 bytes said"),
    ({"graphs": 0}, "the graph has no memory of its own"),
)


def compares():
    found = programs.seen(TRACE)
    expect(found == {"sizes": ALL, "now": 20 * MIB + 300,
                     "peak": 20 * MIB + 300}, f"seen: {found}")
    for said, wanted in SAID:
        words = programs.difference(said, found)
        expect(words.startswith(wanted) and bool(words) == bool(wanted),
               f"{said}: {words}, not {wanted}")
    try:
        programs.seen("op,id,bytes,stream\nalloc,1,5,0\n")
        expect(False, "a trace without a mark is no error")
    except RuntimeError:
        pass


def records(folder):
    """The driver's own program, with the tool; a library that is absent."""
    out = os.path.join(folder, "r.csv")
    done = subprocess.run(
        [sys.executable, os.path.join(RECORD, "recorder_programs.py"),
         "--fragsim", FRAGSIM, "-o", out, "driver"],
        env=dict(os.environ, LD_LIBRARY_PATH=STAND_IN), text=True,
        capture_output=True, check=False)
    expect(done.returncode == 0, f"driver: {done.stdout} {done.stderr}")
    with open(out, encoding="utf-8") as file:
        expect(file.readline().startswith("# device "), "no first line")
        rows = list(csv.DictReader(file))
    asked = [size for is_alloc, _, size in programs.series(100) if is_alloc]
    expect([(r["same"], r["segments"]) for r in rows]
           == [("1", str(len(asked)))], f"driver: {rows}")


def main():
    if not os.path.exists(os.path.join(STAND_IN, "libcuda.so.1")):
        print(f"check_recorder_programs: no {STAND_IN}/libcuda.so.1; skipped")
        sys.exit(77)
    compares()
    with tempfile.TemporaryDirectory() as folder:
        records(folder)
    if failures:
        sys.exit(f"check_recorder_programs: {len(failures)} wrong")


main()

#!/usr/bin/env python3
"""check_recipes.py: runs each recipe of `fragsim help recipes` as a user pastes
it into a shell, on small files that are made here and on the samples of other
tools, and compares what fragsim reads from the CSV.

Parts without their program (sqlite3, memray, zstd) or without the samples are left
out, with a line that says so; skipped (77) if no part can run.
Environment: FRAGSIM (the tool), FRAG_SHARED_DIR (the samples).
"""
import functools
import importlib.util
import json
import lzma
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED

SAMPLES = os.path.join(os.path.abspath(SHARED), "formats", "samples")
MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"


def run(*arguments, **options):
    return subprocess.run(arguments, check=True, capture_output=True, text=True,
                          **options).stdout


def recipes():
    """{name: the lines to paste}."""
    text = run(FRAGSIM, "help", "recipes")
    parts = re.split(r"^(\w+): .*\n\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def paste(lines):
    done = subprocess.run(["bash", "-e"], input=lines, text=True, check=False,
                          capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def facts(path):
    return json.loads(run(FRAGSIM, "info", "--json", "-", path))["results"][0][
        "devices"][0]


def unpack(sample, name):
    with lzma.open(os.path.join(SAMPLES, sample)) as packed, \
            open(name, "wb") as file:
        shutil.copyfileobj(packed, file)


def expected(folder):
    with open(os.path.join(SAMPLES, folder, "expected.json"),
              encoding="utf-8") as file:
        return json.load(file)


def make_report():
    """A report whose rows are not in the order of time. It has a free of an
    older block, a block of another kind, of another device, and two contexts
    with the same address."""
    rows = [ # start, pid, device, context, address, bytes, kind, op, stream
        (50, 1, 0, 1, 4096, 512, 2, 1, None),
        (20, 1, 0, 1, 4096, 512, 2, 0, 7),
        (10, 1, 0, 1, 8192, 2048, 2, 1, None),
        (30, 1, 0, 2, 4096, 1024, 2, 0, None),
        (31, 1, 0, 1, 65536, 9999, 1, 0, None),
        (32, 1, 1, 1, 65536, 9999, 2, 0, None),
        (60, 1, 0, 1, 4096, 256, 2, 0, 9),
    ]
    with sqlite3.connect("report.sqlite") as report:
        report.execute(
            f"CREATE TABLE {MEMORY} (start, globalPid, deviceId, contextId,"
            " address, bytes, memKind, memoryOperationType, streamId,"
            " correlationId)")
        report.executemany(f"INSERT INTO {MEMORY} VALUES"
                           " (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)", rows)
    report.close()


def check_nsys(lines):
    if not shutil.which("sqlite3"):
        print("nsys: no sqlite3; left out")
        return False
    make_report()
    done = subprocess.run([FRAGSIM, "info", "report.sqlite"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 3 and "help recipes" in done.stderr, done
    paste(lines)
    with open("events.csv", encoding="utf-8") as file:
        words = [line.strip().split(",") for line in file]
    assert [row[0] for row in words[1:]] == ["alloc", "alloc", "free",
                                             "alloc"], words
    found = facts("events.csv")
    assert found["peak_requested_bytes"] == 512 + 1024, found
    assert found["end_live_bytes"] == 1024 + 256, found
    assert found["num_streams"] == 3, found
    if os.path.isdir(SAMPLES):
        unpack("nsys/synthetic_schema_3.16.sqlite.xz", "report.sqlite")
        paste(lines)
        found, name = facts("events.csv"), "synthetic_schema_3.16.sqlite.xz"
        wanted = expected("nsys")[name]
        assert found["requests"]["alloc"] == wanted["allocs"], found
        assert found["requests"]["free"] == wanted["frees"], found
        assert found["peak_requested_bytes"] == wanted["peak_live_bytes"]
        assert found["end_live_bytes"] == wanted["end_live_bytes"]
        print(f"nsys/{name}: equal")
    return True


ASSIGNMENT = """BufferAssignment:
allocation 0: size 4096, parameter 0, shape |f32[1024]| at ShapeIndex {}:
 value: <1 p @0> (size=4096,offset=0): f32[1024]{0}
allocation 1: size 3072, preallocated-temp:
 value: <2 a @0> (size=1024,offset=0): f32[256]{0}
 value: <3 b.1{0} @0> (size=2048,offset=1024): f32[512]{0}
 value: <4 c @0> (size=1024,offset=0): f32[256]{0}
allocation 2: size 512, maybe-live-out:
 value: <5 out @0> (size=512,offset=0): f32[128]{0}
"""
RANGES = """HloLiveRange (max 9):
  InstructionSequence:
    0:p
  BufferLiveRange:
    p{}:0-9
    a{}:1-4
    b.1{0}:2-6
    c{}:4-4
    out{}:6-9
"""


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def check_xla(lines):
    write("MODULE-buffer-assignment.txt", ASSIGNMENT)
    write("MODULE-live-range.txt", RANGES)
    paste(lines)
    with open("buffers.csv", encoding="utf-8") as file:
        assert file.read() == ("id,lower,upper,size\na,1,4,1024\n"
                               "b.1{0},2,6,2048\nc,4,5,1024\n")
    assert facts("buffers.csv")["peak_requested_bytes"] == 3072
    if os.path.isdir(SAMPLES):
        for part in ("buffer-assignment", "live-range"):
            unpack(f"xla_tf/jit_step-{part}.txt.xz", f"MODULE-{part}.txt")
        paste(lines)
        found, wanted = facts("buffers.csv"), expected("xla_tf")
        wanted = wanted["jit_step (XLA dump)"]
        assert found["requests"]["alloc"] == wanted["buffers"], found
        assert found["peak_requested_bytes"] == \
            wanted["max_load_end_exclusive"], found
        print("xla_tf/jit_step: equal")
    return True


PROGRAM = """kept = [bytearray(100000) for _ in range(50)]
del kept
"""


def check_memray(lines):
    if not importlib.util.find_spec("memray"):
        print("memray: not installed; left out")
        return False
    write("program.py", PROGRAM)
    run(sys.executable, "-m", "memray", "run", "-q", "-o", "run.bin",
        "program.py")
    done = subprocess.run([FRAGSIM, "info", "run.bin"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 3 and "memray" in done.stderr, done
    paste(lines.replace("python3", sys.executable))
    found = facts("events.csv")
    assert found["requests"]["free"] >= 50, found
    assert found["peak_requested_bytes"] >= 50 * 100000, found
    assert found["end_live_bytes"] < 100000, found
    return True


# The file that a recipe reads. Such a file itself is refused with the name of
# the script.
LOGS = {"heaptrack": "heaptrack.PROGRAM.zst", "android": "calls.txt",
        "mtrace": "run.mtrace", "umpire": "umpire.stats",
        "rocprof": "memory_allocation_trace.csv"}
# Of foreign/android/systemui.zip, as the importer of fragsim 0.1 counted.
SYSTEMUI = {"allocs": 421234, "frees": 367589, "peak_live_bytes": 10441710,
            "end_live_bytes": 8396632}


def check_log(tool, name, path, lines, wanted):
    """Compares the CSV of a log with what an independent reader counted."""
    log = LOGS[tool]
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rb") as packed, open(log, "wb") as file:
        shutil.copyfileobj(packed, file)
    done = subprocess.run([FRAGSIM, "info", log], text=True, check=False,
                          capture_output=True)
    assert done.returncode == 3 and f"{tool}_to_csv.py" in done.stderr, done
    paste(lines.replace("python3", sys.executable))
    found = facts("events.csv")
    empty = wanted.get("zero_byte_allocs", 0) * (tool == "umpire")
    frees = wanted["frees"] + wanted.get("unmatched_frees", 0)
    counts = [found["requests"]["alloc"] + empty,
              found["requests"]["free"] + empty,
              found["peak_requested_bytes"], found["end_live_bytes"]]
    assert counts == [wanted["allocs"], frees, wanted["peak_live_bytes"],
                      wanted["end_live_bytes"]], (name, counts, wanted)
    print(f"{tool}/{name}: equal")


def check_logs(tool, lines):
    folder = os.path.join(SAMPLES, tool)
    if not os.path.isdir(SAMPLES) or not shutil.which("zstd"):
        print(f"{tool}: no samples in ../shared, or no zstd; left out")
        return False
    if tool == "android":
        with zipfile.ZipFile(os.path.join(
                SHARED, "foreign", "android", "systemui.zip")) as packed:
            path = packed.extract("systemui.txt")
        check_log(tool, "systemui.zip", os.path.abspath(path), lines, SYSTEMUI)
        return True
    for name, wanted in expected(tool).items():
        check_log(tool, name, os.path.join(folder, name), lines, wanted)
    return True


def main():
    checks = {"nsys": check_nsys, "xla": check_xla, "memray": check_memray}
    for tool in LOGS:
        checks[tool] = functools.partial(check_logs, tool)
    lines = recipes()
    assert lines.keys() == checks.keys(), lines.keys()
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, check in checks.items():
            done += check(lines[name])
        os.chdir(ROOT)
    return 0 if done else 77


if __name__ == "__main__":
    sys.exit(main())

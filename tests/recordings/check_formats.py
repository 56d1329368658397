#!/usr/bin/env python3
"""check_formats.py: imports every sample of ../shared/formats/samples and compares
its counts with expected.json, which was computed without fragsim. A sample that
no importer reads must be refused with the words in REFUSED.

Environment: FRAGSIM (the tool), FRAG_SHARED_DIR (skips without the samples).
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import SHARED, attempt

SAMPLES = os.path.join(SHARED, "formats", "samples")

# The folders whose samples an importer reads.
READ = ["kineto", "rmm"]
# Samples that are refused: exit code 3 and these words on stderr.
REFUSED = {
    ("kineto", "kineto_1.9_noaddr_cuda.json.gz"): 'expected "Addr"',
    ("kineto", "hta_timeline.raw.gz"): "found a memory timeline",
    ("kineto", "timeline.raw.json.gz"): "found a memory timeline",
    ("kineto", "timeline.points.json"): "found a memory timeline",
    ("ltrace", "ltrace.txt"): "a report of valgrind, ltrace",
    ("nsys", "flameox_2025.5.2_no_memory_rows.sqlite.xz"):
        "nsys profile --cuda-memory-usage=true",
    ("nsys", "synthetic_schema_3.16.sqlite.xz"): "fragsim help recipes",
    ("valgrind", "dhat.json.xz"): "a report of valgrind",
    ("valgrind", "massif.out.xz"): "a report of valgrind",
    ("valgrind", "memcheck_trace_malloc.txt"): "a report of valgrind",
    ("viewers", "bad_category_without_unknown.pickle"): "'segment_type'",
    ("viewers", "bad_no_device.pickle"): "'segment_type'",
    ("viewers", "bad_protocol5.pickle"): "'segment_type'",
    ("viewers", "pprof_minimal.pb.gz"): "a profile of pprof or speedscope",
    ("viewers", "speedscope_minimal.json"): "a profile of pprof or speedscope",
    ("xla_tf", "jax_device_memory.pprof.gz"): "a profile of pprof or speedscope",
    ("xla_tf", "jit_step-buffer-assignment.txt.xz"): "fragsim help recipes",
    ("xla_tf", "jit_step-buffer-assignment-values.txt.xz"):
        "a memory report of XLA",
    ("xla_tf", "jit_step-live-range.txt.xz"): "a memory report of XLA",
    ("xla_tf", "jit_step-memory-usage-report.txt.xz"): "a memory report of XLA",
    ("xla_tf", "tf_bfc_cpu_2.21.log.xz"): "TensorFlow's BFC allocator",
}
# key of expected.json: what `info --json` states of a device.
COUNTS = {
    "allocs": lambda d: d["requests"]["alloc"] - d["failed_requests"],
    "frees": lambda d: d["requests"]["free"] - d["failed_requests"],
    "failures": lambda d: d["failed_requests"],
    "unmatched_frees": lambda d: d["initial_blocks"],
    "peak_live_bytes": lambda d: d["peak_requested_bytes"],
    "end_live_bytes": lambda d: d["end_live_bytes"],
}


def info(path):
    done = attempt("info", "--json", "-", path)
    assert done.returncode == 0, (path, done.stderr)
    return json.loads(done.stdout)["results"][0]


def kineto(wanted):
    """The counts of the devices that the trace has: the GPUs, or else the CPU.
    What was live before the first event is a part of the trace: one initial
    block for the bytes that are never freed, and the block of every unmatched
    free, which is a free of the trace too."""
    devices = wanted["devices"]
    gpus = {name: one for name, one in devices.items() if name[:2] != "0:"}
    for one in (gpus or devices).values():
        before = one["live_before_first_event"]
        rest = before > one.get("unmatched_free_bytes", 0)
        yield dict(one, unmatched_frees=one["unmatched_frees"] + rest,
                   frees=one["frees"] + one["unmatched_frees"],
                   peak_live_bytes=one["total_allocated_max"],
                   end_live_bytes=one["total_allocated_end"])


# How the counts of expected.json read for each device of a trace. One row for
# a trace of several devices: it is compared with their sums.
WANTED = {"kineto": kineto}


def check(folder, name, wanted, devices):
    """Returns the number of counts that were compared."""
    number = 0
    for key, value in COUNTS.items():
        if key not in wanted:
            continue
        found = sum(value(device) for device in devices)
        assert found == wanted[key], (folder, name, key, found, wanted[key])
        number += 1
    return number


def check_all(folder, name, wanted, devices):
    """Compares each device, or the sums of all with one row."""
    rows = list(WANTED.get(folder, lambda one: [one])(wanted))
    if len(rows) == 1:
        return check(folder, name, rows[0], devices)
    assert len(rows) == len(devices), (folder, name, len(devices))
    return sum(check(folder, name, row, [device])
               for row, device in zip(rows, devices))


def main():
    if not os.path.isdir(SAMPLES):
        print(f"skipped: no folder {SAMPLES}")
        return 77
    for folder in READ:
        with open(os.path.join(SAMPLES, folder, "expected.json"),
                  encoding="utf-8") as file:
            expected = json.load(file)
        for name, wanted in expected.items():
            path = os.path.join(SAMPLES, folder, name)
            if (folder, name) in REFUSED:
                continue
            devices = info(path)["devices"]
            number = check_all(folder, name, wanted, devices)
            print(f"{folder}/{name}: {number} counts equal")
    for (folder, name), words in REFUSED.items():
        done = attempt("info", os.path.join(SAMPLES, folder, name))
        assert done.returncode == 3 and words in done.stderr, done
        print(f"{folder}/{name}: refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())

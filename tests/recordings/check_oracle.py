#!/usr/bin/env python3
"""check_oracle.py [TRACE...]: compares the torch policy with PyTorch's own
allocator.

../shared/oracle/oracle.jsonl.xz holds the results of PyTorch's allocator on a
GPU for the requests of a recording under certain settings and a memory limit of
the process. Each replay is repeated with `fragsim replay`. The event streams come from
events.py in the same folder, which shares no code with fragsim.

Prints `N of 342` for each number and names each difference. Exit 1 if a number
that must agree differs, 77 if ../shared or the tool is absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import concurrent.futures
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, SHARED, need

OPS = ("alloc", "free", "empty_cache")


def field(name):
    return lambda row: row[name]


def sum_of(*names):
    return lambda row: sum(row[name] for name in names)


# The oracle's name of a number, and ours.
MUST = {
    "peak_reserved": field("peak_reserved_bytes"),
    "first_oom_index": field("first_oom_event"),
    "segments_allocated": field("num_segment_alloc"),
    "retries": field("num_alloc_retries"),
}
TOLD = {
    "peak_allocated": field("peak_allocated_bytes"),
    "peak_active": field("peak_active_bytes"),
    "peak_requested": field("peak_requested_bytes"),
    # Of a run that ends in an OOM, the oracle's includes the freeing of all.
    "peak_inactive_split": field("peak_inactive_split_bytes"),
    "end_reserved": field("end_reserved_bytes"),
    # PyTorch counts no segment where segments are expandable; we count mapped
    # ranges, so that such runs can be compared with others.
    "segments_peak": lambda row: row["peak_segments"]
    if row["num_segment_alloc"] or not row["num_map"] else 0,
    # PyTorch counts ranges, we count calls of the driver: one a page.
    "device_alloc": sum_of("num_segment_alloc", "num_map"),
    "device_free": sum_of("num_segment_free", "num_unmap"),
}


def policy_of(job):
    """The job's settings, under the release of the oracle; the requests are a
    text that names no release."""
    return f"torch@2.11:{job['conf']}"


def write_csv(trace, path, convert):
    """Writes the requests of a recording; returns the number of events. Blocks
    that are live after the last event are freed in the order of their ids, as
    the oracle does before it reads the counters; a run that ends in an OOM ends
    before that."""
    source = os.path.join(SHARED, "recorded", "dev", f"{trace}.pickle.xz")
    with lzma.open(source) as stream:
        events = convert(pickle.load(stream))
    live = {block for op, _, block, _ in events if op == 0}
    live -= {block for op, _, block, _ in events if op == 1}
    with open(path, "w", encoding="ascii") as out:
        out.write("op,id,bytes,stream\n")
        for op, stream, block, size in events:
            out.write(f"{OPS[op]},{block},{size},{stream}\n")
        out.writelines(f"free,{block},0,0\n" for block in sorted(live))
    return len(events)


def run(path, jobs, cap, option):
    """fragsim's rows for jobs of one trace and one limit."""
    command = [FRAGSIM, "replay", path, "-q", "--json", "-", "--stop-at-oom",
               "--total", str(jobs[0]["device_total"])]
    command += [option, f"{cap}B"] if cap else []
    for job in jobs:
        command += ["-p", policy_of(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n"
                         f"exit {done.returncode}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)["results"]
    if len(rows) != len(jobs):
        raise SystemExit(f"{path}: {len(jobs)} jobs gave {len(rows)} rows")
    return rows


def replay(trace, jobs, folder, convert, option):
    """[(job, row)] for all jobs of one trace."""
    path = os.path.join(folder, f"{trace}{option}.csv")
    count = write_csv(trace, path, convert)
    groups = {}
    for job in jobs:
        if job["n_events"] != count:
            raise SystemExit(f"{trace}: {count} events, not {job['n_events']}")
        groups.setdefault(job["cap"], []).append(job)
    pairs = []
    for cap, group in groups.items():
        pairs += zip(group, run(path, group, cap, option))
    os.remove(path)
    return pairs


def load_jobs(wanted):
    jobs = {}
    with lzma.open(os.path.join(SHARED, "oracle", "oracle.jsonl.xz")) as lines:
        for line in lines:
            job = json.loads(line)
            if not wanted or job["trace"] in wanted:
                jobs.setdefault(job["trace"], []).append(job)
    return jobs


def compare(pairs, numbers):
    """{number: [descriptions of differences]}"""
    misses = {name: [] for name in numbers}
    for job, row in pairs:
        for name, ours in numbers.items():
            if ours(row) != job[name]:
                misses[name].append(
                    f"{job['trace']} conf '{job['conf']}' cap {job['cap']}: "
                    f"{name} expected {job[name]}, found {ours(row)}")
    return misses


def compare_all(jobs, option, convert):
    """The same for all jobs, whose limit is passed with that option."""
    misses = {name: [] for name in {**MUST, **TOLD}}
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        replays = [pool.submit(replay, trace, group, folder, convert, option)
                   for trace, group in jobs.items()]
        for done in replays:
            for name, texts in compare(done.result(),
                                       {**MUST, **TOLD}).items():
                misses[name] += texts
    return misses


def main():
    if not os.path.isdir(os.path.join(SHARED, "oracle")):
        print("check_oracle: ../shared/oracle is absent; skipped")
        return 77
    need(FRAGSIM)
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(SHARED, "oracle"))
    import events  # pylint: disable=import-error,import-outside-toplevel

    jobs = load_jobs(sys.argv[1:])
    total = sum(len(group) for group in jobs.values())
    misses = compare_all(jobs, "--process-limit", events.convert)
    for name, texts in misses.items():
        for text in texts[:None if name in MUST else 3]:
            print(text)
    for name, texts in misses.items():
        note = "" if name in MUST else "  (reported only)"
        print(f"{name}: {total - len(texts)} of {total}{note}")
    # The limit is no capacity: a full device gives other runs.
    full = compare_all(jobs, "--capacity", events.convert)
    for name in MUST:
        print(f"on a full device instead, {name}: "
              f"{total - len(full[name])} of {total}  (reported only)")
    return 1 if total == 0 or any(misses[name] for name in MUST) or \
        not full["peak_reserved"] else 0


if __name__ == "__main__":
    sys.exit(main())

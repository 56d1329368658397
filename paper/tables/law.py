#!/usr/bin/env python3
"""law.py [-j N] [--again]: what allocators that map pages need, beside the law of the paper.

The law: an allocator that maps pages of P bytes and returns free ones when it is refused
serves a request of s bytes if it has

    live bytes + s + 2 (R + 1) P

where R counts the runs of live blocks: maximal rows without a hole. The request itself is
at most one run more. There are at most as many runs as live blocks: `law_bytes` counts every
live block as a run of its own, which needs the trace alone and holds for any placement;
`runs_bytes` counts the runs of the policy at its need. Both are the most over all requests. Pages
of a stream's large and small blocks may differ, as PyTorch's do; then each end counts with
the page of its block.

Writes data/law.csv: for each recording, device and policy the need as the capacity of a
device (`fragsim fit`), the least capacity at which all is served (fit_bytes), the peak
reserved without a bound, and the calls that map, unmap, allocate or free at the need.
The recordings are all of ../shared that have requests of their own, without the one of a
million events; the jobs that died as they were recorded. The last rows are of a made trace, an
adversary against which the law is tight: small blocks over the borders of pages stay alive,
and what lay between them is freed. About 25 minutes of one core; with --again the needs
stay as they are in data/law.csv, and only the four columns of the law are made again, in a
few minutes.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import csv
import glob
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import read_csv, replayed, write_csv
from places import DATA
from policy_table import FRAGSIM, SHARED

MIB = 1 << 20
COLUMNS = ["trace", "device", "policy", "small_page_bytes", "page_bytes",
           "lower_bound_bytes", "need_bytes", "fit_bytes", "peak_reserved_bytes", "calls",
           "live_blocks", "law_bytes", "runs", "runs_bytes"]
EXP = "torch:expandable_segments:True"
# policy: (page of blocks of up to 1 MiB, page of the others), or None if the policy
# maps no pages.
SETTINGS = {
    "torch": None, "best_fit": None, "best_fit:segment=2MiB": None,
    EXP: (2, 20), EXP + ",large_segment_size_mb:12": (2, 12),
    EXP + ",experiment:small_pages": (2, 2),
    **{f"expandable:page={p}MiB,largest={p}MiB": (p, p) for p in (20, 12, 2)},
    "remap": (2, 2)}
# The blocks of these have pages from several places, which no snapshot can show.
GATHERS = ("remap",)
SMALL = MIB  # the largest block of PyTorch's small pool
QUANTUM = 512
CALLS = ("num_map", "num_unmap", "num_segment_alloc", "num_segment_free")


def recordings():
    """The recordings whose requests are in no other one."""
    found = []
    for folder in ("dev", "batch", "causes", "h100", "multi"):
        paths = glob.glob(os.path.join(SHARED, "recorded", folder, "*.pickle.xz"))
        found += [p for p in sorted(paths) if not re.search(
            r"__|_frames|_kineto|_cpp|\.cpp", os.path.basename(p))]
    return found


PINS = 32


def made(path):
    """Writes the adversary's requests."""
    size, page, rows = 64 << 10, 2 * MIB, ["op,id,bytes,stream"]
    for i in range(PINS):
        between = page - size // 2 if i == 0 else 2 * page - size
        rows += [f"alloc,{2 * i},{between},0", f"alloc,{2 * i + 1},{size},0"]
    rows += [f"free,{2 * i},,0" for i in range(PINS)]
    # Live blocks are at their peak again.
    rows.append(f"alloc,{2 * PINS},{(2 * PINS - 1) * page - size // 2},0")
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(rows) + "\n")


def ask(verb, path, *options):
    done = subprocess.run([FRAGSIM, verb, "-q", path, "--json", "-", *options],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["results"]


def pages_of(size, pages):
    return pages[size > SMALL] * MIB


def law(path, device, pages):
    """(bytes that the law allows, live blocks when it allows most)"""
    done = subprocess.run([FRAGSIM, "export", "-q", path, "--device", str(device)],
                          check=True, capture_output=True, text=True)
    live, total, ends, most, blocks = {}, 0, 0, 0, 0
    for row in csv.DictReader(done.stdout.splitlines()):
        if row["op"] == "free":
            size = live.pop(row["id"])
            total, ends = total - size, ends - 2 * pages_of(size, pages)
        elif row["op"] == "alloc":
            size = -(-int(row["bytes"]) // QUANTUM) * QUANTUM
            now = total + size + ends + 2 * pages_of(size, pages)
            if now > most:
                most, blocks = now, len(live) + 1
            live[row["id"]] = size
            total, ends = total + size, ends + 2 * pages_of(size, pages)
    return most, blocks


def runs(path, device, policy, need, pages):
    """The same with the runs of live blocks that the policy makes at its need."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.pickle")
        subprocess.run([FRAGSIM, "export", "-q", path, "--to", "snapshot", "-p", policy,
                        "-c", f"{need}B", "--device", str(device), "-o", out], check=True)
        with open(out, "rb") as file:
            events = max(pickle.load(file)["device_traces"], key=len)
    first, last, total, ends, most, count, at = {}, set(), 0, 0, 0, 0, 0
    for e in events:
        start, size = e["addr"], e["size"]
        page = pages_of(size, pages)
        if e["action"] not in ("alloc", "free_completed"):
            continue
        # A block joins the run that ends at its start, and the one that begins at its end.
        joined = (start in last) + (start + size in first)
        if e["action"] == "alloc":
            now = total + size + ends + 2 * page
            if now > most:
                most, at = now, count
            first[start] = size
            last.add(start + size)
            total, ends, count = (total + size, ends + 2 * page * (1 - joined),
                                  count + 1 - joined)
        else:
            del first[start]
            last.remove(start + size)
            total, ends, count = (total - size, ends - 2 * page * (1 - joined),
                                  count - 1 + joined)
    return most, at


def measure(path):
    trace = os.path.basename(path).split(".")[0]
    asked = [word for p in SETTINGS for word in ("-p", p)]
    rows = []
    found = ask("fit", path, "-j1", "-c", "inf", "--as-recorded", *asked)
    for i, r in enumerate(found):
        policy = list(SETTINGS)[i % len(SETTINGS)]
        need, device = r["need_bytes"], r["device"]
        at, = ask("replay", path, "--as-recorded", "-p", policy, "-c", f"{need}B",
                  "--device", str(device))
        row = {**r, "trace": trace, "policy": policy, "calls": sum(at[c] for c in CALLS)}
        rows.append(bounded(path, row))
    return rows


def bounded(path, row):
    """The row with the columns of the law, for the policies that map pages."""
    policy, device = row["policy"], row["device"]
    pages = SETTINGS[policy]
    if pages:
        row["small_page_bytes"], row["page_bytes"] = (p * MIB for p in pages)
        row["law_bytes"], row["live_blocks"] = law(path, device, pages)
        if policy not in GATHERS:
            row["runs_bytes"], row["runs"] = runs(path, device, policy, row["need_bytes"],
                                                  pages)
    return row


def again(path):
    """The rows of data/law.csv of a trace, with the columns of the law made again."""
    trace = os.path.basename(path).split(".")[0]
    return [bounded(path, r) for r in read_csv(os.path.join(DATA, "law.csv"))[1]
            if r["trace"] == trace]


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    of = again if "--again" in sys.argv else measure
    paths = recordings()
    if not paths:
        print("law: there are no recordings in", SHARED)
        return 77
    with ThreadPoolExecutor(jobs) as pool:
        rows = sum(pool.map(of, paths), [])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pins.csv")
        made(path)
        rows += of(path)
    header = replayed(FRAGSIM, "paper/tables/law.py",
                      f"{len(paths)} recordings of PyTorch 2.11 on an H200 and an H100")
    if of is again:  # the needs keep their version, the columns of the law have a line
        with open(os.path.join(DATA, "law.csv"), encoding="utf-8") as file:
            header = file.readline() + header.replace("law.py;", "law.py --again: the columns "
                                                      "live_blocks to runs_bytes;")
    write_csv(os.path.join(DATA, "law.csv"), header, COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

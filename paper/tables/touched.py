#!/usr/bin/env python3
"""touched.py [-j N]: the pages that live blocks touch, by placement.

A policy that returns every free page when it is refused, and whose placement depends on the
requests and the live blocks alone, needs as many pages as the live blocks touch at most.
The placement of such a policy is that of a run without a limit. So this program replays
each recording on an unlimited device with several placements, in one region of
addresses, and counts the pages of 2 MiB that hold a byte of a block between its allocation
and the completion of its free. Writes data/touched.csv: for each recording and placement the
most pages at a time, the lower bound of data/needs.csv, and the frees that waited for work,
which a refusal would have completed earlier: there the rows are no needs. Policy expandable
returns its pages in this way, so its rows must be its needs in data/law.csv; the rows of the
fits are the needs that such a policy with their placement would have. A minute of two cores.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import os
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, read_csv, replayed, write_csv
from places import DATA
from policy_table import FRAGSIM, SHARED

PAGE = 2 << 20
PLACEMENTS = ["expandable:largest=2MiB"] + [
    f"{fit}:segment=64GiB" for fit in ("best_fit", "first_fit", "next_fit")]
COLUMNS = ["trace", "placement", "page_bytes", "lower_bound_bytes", "pages", "need_bytes",
           "waiting"]


def most_pages(events):
    """The most pages at a time that hold a byte of a live block."""
    live, ends, inside, most = {}, {}, 0, 0
    for e in events:
        if e["action"] not in ("alloc", "free_completed"):
            continue
        if e["action"] == "alloc":
            live[e["addr"]], step = e["size"], 1
        size = live[e["addr"]]
        first, last = e["addr"] // PAGE, (e["addr"] + size - 1) // PAGE
        if e["action"] == "free_completed":
            del live[e["addr"]]
            step = -1
        # Other blocks can touch the first and the last page; those between are its own.
        inside += step * max(0, last - first - 1)
        for page in {first, last}:
            ends[page] = ends.get(page, 0) + step
            if not ends[page]:
                del ends[page]
        most = max(most, inside + len(ends))
    return most


def waiting(events):
    """The frees that did not complete at once, since the block was in use on a stream."""
    return sum(a["action"] == "free_requested" and
               (b["action"], b["addr"]) != ("free_completed", a["addr"])
               for a, b in zip(events, events[1:]))


def measure(job):
    trace, bound, placement = job
    path = os.path.join(SHARED, "recorded", "dev", trace + ".pickle.xz")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.pickle")
        subprocess.run([FRAGSIM, "export", "-q", path, "--to", "snapshot", "-p", placement,
                        "-o", out], check=True)
        with open(out, "rb") as file:
            events = max(pickle.load(file)["device_traces"], key=len)
    pages = most_pages(events)
    return {"trace": trace, "placement": placement, "page_bytes": PAGE,
            "lower_bound_bytes": bound, "pages": pages, "need_bytes": pages * PAGE,
            "waiting": waiting(events)}


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    if not os.path.isdir(os.path.join(SHARED, "recorded", "dev")):
        print("touched: there are no recordings in", SHARED)
        return 77
    bounds = {r["trace"]: int(r["lower_bound_bytes"])
              for r in read_csv(os.path.join(DATA, "needs.csv"))[1]
              if (r["policy"], r["bound"]) == ("torch", "capacity")}
    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(measure, [(t, b, p) for t, b in bounds.items()
                                       for p in PLACEMENTS]))
    write_csv(os.path.join(DATA, "touched.csv"),
              replayed(FRAGSIM, "paper/tables/touched.py", RECORDINGS), COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

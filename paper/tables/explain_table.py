#!/usr/bin/env python3
"""explain_table.py: explains every recording of ../shared/recorded/dev and causes
that ran out of memory.

For each recording the table states the cause, its evidence, and the smallest
change that the replay confirmed. Two checks come with it: the failure must be
reproduced by the replay, and live and cached bytes must be those that the
message of PyTorch's own error states ("of the allocated memory ... is allocated
by PyTorch, and ... is reserved by PyTorch but unallocated"). The page ends with
what PyTorch's own allocator said on a GPU (data/explain_real.csv).

Writes pages/explain.md.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import re
import subprocess
import sys

from data_header import read_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MESSAGE = re.compile(r"allocated memory ([\d.]+) (\w+) is allocated by PyTorch"
                     r".*? and ([\d.]+) (\w+) is reserved by PyTorch but")
REAL = os.path.join(DATA, "explain_real.csv")


def died(folder):
    """The recordings whose counters contain the text of an error."""
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        snapshot = path[:-5] + ".pickle.xz"
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        if facts.get("oom") and os.path.exists(snapshot):
            yield snapshot, facts


def explain(fragsim, snapshot, *options):
    done = subprocess.run([fragsim, "explain", snapshot, "-q", "--json", "-",
                           *options], check=True, capture_output=True)
    return json.loads(done.stdout)["results"][0]


def close(stated, unit, found):
    """The message has two digits after the point."""
    size = UNITS[unit]
    return abs(float(stated) * size - found) <= 0.0051 * size


def agrees(answer, facts):
    found = MESSAGE.search(facts["oom"])
    active = answer["live_bytes"] + answer["pending_bytes"]
    return (close(found[1], found[2], answer["live_bytes"])
            or close(found[1], found[2], active)) and \
        close(found[3], found[4], answer["reserved_bytes"]
              - answer["live_bytes"])


def size(number):
    return f"{number / (1 << 20):,.0f} MiB"


def row(name, answer, facts):
    smallest = answer["smallest"]
    more = [c for c in answer["changes"] if c["kind"] == "capacity"]
    settings = [c["change"] for c in answer["changes"]
                if c["kind"] == "setting" and c["served"]]
    return [name, size(answer["request"]["requested_bytes"]),
            size(answer["limit_bytes"]), size(answer["requested_bytes"]),
            size(answer["cached_bytes"]),
            size(answer["own_largest_hole_bytes"]),
            "yes" if answer["request"]["reproduced"] else "NO",
            "yes" if agrees(answer, facts) else "NO", answer["cause"],
            smallest["change"] if smallest else "none",
            "; ".join(settings) or "none",
            more[0]["change"] if more and more[0]["served"] else "none"]


HEAD = ["recording", "request", "limit", "live", "cached", "largest own hole",
        "reproduced", "as PyTorch's message", "cause", "smallest change",
        "settings that serve it", "capacity that serves it"]


def put_confirmed(out):
    """What PyTorch's own allocator said (explain_confirm.py)."""
    if not os.path.exists(REAL):
        return
    _, rows = read_csv(REAL)
    equal = [r for r in rows if r["served"] == r["served_by_pytorch"]]
    print(f"\nPyTorch's own allocator on an H100, with the requests up to the "
          f"failed one: {len(equal)} of {len(rows)} answers are the same, on "
          f"{len({r['recording'] for r in rows})} recordings (the failure "
          "itself, and every setting and limit that was tried).", file=out)
    for r in rows:
        if r not in equal:
            print(f"It does not serve the request of {r['recording']} with "
                  f"{r['change']}.", file=out)


def put_page(rows, causes, out):
    print(f"# Why {len(rows)} recordings ran out of memory\n\n"
          "Made by `paper/tables/explain_table.py` with `fragsim explain`. Each change "
          "was replayed\nup to the failed request, by the simulated allocator "
          "at the limit of the recording.\n", file=out)
    for cells in (HEAD, ["---"] * len(HEAD), *rows):
        print("| " + " | ".join(cells) + " |", file=out)
    print(f"\nReproduced: {sum(r[6] == 'yes' for r in rows)} of {len(rows)}. "
          "Live and cached bytes as in PyTorch's message: "
          f"{sum(r[7] == 'yes' for r in rows)} of {len(rows)}. "
          "A change that serves the request was found for "
          f"{sum(r[9] != 'none' for r in rows)} of {len(rows)}.", file=out)
    for name, (want, got) in causes.items():
        print(f"\nKnown cause of {name}: {want}; explained as {got}.", file=out)
    put_confirmed(out)


def main():
    rows = []
    causes = {}
    for folder in ("dev", "causes"):
        for snapshot, facts in died(os.path.join(SHARED, "recorded", folder)):
            name = os.path.basename(snapshot)[:-len(".pickle.xz")]
            answer = explain(FRAGSIM, snapshot)
            rows.append(row(name, answer, facts))
            if "cause" in facts:
                causes[name] = (facts["cause"], answer["cause"])
    if not rows:
        print("explain_table: the recordings are absent; skipped")
        return 77
    with open(os.path.join(PAGES, "explain.md"), "w", encoding="utf-8") as out:
        put_page(rows, causes, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

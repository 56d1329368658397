#!/usr/bin/env python3
"""frontier_table.py: the longest sequence with which training runs to its end, predicted
without a GPU (gpu/frontier.py predict) and measured.

  frontier_table.py
    pages/frontier.md from data/frontier_predicted.csv, data/frontier_measured.csv
  frontier_table.py import DEVICE DRIVER DATE ROWS.jsonl...
    the measured data from the rows of gpu/frontier.py measure
"""
import json
import os
import sys

from data_header import measured, read_csv, write_csv
from places import DATA, PAGES

PREDICTED, MEASURED = (os.path.join(DATA, f"frontier_{word}.csv")
                       for word in ("predicted", "measured"))
NAMES = {"default": "default", "expandable_segments": "expandable segments",
         "cudaMallocAsync": "cudaMallocAsync", "fragsim": "`expandable` of fragsim"}
HEAD = """# The sequence length at which training dies, predicted and measured

A dense model of 2.7 billion parameters in bfloat16 with AdamW, sequences of varying
lengths up to the one in the table, one GPU and two (DDP), a limit of 60 GiB for each
process. Predicted without a GPU from a dry run at each length, and committed before the
measurement ({predicted}). Measured: {measured}.
Made by `paper/tables/frontier_table.py` from `paper/data/frontier_predicted.csv` and
`paper/data/frontier_measured.csv`.

"""
TAIL = """The limit of the process is another one under cudaMallocAsync: PyTorch compares it with
the bytes that live blocks were requested with, not with what the pool holds, so runs
with more reserved memory than the limit lived (`reserved_bytes` in the data). The policy
`cuda_async` of the prediction compared the pool; it was changed after this measurement,
which the table above does not repeat. Nor does it repeat the rows of `expandable`, whose
predictions and runs are of the version before 26104d9f."""


def bring(device, driver, date, *paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for one in map(json.loads, file):
                rows.append({
                    "ranks": one["ranks"], "side": one["side"], "length": one["length"],
                    "survived": {True: 1, False: 0}.get(one["survived"], ""),
                    "steps": min(r.get("steps", 0) for r in one["said"]),
                    "reserved_bytes": max(r.get("reserved", 0) for r in one["said"]),
                    "allocated_bytes": max(r.get("allocated", 0) for r in one["said"])})
    rows.sort(key=lambda r: (r["ranks"], r["side"], r["length"]))
    write_csv(MEASURED, measured(device, driver, date, "paper/gpu/frontier.py measure"),
              list(rows[0]), rows)


def lives(rows, column):
    """(ranks, side, length): whether all ranks live."""
    found = {}
    for row in rows:
        key = int(row["ranks"]), row["side"], int(row["length"])
        found[key] = found.get(key, True) and row[column] == "1"
    return found


def longest(cells, ranks, side):
    """The longest length up to which all tried ones live."""
    best = 0
    for (n, name, length), alive in sorted(cells.items()):
        if (n, name) == (ranks, side):
            if not alive:
                break
            best = length
    return best


def main():
    if sys.argv[1:2] == ["import"]:
        return bring(*sys.argv[2:])
    (said, foretold), (about, found) = read_csv(PREDICTED), read_csv(MEASURED)
    foretold, seen = lives(foretold, "survives"), lives(found, "survived")
    lines = ["| GPUs | allocator | predicted | measured | lengths tried | as predicted |",
             "|---:|---|---:|---:|---|---:|"]
    for ranks in (1, 2):
        for side, name in NAMES.items():
            tried = sorted(l for n, s, l in seen if (n, s) == (ranks, side))
            same = sum(seen[ranks, side, l] == foretold[ranks, side, l] for l in tried)
            lines.append(
                f"| {ranks} | {name} | {longest(foretold, ranks, side):,} | "
                f"{longest(seen, ranks, side):,} | {tried[0]:,} to {tried[-1]:,} | "
                f"{same} of {len(tried)} |")
    wrong = [key for key, alive in sorted(seen.items()) if alive != foretold[key]]
    lines += ["", f"{len(seen) - len(wrong)} of {len(seen)} runs ended as predicted. "
              "The others:", ""]
    lines += [f"- {ranks} GPU{'s' * (ranks > 1)}, {NAMES[side]}, {length:,}: "
              f"{'lived' if seen[ranks, side, length] else 'died'}"
              for ranks, side, length in wrong] or ["- none"]
    lines += ["", TAIL]
    with open(os.path.join(PAGES, "frontier.md"), "w", encoding="utf-8") as out:
        out.write(HEAD.format(predicted=said, measured=about)
                  + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

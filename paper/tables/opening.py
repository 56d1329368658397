#!/usr/bin/env python3
"""opening.py: what the job of the paper's first page needs as a limit of its process, by
setting of PyTorch and by policy, found in the run of the same program without a limit.

Writes data/opening.csv; `recorded` says how the run under this setting and the limit at
which the job died ended, in a recording or on a GPU later (data/opening_runs.csv). It
takes 20 seconds of one core.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import os
import sys

from data_header import read_csv, replayed, write_csv
from places import DATA
from policy_table import FRAGSIM, SHARED, ask

PROGRAM, DEATH = "llama_varlen", "llama_varlen__cap_tight"
EXP = "torch:expandable_segments:True"
POLICIES = ["torch", EXP, EXP + ",large_segment_size_mb:12",
            EXP + ",experiment:small_pages", "expandable",
            "expandable:page=2MiB,largest=2MiB", "remap"]
# Recorded runs under the limit of the job that died.
RECORDED = {"torch": DEATH, EXP: DEATH + "_exp"}
COLUMNS = ["trace", "policy", "limit_bytes", "need_bytes", "lower_bound_bytes", "recorded"]


def told(name):
    with open(os.path.join(SHARED, "recorded", "dev", name + ".json"), encoding="ascii") as file:
        return json.load(file)


def main():
    path = os.path.join(SHARED, "recorded", "dev", PROGRAM + ".pickle.xz")
    if not os.path.exists(path):
        print("opening: there are no recordings in", SHARED)
        return 77
    limit = told(DEATH)["cap"]
    later = {r["policy"]: r["outcome"]
             for r in read_csv(os.path.join(DATA, "opening_runs.csv"))[1]}
    rows = ask(path, POLICIES, "fit", "-j1", "--process-limit", "inf")
    for row in rows:
        name = RECORDED.get(row["policy"])
        died = name and told(name)["oom"] is not None
        row |= {"trace": PROGRAM, "limit_bytes": limit,
                "recorded": later.get(row["policy"], "") if not name
                            else "died" if died else "survived"}
        assert not name or later[row["policy"]] == row["recorded"]
    write_csv(os.path.join(DATA, "opening.csv"),
              replayed(FRAGSIM, "paper/tables/opening.py", "a recording of PyTorch 2.11 on an H200"),
              COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

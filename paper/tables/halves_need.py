#!/usr/bin/env python3
"""halves_need.py [-j N]: the need of settings on steps that they were not chosen on.

data/tune_halves.csv has, for the first half of each recording, the setting that
`fragsim tune` chose and the one that the search of an earlier version found. Each second half
is cut again as tune_table.py cuts it, and `fragsim fit` finds what the default, the switch, both
settings, and the switch with smaller pages need there, as the capacity of a device. Writes
data/halves_need.csv. It takes 6 minutes of one core.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import tune_table
from data_header import read_csv, replayed, write_csv
from places import DATA
from policy_table import FRAGSIM, ask

SWITCH = tune_table.SWITCH
PAGES = SWITCH + ",large_segment_size_mb:12"
KINDS = ("default", "switch", "pages", "ladder", "search")
COLUMNS = ["trace", "group", "lower_bound_bytes"] + [f"{k}_need_bytes" for k in KINDS]


def judge(path, row):
    settings = ("", SWITCH, PAGES, row["ladder"], row["search"])
    names = list(dict.fromkeys(f"torch:{s}" if s else "torch" for s in settings))
    with tempfile.TemporaryDirectory() as folder:
        _, second, _ = tune_table.halves(path, folder)
        found = {r["policy"]: r for r in ask(second, names, "fit", "-j1", "-c", "inf")}
    need = {k: found[f"torch:{s}" if s else "torch"]["need_bytes"]
            for k, s in zip(KINDS, settings)}
    return {"trace": row["trace"], "group": row["group"],
            "lower_bound_bytes": found["torch"]["lower_bound_bytes"],
            **{f"{k}_need_bytes": need[k] for k in KINDS}}


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    rows = {r["trace"]: r for r in read_csv(tune_table.HALF_TABLE)[1]
            if r["settings"] == "all settings"}
    paths = [p for _, p in tune_table.complete_runs()]
    if not paths:
        print("halves_need: there are no recordings")
        return 77
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda p: judge(p, rows[os.path.basename(p).split(".")[0]]), paths))
    write_csv(os.path.join(DATA, "halves_need.csv"), replayed(
        FRAGSIM, "paper/tables/halves_need.py", f"second halves of {len(found)} recordings"),
        COLUMNS, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""variants.py: each recorded run of a program under another setting or limit, predicted
from the run with default settings and without a limit alone.

tests/recordings/check_variants.py replays the default recording NAME under the settings
and the limit of each variant NAME__*, and finds the reason where the prediction is wrong;
this script writes its rows to data/variants.csv. `right` is 1 if the peak reserved is
equal to the byte and the program died if the variant did. The columns with `_capacity` take
the limit as the capacity of a device, which refuses later. It takes a minute of one core.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import os
import sys

from data_header import replayed, write_csv
from places import DATA, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "recordings"))
import check_variants

COLUMNS = ["variant", "settings", "limit_bytes", "peak_reserved_bytes", "died",
           "predicted_peak_reserved_bytes", "predicted_died",
           "predicted_peak_reserved_bytes_capacity", "predicted_died_capacity",
           "death_event", "predicted_death_event", "right", "why"]


def row(seen):
    told, limit, capacity = seen["told"], seen["limit"], seen["capacity"]
    return {"variant": seen["name"], "settings": told["conf"],
            "limit_bytes": told["cap"] or "", "peak_reserved_bytes": told["peak"],
            "died": int(told["died"]),
            "predicted_peak_reserved_bytes": limit["peak_reserved_bytes"],
            "predicted_died": int(limit["num_ooms"] > 0),
            "predicted_peak_reserved_bytes_capacity": capacity["peak_reserved_bytes"],
            "predicted_died_capacity": int(capacity["num_ooms"] > 0),
            "death_event": "" if seen["event"] is None else seen["event"],
            "predicted_death_event": limit["first_oom_event"] if limit["num_ooms"] else "",
            "right": int(seen["right"]), "why": seen["why"]}


def main():
    names = check_variants.variants()
    if not names:
        print("variants: there are no recordings in", check_variants.DEV)
        return 77
    seen = [check_variants.judge(name) for name in names]
    if any(v["why"] is None for v in seen):
        raise SystemExit("variants: a wrong prediction has no reason; "
                         "run tests/recordings/check_variants.py")
    write_csv(os.path.join(DATA, "variants.csv"), replayed(
        check_variants.FRAGSIM, "paper/tables/variants.py",
        f"{len(seen)} recordings of PyTorch 2.11 on an H200"), COLUMNS, map(row, seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())

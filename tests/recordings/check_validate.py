#!/usr/bin/env python3
"""check_validate.py [bundled|anchored|foreign]: runs `fragsim
validate` on recordings.

bundled: traces/bundled; all must be exact.

anchored: recorded/dev with recorded segment addresses; all must be exact.

foreign: the two public snapshots of foreign/pytorch; both must be exact.

Names each recording that is not exact, with its first divergence. Exit 1 if one is not, 77 if ../shared or the
tool is absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED


KINDS = {
    "bundled": os.path.join(ROOT, "traces/bundled/*.p[it]*"),
    "anchored": "recorded/dev/*.pickle.xz",
    "foreign": "foreign/pytorch/*.pickle*",
}


def validate(path):
    """The rows of one recording. Exit 1 only means that one row is not exact.
    """
    command = [FRAGSIM, "validate", path, "-q", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return [{"exact": False, "first_divergence":
                 f"exit {done.returncode}: {done.stderr.strip()}"}]
    rows = json.loads(done.stdout)["results"]
    if (done.returncode == 0) != all(row["exact"] for row in rows) or \
            any(row["exact"] != (row["verdict"] == "exact") or
                row["exact"] and row["addresses_matched"] < row["allocs"]
                for row in rows):
        return [{"exact": False, "first_divergence":
                 f"exit {done.returncode} contradicts the rows"}]
    return rows


def wrong_counters(row):
    return [f"{stat['name']}: recorded {stat['recorded']}, "
            f"replayed {stat['replayed']}"
            for stat in row.get("stats", [])
            if stat["determined"] and stat["recorded"] != stat["replayed"]]


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "anchored"
    pattern = KINDS[kind]
    paths = sorted(glob.glob(os.path.join(SHARED, pattern)))
    if not paths and kind == "bundled":
        print(f"check_validate: no recordings at {pattern}")
        return 1
    if not paths or not os.access(FRAGSIM, os.X_OK):
        print("check_validate: no recordings or no tool; skipped")
        return 77
    exact = 0
    for path in paths:
        rows = validate(path)
        if rows and all(row["exact"] for row in rows):
            exact += 1
            continue
        for row in rows:
            print(f"{os.path.basename(path)}: {row.get('first_divergence')}",
                  *wrong_counters(row)[:5], sep="\n    ")
    print(f"{kind}: {exact} of {len(paths)} exact")
    return 0 if exact == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())

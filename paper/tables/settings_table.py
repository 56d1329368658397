#!/usr/bin/env python3
"""settings_table.py: what PyTorch's own allocator reserved on a GPU under the
settings of ../shared/oracle/oracle.jsonl.xz, without a limit of the process and with one.

Writes data/settings.csv, one row for each of these replays of a recording. It
computes nothing; tests/recordings/check_oracle.py compares the same rows with fragsim.
Environment: FRAG_SHARED_DIR.
"""
import json
import lzma
import os
import sys

from data_header import write_csv
from places import DATA
from policy_table import SHARED

COLUMNS = ["trace", "settings", "process_limit_bytes", "peak_reserved_bytes",
           "peak_allocated_bytes", "peak_requested_bytes", "first_oom_event",
           "num_alloc_retries"]
NAMES = {"trace": "trace", "conf": "settings", "cap": "process_limit_bytes",
         "peak_reserved": "peak_reserved_bytes",
         "peak_allocated": "peak_allocated_bytes",
         "peak_requested": "peak_requested_bytes",
         "first_oom_index": "first_oom_event", "retries": "num_alloc_retries"}
# The rows hold PyTorch's version and the size of the device, which is that of the
# recordings; they do not hold the date.
HEADER = ("# PyTorch {torch} on NVIDIA H200, driver 580.159.04, date unknown; "
          "oracle/torch_oracle.py, put into this form by "
          "paper/tables/settings_table.py\n")


def main():
    path = os.path.join(SHARED, "oracle", "oracle.jsonl.xz")
    if not os.path.exists(path):
        print("settings_table: the replays on a GPU are absent; skipped")
        return 77
    with lzma.open(path, "rt") as file:
        found = [json.loads(line) for line in file]
    versions = {r["torch"] for r in found}
    if len(versions) != 1:
        raise SystemExit(f"settings_table: several versions: {versions}")
    rows = [{ours: r[theirs] for theirs, ours in NAMES.items()} for r in found]
    for row in rows:
        row["process_limit_bytes"] = row["process_limit_bytes"] or ""
        row["settings"] = row["settings"] or "default"
    write_csv(os.path.join(DATA, "settings.csv"),
              HEADER.format(torch=versions.pop()), COLUMNS, rows)
    print(f"{len(rows)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""check_dry_imports.py: each function that PyTorch 2.6 to 2.15 and packages beside it
import from CUDA's libraries (gpu/dry/imports.csv) is exported by the stand-ins, for CUDA
12 and 13, so no program ends by a symbol that is missing or calls NULL.
Environment: FRAG_BUILD_DIR.
"""
import csv
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, ROOT, skip

TABLE = os.path.join(ROOT, "tests", "gpu", "dry", "imports.csv")
# Functions of the table that the stand-ins do without, and why.
REFUSED = {
    "ncclCommQueryProperties": "NCCL has it since 2.29, the stand-in says that it is "
                               "2.28.9, and vLLM goes on without it"}


def exported(folder, release):
    names = set()
    for path in glob.glob(f"{folder}/*.so*") + glob.glob(f"{folder}/{release}/*.so*"):
        done = subprocess.run(["nm", "-D", "--defined-only", path], text=True,
                              capture_output=True, check=True)
        names |= {line.split()[-1].partition("@")[0]
                  for line in done.stdout.splitlines()}
    return names


def forms(row):
    """The names of which one must be there: what asks by name may get a newer form."""
    name = row["function"]
    return [name] if row["how"] == "linked" or re.search(r"_v\d$", name) else \
        [name, *(f"{name}_v{n}" for n in (2, 3))]


def main():
    folder = os.path.join(BUILD, "dry")
    if not os.path.exists(os.path.join(folder, "libcuda.so.1")):
        skip(f"no stand-ins in {BUILD}")
    with open(TABLE, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 900, len(rows)
    for release in ("12", "13"):
        names = exported(folder, release)
        missing = [row for row in rows if row["function"] not in REFUSED
                   and not names.intersection(forms(row))]
        assert not missing, "\n".join(
            f"{row['function']} ({row['how']}: {row['torch']} {row['others']}) is not "
            f"exported for CUDA {release}" for row in missing)
        useless = [one for one in REFUSED if one in names]
        assert not useless, f"refused, but exported: {useless}"
    print(f"{len(rows)} functions are exported")


main()

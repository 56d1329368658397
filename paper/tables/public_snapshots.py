#!/usr/bin/env python3
"""public_snapshots.py [-f NAMED REPOSITORIES] GIT...: replays the snapshots of PyTorch's
allocator that lie in public repositories.

Each GIT is a clone (or its .git), named by its last folder, or by the folder above one
that is called repo. Every file *.pickle or *.pkl in its newest commit is given to
`fragsim validate`, which says `exact`, `differs`, `not enough to judge` (the history was
off or is empty) or that the file is no snapshot. Files that the clone lists and lacks are
counted apart. -f: how many files an index of public code lists by the names of snapshots,
and in how many repositories; that search cannot be repeated without the index.
Writes data/public_snapshots.csv, a row for each repository; the files themselves, most
without a licence for data, are never kept. It takes 2 minutes of one core.
Environment: FRAGSIM (default build/fragsim).
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

from data_header import replayed, write_csv
from places import DATA
from policy_table import FRAGSIM

COLUMNS = ["repository", "exact", "differs", "not_enough", "no_snapshot", "absent",
           "segment_events", "addresses", "ooms"]
NO_EVIDENCE = "no evidence"  # a verdict of `fragsim validate`


def git(folder, *arguments):
    return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False)


def judge(path, found):
    """Adds what `fragsim validate` says of a file."""
    done = subprocess.run([FRAGSIM, "validate", "-q", path, "--json", "-"],
                          capture_output=True, text=True, check=False)
    if not done.stdout:
        found["no_snapshot"] += 1
        return
    rows = json.loads(done.stdout)["results"]
    verdicts = {r["verdict"] for r in rows} - {NO_EVIDENCE}
    if not verdicts:
        found["not_enough"] += 1
        return
    found["exact" if verdicts == {"exact"} else "differs"] += 1
    for r in rows:
        found["segment_events"] += r["segment_events"]
        found["addresses"] += r["allocs"]
        found["ooms"] += r["ooms_recorded"]


def repository(folder, seen):
    """The row of a repository; a file that is in `seen` is left out."""
    found = collections.Counter()
    listed = git(folder, "rev-list", "--objects", "--all", "--missing=allow-any").stdout
    for line in listed.decode(errors="replace").splitlines():
        key, _, name = line.partition(" ")
        if not name.endswith((".pickle", ".pkl")) or key in seen:
            continue
        seen.add(key)
        blob = git(folder, "cat-file", "blob", key)
        if blob.returncode or not blob.stdout:
            found["absent"] += 1
        elif not blob.stdout.startswith(b"version https://git-lfs"):
            with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
                file.write(blob.stdout)
                file.flush()
                judge(file.name, found)
    parts = os.path.abspath(folder).rstrip("/").split(os.sep)
    name = parts[-2] if parts[-1] in ("repo", ".git") else parts[-1]
    return {"repository": name.replace("+", "/"), **{c: found[c] for c in COLUMNS[1:]}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-f", nargs=2, type=int, metavar=("NAMED", "REPOSITORIES"))
    parser.add_argument("git", nargs="+")
    args = parser.parse_args()
    seen = set()
    rows = [repository(folder, seen) for folder in args.git]
    rows = [r for r in rows if r["exact"] + r["differs"] + r["not_enough"]]
    listed = f"; an index of public code lists {args.f[0]} files in {args.f[1]} repositories " \
        "by such names" if args.f else ""
    write_csv(os.path.join(DATA, "public_snapshots.csv"), replayed(
        FRAGSIM, "paper/tables/public_snapshots.py",
        f"{len(args.git)} public repositories{listed}"), COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

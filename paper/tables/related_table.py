#!/usr/bin/env python3
"""related_table.py: fragsim's figures beside published ones, for the section on
related work.

Replays the static instances of minimalloc and idealloc (../shared/foreign) with the
policy plan, and compares on the recordings of data/policies.csv the policies after
STAlloc and GMLake with PyTorch's default by the measures of their papers. Writes
data/related.csv: a row for each instance, then a row for each number of the text
(macro, text as printed, source); published figures are typed in here, with the work
that states them. It takes a minute on two cores.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import subprocess
import sys

from data_header import read_csv, replayed, write_csv
from places import DATA
from policy_table import FRAGSIM, PARAMS, SHARED

COLUMNS = ["macro", "text", "instance", "buffers", "lower_bound_bytes",
           "peak_reserved_bytes", "optimal", "source"]
PLAN = "plan:" + PARAMS["plan"]
# The capacity that minimalloc's authors state in the names of their instances.
CAPACITY = 1048576
# What others state: macro, text, source. Checked on the pages of the works.
PUBLISHED = [
    ("theirs.stalloc.mean", r"85.1\,\%", "STAlloc, arXiv 2507.16274v2, abstract"),
    ("theirs.stalloc.waste", r"43\,\%", "STAlloc, arXiv 2507.16274v2, abstract"),
    ("theirs.gmlake.mean", r"15\,\%", "GMLake, ASPLOS 2024, abstract"),
    ("theirs.gmlake.most", r"33\,\%", "GMLake, ASPLOS 2024, abstract"),
]


def percent(value, digits=1):
    text = f"{100 * value:.{digits}f}".replace("-", "$-$")
    return text + r"\,\%"


def number(share):
    """Points of a hundred, without a unit."""
    return percent(share).removesuffix(r"\,\%")


def instance(suite, path):
    done = subprocess.run([FRAGSIM, "replay", "-q", path, "-p", PLAN, "--check",
                           "--json", "-"], check=True, capture_output=True)
    r, = json.loads(done.stdout)["results"]
    if r["num_ooms"]:
        raise SystemExit(f"related_table: {path}: a request was not met")
    name = os.path.basename(path).split(".csv")[0]
    return {"instance": f"{suite} {name}", "buffers": r["events"] // 2,
            "lower_bound_bytes": r["lower_bound_bytes"],
            "peak_reserved_bytes": r["peak_reserved_bytes"],
            "optimal": int(r["optimal"]), "source": PLAN}


def of_instances(rows):
    """The numbers of the text about the instances, from rows of related.csv."""
    rows = [{k: v if k == "instance" else int(v) for k, v in r.items()
             if k in COLUMNS[2:7]} for r in rows]
    mini = [r for r in rows if r["instance"].startswith("minimalloc")]
    ideal = [r for r in rows if r["instance"].startswith("idealloc")]
    gaps = {r["instance"].split()[1]:
            r["peak_reserved_bytes"] / r["lower_bound_bytes"] - 1 for r in rows}
    fit = sum(r["peak_reserved_bytes"] <= CAPACITY for r in mini)
    return [("ours.mini.of", len(mini)), ("ours.mini.fit", fit),
            ("ours.ideal.most", percent(max(gaps[r["instance"].split()[1]] for r in ideal)))]


def waste(rows, policy):
    """{trace: the share of reserved memory above the lower bound}"""
    return {r["trace"]: 1 - int(r["lower_bound_bytes"]) /
            int(r["peak_reserved_bytes"]) for r in rows
            if r["policy"] == policy and r["capacity"] == "inf"}


def of_recordings():
    """Fragmentation as STAlloc and GMLake define it, except that the lower bound
    stands for what was allocated: how much of PyTorch's a policy removes."""
    _, rows = read_csv(os.path.join(DATA, "policies.csv"))
    base = waste(rows, "torch")
    found = []
    for key, policy in (("online", "plan_online"), ("stitch", "stitch")):
        mine = waste(rows, policy)
        shares = [1 - mine[t] / base[t] for t in base]
        points = [base[t] - mine[t] for t in base]
        if key == "stitch":  # GMLake states points of memory, STAlloc shares
            most = max(range(len(points)), key=points.__getitem__)
            found += [("ours.stitch.points", number(sum(points) / len(points))),
                      ("ours.stitch.points.most", number(points[most])),
                      ("ours.stitch.share.most", percent(shares[most]))]
            found.append(("ours.stitch.worse", sum(x < 0 for x in shares)))
        else:
            found.append(("ours.online.mean", percent(sum(shares) / len(shares))))
    return found + [("ours.recordings", len(base))]


def main():
    suites = {s: sorted(glob.glob(os.path.join(SHARED, "foreign", s, pattern)))
              for s, pattern in (("minimalloc", "?.*.csv"),
                                 ("idealloc", "*.csv.xz"))}
    if not all(suites.values()):
        print("related_table: the instances of others are absent; skipped")
        return 77
    rows = [instance(s, p) for s, paths in suites.items() for p in paths]
    numbers = [{"macro": m, "text": t, "source": "the instances above"}
               for m, t in of_instances(rows)]
    numbers += [{"macro": m, "text": t, "source": "data/policies.csv"}
                for m, t in of_recordings()]
    numbers += [{"macro": m, "text": t, "source": s} for m, t, s in PUBLISHED]
    head = replayed(FRAGSIM, "paper/tables/related_table.py",
                    "instances of minimalloc (Apache-2.0) and idealloc (MIT)")
    write_csv(os.path.join(DATA, "related.csv"), head, COLUMNS,
              rows + numbers)
    for r in numbers:
        print(f"{r['macro']:26} {r['text']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

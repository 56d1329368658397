#!/usr/bin/python3
"""check_results.py: checks with h5py that a result file agrees with the JSON of
the same replay: every column of every run, with units and long_name, the exact
peaks inside the decimated series, and one row for each OOM. Skipped (77)
without h5py.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError:
    print("check_results: h5py is missing; skipped")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
POLICIES = ["torch", "torch:expandable_segments:True", "best_fit", "direct"]


def write_trace(path, events=20000):
    """Random traffic of a few hundred live blocks."""
    rng, live, lines = random.Random(1), [], ["op,id,bytes,stream"]
    for number in range(events):
        if len(live) > 300 or (live and rng.random() < 0.45):
            lines.append(f"free,{live.pop(rng.randrange(len(live)))},0,0")
        else:
            live.append(number)
            size = int(2 ** rng.uniform(4, 25))
            lines.append(f"alloc,{number},{size},{rng.randrange(2)}")
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


def plain(value):
    """A value of the table in its JSON form."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float) or value.dtype.kind == "f":
        return None if math.isnan(value) else float(value)
    return None if value == -1 else int(value)


def check_row(row, wanted, names):
    for name in names:
        found = plain(row[name])
        assert found == wanted[name], (name, found, wanted[name])
    assert set(names) == set(wanted), set(names) ^ set(wanted)


def check_run(run, wanted):
    series, oom = run["series"], run["oom"]
    for name, data in [*series.items(), *oom.items(), *run["segments"].items()]:
        assert data.attrs["units"] in ("byte", "ns", "1"), name
        assert data.attrs["long_name"], name
    assert series["reserved_max"][:].max() == wanted["peak_reserved_bytes"]
    assert series["allocated_max"][:].max() == wanted["peak_allocated_bytes"]
    assert series["requested_max"][:].max() == wanted["peak_requested_bytes"]
    assert series["reserved"][-1] == wanted["end_reserved_bytes"]
    assert series["reserved"].dims[0][0] == series["event"]
    assert len(oom["event"]) == min(wanted["num_ooms"], 1000)
    if wanted["num_ooms"]:
        assert oom["event"][0] == wanted["first_oom_event"]
    parts = sum(oom[name][:] for name in oom if name.startswith("part_"))
    assert (parts == oom["reserved"][:]).all(), "the breakdown has to sum up"
    assert run.attrs["trace_sha256"] == wanted["trace_sha256"]
    assert run.attrs["params"] == wanted["params"]


def main():
    if not os.access(FRAGSIM, os.X_OK):
        print("check_results: no tool; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        trace, out, text = (os.path.join(folder, name)
                            for name in ("t.csv", "r.h5", "r.json"))
        write_trace(trace)
        command = [FRAGSIM, "replay", trace, "-q", "--check", "-c",
                   "inf,0.9x,256MiB", "-o", out, "--json", text]
        for policy in POLICIES:
            command += ["-p", policy]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(text, encoding="utf-8") as lines:
            rows = json.load(lines)["results"]
        with h5py.File(out) as f:
            table = f["summary"]
            names = table.dtype.names
            assert f.attrs["complete"] == 1
            assert f.attrs["schema_name"] == "fragsim-results"
            for key in ("units", "long_name", "formula"):
                assert len(table.attrs[key]) == len(names), key
            assert len(table) == len(rows) == 3 * len(POLICIES)
            for i, wanted in enumerate(rows):
                check_row(table[i], wanted, names)
                check_run(f[f"runs/{i}"], wanted)
    failed = sum(1 for row in rows if row["num_ooms"])
    assert failed, "no run has an OOM to compare"
    print(f"{len(rows)} runs agree, {failed} of them with an OOM")
    return 0


if __name__ == "__main__":
    sys.exit(main())

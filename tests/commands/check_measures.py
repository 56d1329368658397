#!/usr/bin/env python3
"""check_measures.py: checks that the numbers of a run agree with each other.

For every policy, on traces with several streams, with sizes of one byte, and
with too little memory: requested <= allocated <= active <= reserved, the lower
bound <= reserved, and all runs that serve every request have the same peak
requested and the same lower bound. `fragsim info` and `-c 1x` use that peak.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, need, output

ORDER = ["peak_requested_bytes", "peak_allocated_bytes", "peak_active_bytes",
         "peak_reserved_bytes"]
CAPACITIES = "inf,1.3x,1x,0.9x"
# Without a small effort, plan searches for seconds.
SHORT = {"plan": "plan:effort=1000"}


def policies():
    names = re.findall(r"^(\w+) ", output("policies"), re.M)
    assert "torch" in names and "compact" in names, names
    return names + ["torch:expandable_segments:True"]


def write_tiny(path):
    """Live blocks of 1 to 700 bytes on two streams; each is freed late, while
    the other stream still uses it."""
    lines = ["op,id,bytes,stream"]
    for i in range(600):
        lines.append(f"alloc,{i},{1 + i * 37 % 700},{i % 2}")
        if i >= 100:
            lines.append(f"record_stream,{i - 100},0,{1 - i % 2}")
            lines.append(f"free_requested,{i - 100},0,0")
        if i >= 150:
            lines.append(f"free,{i - 150},0,0")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def asked_of(path):
    return json.loads(output("info", "-q", path, "--json", "-"))["results"][0][
        "devices"][0]["peak_requested_bytes"]


def check_row(row):
    what = (row["trace"], row["policy"], row["capacity_bytes"])
    peaks = [row[name] for name in ORDER]
    assert peaks == sorted(peaks), (what, peaks)
    assert row["lower_bound_bytes"] <= row["peak_reserved_bytes"], what
    assert row["lower_bound_bytes"] >= row["peak_requested_bytes"], what
    assert row["gap_to_bound"] >= 0 and row["internal_at_peak"] >= 0, what
    assert row["overhead"] >= 1 or not peaks[0], what


def check_trace(path):
    """Returns the numbers of runs, and of runs with an OOM."""
    asked, bounds = asked_of(path), set()
    names = [word for p in policies() for word in ("-p", SHORT.get(p, p))]
    rows = json.loads(output("replay", "-q", path, *names, "-c", CAPACITIES,
                          "--json", "-"))["results"]
    for row in rows:
        check_row(row)
        if row["num_ooms"] == 0:
            assert row["peak_requested_bytes"] == asked, (row, asked)
            bounds.add(row["lower_bound_bytes"])
        else:
            assert row["peak_requested_bytes"] <= asked, (row, asked)
    assert len(bounds) == 1, bounds
    assert asked in {row["capacity_bytes"] for row in rows}
    for row in rows:
        assert row["lower_bound_bytes"] <= row["demand_bytes"], row
        assert row["demand_bytes"] == max(bounds), row
    return len(rows), sum(row["num_ooms"] > 0 for row in rows)


def main():
    need(FRAGSIM)
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "tiny.csv")
        write_tiny(tiny)
        for path in (tiny, os.path.join(BUNDLED, "multistream.pickle.xz"),
                     os.path.join(BUNDLED, "two_streams.pt")):
            runs, failed = check_trace(path)
            print(f"{os.path.basename(path)}: {runs} runs, {failed} with OOMs")
            assert failed
    return 0


if __name__ == "__main__":
    sys.exit(main())

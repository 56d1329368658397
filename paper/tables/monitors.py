#!/usr/bin/env python3
"""monitors.py RECORDING [BYTES]: what a monitor would have seen that reads the memory of a recorded job once
in a period.

A monitor of period P reads at the times t, t + P, t + 2P, ... Where it begins is chance,
so PHASES beginnings are tried, evenly spread over the first period after the first
recorded event. Between two events the memory is that after the first of them. With a
capacity of BYTES, a monitor warns if it reads at least 90 % of it before the first OOM of
the replay. Prints a row for each period and counter.
Environment: FRAGSIM (default build/fragsim).
"""
import json
import os
import subprocess
import sys
import tempfile

from policy_table import FRAGSIM

PHASES = 100
SIGNALS = ("allocated", "reserved")
PERIODS = (1, 10)  # seconds
THRESHOLD = 0.9


def initial_blocks(path):
    """The blocks that were live before the first recorded event: so many events are made
    for them."""
    done = subprocess.run([FRAGSIM, "info", "-q", path, "--json", "-"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["results"][0]["devices"][0]["initial_blocks"]


def series(path, capacity):
    """The series of a replay as the job was recorded, with a row for each event, and the
    time of the first OOM; None: there was none."""
    import h5py  # the claims are checked without it
    words = ["-c", str(capacity)] if capacity else []
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "run.h5")
        subprocess.run([FRAGSIM, "replay", "-q", path, "-p", "torch@recorded", *words,
                        "--as-recorded", "--points", str(1 << 40), "-o", made],
                       check=True, capture_output=True)
        with h5py.File(made) as file:
            columns = {k: v[:] for k, v in file["runs/0/series"].items()}
            row = file["summary"][0]
    rows = columns["event"] >= initial_blocks(path)
    died = row["first_oom_event"] if row["num_ooms"] else None
    return ({k: v[rows] for k, v in columns.items()},
            None if died is None else columns["time"][columns["event"] == died][0])


def seen_by(values, times, first, period):
    """The times of the readings and what they read."""
    import numpy
    after = first + numpy.maximum(0, -((first - times) // period)) * period
    ends = numpy.append(times[1:], times[-1] + 1)
    read = after < ends
    return after[read], values[read]


def monitor(columns, died, signal, period, limit):
    """The row of one signal and one period, in seconds."""
    times, values = columns["time"], columns[signal]
    peak = int(columns[signal + "_max"].max())
    step = int(period * 1e9)
    most, warned = [], 0
    for i in range(PHASES):
        at, read = seen_by(values, times, times[0] + int(i / PHASES * step), step)
        most.append(int(read.max(initial=0)))
        if died is not None and limit:
            warned += bool((at[read >= limit] < died).any())
    return {"signal": signal, "period_seconds": period, "peak_bytes": peak,
            "least_seen_bytes": min(most), "most_seen_bytes": max(most),
            "peak_seen_ratio": sum(m == peak for m in most) / PHASES,
            "warned_ratio": None if died is None else warned / PHASES}


def monitors(path, capacity):
    """A row for each period and signal. `capacity` in bytes; None: no OOM."""
    columns, died = series(path, capacity)
    limit = THRESHOLD * capacity if capacity else None
    return [monitor(columns, died, signal, period, limit)
            for period in PERIODS for signal in SIGNALS]


if __name__ == "__main__":
    for one in monitors(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None):
        print(json.dumps(one))

#!/usr/bin/env python3
"""allocators_table.py: what real allocators reserved for the requests of 20
recordings, and what the policies of fragsim reserve.

Reads ../shared/oracle/allocators.jsonl.xz (replays through RMM, CuPy, the CUDA
driver and JAX on an H100), data/run_ahead.csv (run_ahead.py) and
data/pool_programs.csv, replays each row
with the policy of the same allocator, and writes pages/allocators.md.
tests/recordings/check_allocators.py compares the same rows one by one.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import csv
import importlib.util
import json
import lzma
import math
import os
import sys
import tempfile

from places import DATA, PAGES, ROOT

SEEDS = 32


def load(path):
    spec = importlib.util.spec_from_file_location("check_allocators", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK = load(os.path.join(ROOT, "tests", "recordings", "check_allocators.py"))
# Kinds of rows without a limit that matters: (heading, policy).
SHOWN = [
    ("rmm_pool", "RMM pool", "rmm_pool"),
    ("rmm_binning", "RMM binning",
     "rmm_binning:smallest=256KiB,largest=4MiB"),
    ("cupy", "CuPy", "cupy"),
    ("async", "driver's pool, synchronized", "cuda_async:sync=1"),
    ("async_keep", "driver's pool, never synchronized",
     "cuda_async:threshold=inf"),
    ("jax", "JAX", "bfc"),
]
KINDS = [("sync", "after every free"), ("every100", "every 100 requests"),
         ("idle", "never, idle device"), ("keep", "never, idle device, "
                                          "unlimited threshold"),
         ("work8", "never, 8 MiB of work a request"),
         ("work64", "never, 64 MiB of work a request")]


def peak_of(events):
    """The peak of the requested bytes."""
    live, held, peak = {}, 0, 0
    for op, _, name, size in events:
        if op == CHECK.ALLOC:
            live[name] = size
            held += size
        elif op == CHECK.FREE:
            held -= live.pop(name, 0)
        peak = max(peak, held)
    return peak


def real_peak(row):
    if row["allocator"] == "jax":
        return row["stats"]["peak_pool_bytes"]
    return row.get("peak_reserved", row.get("reserved_high"))


def simulated(streams, row, policy):
    count = row.get("used_events", CHECK.MOST)
    kind = CHECK.ALLOCATORS[row["allocator"]]
    path, _ = streams.write(row["trace"], count, kind.trims)
    capacity = row["limit"] if kind.limit_is_capacity else None
    [result] = CHECK.replay(path, [policy], capacity)
    return result["peak_reserved_bytes"]


def span(values, unit):
    low, high = min(values) / unit, max(values) / unit
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else \
        f"{low:.2f} to {high:.2f}"


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def gather(rows, streams):
    """{kind: {trace: (peak requested, real peaks, simulated peaks)}}"""
    found = {}
    for row in rows:
        kind = row["allocator"]
        policy = {k: p for k, _, p in SHOWN}.get(kind)
        if not policy or row["first_oom_index"] is not None or \
                (kind == "cupy" and row["limit"] != 14 << 30) or \
                (kind.startswith("rmm") and row["limit"] != 14 << 30):
            continue
        traces = found.setdefault(kind, {})
        if row["trace"] not in traces:
            seeds = range(SEEDS if kind == "cupy" else 1)
            sign = ":seed=" if kind == "cupy" else None
            peaks = [simulated(streams, row, policy + (f"{sign}{seed}" if sign
                                                       else ""))
                     for seed in seeds]
            events = streams.of(row["trace"])[:row.get("used_events",
                                                       CHECK.MOST)]
            traces[row["trace"]] = (peak_of(events), [], peaks)
        traces[row["trace"]][1].append(real_peak(row))
    return found


def write_summary(found, out):
    print("| allocator | recordings | real: mean, least to most | simulated: "
          "mean, least to most | equal |", file=out)
    print("|---|---|---|---|---|", file=out)
    for kind, heading, policy in SHOWN:
        traces = found[kind].values()
        cells = [heading + f" (`{policy}`)", str(len(traces))]
        for side in (1, 2):
            means = [geometric(t[side]) / t[0] for t in traces]
            every = [peak / t[0] for t in traces for peak in t[side]]
            cells.append(f"{geometric(means):.3f}, {min(every):.2f} to "
                         f"{max(every):.2f}")
        equal = sum(min(t[2]) <= min(t[1]) and max(t[1]) <= max(t[2])
                    for t in traces)
        cells.append(f"{equal} of {len(traces)}")
        print("| " + " | ".join(cells) + " |", file=out)


def write_recordings(found, out):
    print("| recording | " + " | ".join(h for _, h, _ in SHOWN) + " |",
          file=out)
    print("|---" * (len(SHOWN) + 1) + "|", file=out)
    for trace in sorted(found["cupy"]):
        cells = [f"`{trace}`"]
        for kind, _, _ in SHOWN:
            row = found[kind].get(trace)
            cells.append("-" if not row else
                         f"{span(row[1], row[0])} / {span(row[2], row[0])}")
        print("| " + " | ".join(cells) + " |", file=out)


def ratios_cell(ratios):
    return f"{geometric(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}"


def write_run_ahead(streams, out):
    rows, device = CHECK.run_ahead_rows()
    traces = sorted({trace for _, trace in rows})
    peaks = CHECK.run_ahead_peaks(streams, traces)
    synchronized = CHECK.RANGE[0]
    print(f"Measured by {device.rsplit('; ', maxsplit=1)[-1]} on "
          f"{device.rsplit('; ', maxsplit=1)[0]}.\n", file=out)
    print("| synchronized | real over `" + synchronized + "`: mean, least to "
          "most | over the default | over the best model | equal to it | "
          "within the range |", file=out)
    print("|---|---|---|---|---|---|", file=out)
    for kind, heading in KINDS:
        best = CHECK.RUN_AHEAD[kind][0]
        real = [rows[kind, trace] for trace in traces]
        over = {policy: [r / peaks[policy][t] for r, t in zip(real, traces)]
                for policy in peaks}
        within = sum(min(over[p][i] for p in CHECK.RANGE) <= 1 <=
                     max(over[p][i] for p in CHECK.RANGE)
                     for i in range(len(traces)))
        print(f"| {heading} | {ratios_cell(over[synchronized])} | "
              f"{ratios_cell(over['cuda_async'])} | "
              f"{ratios_cell(over[best])} (`{best}`) | "
              f"{sum(r == 1 for r in over[best])} of {len(traces)} | "
              f"{within} of {len(traces)} |", file=out)
    print("\n| recording | " + " | ".join(
        f"`{p.partition(':')[2]}`" for p in CHECK.RANGE) + " | range |",
        file=out)
    print("|---" * (len(CHECK.RANGE) + 2) + "|", file=out)
    for trace in traces:
        least = peaks[synchronized][trace]
        cells = [peaks[p][trace] / least for p in CHECK.RANGE]
        print(f"| `{trace}` | " + " | ".join(f"{c:.2f}" for c in cells) +
              f" | {span(cells, 1)} |", file=out)


def write_programs(out):
    path = os.path.join(DATA, "pool_programs.csv")
    with open(path, encoding="utf-8") as file:
        file.readline()
        rows = list(csv.DictReader(file))
    settings = [p.partition(":")[2] for p in CHECK.RANGE]
    print(PROGRAMS, file=out)
    print("| program | synchronized | requests | real | " +
          " | ".join(f"`{s}`" for s in settings) + " | within |", file=out)
    print("|---" * (len(settings) + 5) + "|", file=out)
    inside = 0
    for row in rows:
        real = int(row["reserved_high_bytes"])
        peaks = [int(row[s.replace("=", "_")]) for s in settings]
        is_in = min(peaks) <= real <= max(peaks)
        inside += is_in
        every = {"0": "at the end", "1": "every step"}.get(
            row["synchronized_every"],
            f"every {row['synchronized_every']} steps")
        print(f"| {row['library']} {row['program']} | {every} | "
              f"{row['requests']} | {real >> 20} | " +
              " | ".join(str(peak >> 20) for peak in peaks) +
              f" | {'yes' if is_in else 'no'} |", file=out)
    for heading, chosen in (("CuPy", "cupy"), ("PyTorch", "torch")):
        ratios = [int(row["reserved_high_bytes"]) / int(row["run_ahead_0"])
                  for row in rows if row["library"] == chosen]
        print(f"\n{heading}: real over the default {ratios_cell(ratios)}; equal "
              f"in {sum(r == 1 for r in ratios)} of {len(ratios)}.", file=out)
    print(f"\nWithin the range: {inside} of {len(rows)}.", file=out)


PROGRAMS = """
## What programs do

Four small programs each with PyTorch 2.11 (`backend:cudaMallocAsync`) and CuPy 14.2
on the same GPU: their calls of cudaMallocAsync and cudaFreeAsync were logged and
replayed here, in both with an unlimited release threshold. The CuPy programs called
cudaMallocAsync through an allocator of their own, which logged. Peak reserved in MiB;
the real pool grows by pages of 32 MiB. Each program ran once.
"""
HEAD = """# Real allocators and their policies

Made by `paper/tables/allocators_table.py`; do not edit. The requests of 20 recordings (at most
40,000 events each) were replayed through the real allocators on an H100: RMM 26.10,
CuPy 14.2, the CUDA driver's pool (cudaMallocAsync) and JAX 0.11. The same requests
are replayed here by the policies. Numbers are peak reserved over the peak of the
requested bytes. `tests/recordings/check_allocators.py --misses` compares the rows one by one,
also those with a limit, and prints the first difference of each miss.
"""

CUPY = f"""
CuPy's pool is not deterministic: among free blocks of equal size it takes one out of
a Python set, whose order depends on addresses in host memory. "real" is the range of
three runs, "simulated" that of {SEEDS} seeds (`cupy:seed=N`), and "equal" counts the
recordings whose real range lies within the simulated one. `rmm_pool` searches other
streams in the order of the addresses of their events, which no trace holds; one of
40 rows differs for that reason.
"""

DRIVER = """
## How far the host runs ahead of the driver's pool

A stream may reuse at once what it has freed. The driver remaps that memory, and
merges it with what was freed earlier, only after a synchronization or when a request
finds no hole; then it looks which work is done. So a program that synchronizes often
holds less than one that does not, and what the second one holds depends on how far
the device is behind the host. No trace shows either. `cuda_async` takes both as
parameters: `sync=N`, a synchronization after every N requests, and `run_ahead=N`,
work that is done N requests after its free. The default is a program that never
synchronizes on an idle device (`run_ahead=0`): it is exact there, and the best single
estimate where the device is little behind. The range is that of
""" + ", ".join(f"`{p}`" for p in CHECK.RANGE) + """.
A device that is further behind does not mean more memory in every program: memory
that the driver has not looked at merges with itself, and is split less.

"""


def write(found, streams):
    page = os.path.join(PAGES, "allocators.md")
    with open(page, "w", encoding="utf-8") as out:
        print(HEAD, file=out)
        write_summary(found, out)
        print(CUPY, file=out)
        print("## Each recording: real / simulated\n", file=out)
        write_recordings(found, out)
        print(DRIVER, file=out, end="")
        write_run_ahead(streams, out)
        write_programs(out)


def main():
    path = os.path.join(CHECK.SHARED, "oracle", "allocators.jsonl.xz")
    if not os.path.exists(path):
        print(f"skipped: no file {path}")
        return 77
    with lzma.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory() as folder:
        streams = CHECK.Streams(folder)
        found = gather(rows, streams)
        write(found, streams)
    return 0


if __name__ == "__main__":
    sys.exit(main())

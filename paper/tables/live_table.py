#!/usr/bin/env python3
"""live_table.py: pages/live.md from data/live.jsonl (gpu/live.py): policies in a running
PyTorch at the edge of what they need, against the simulation."""
import collections
import json
import math
import os

from places import DATA, PAGES

HEAD = """# Policies in a program, against the simulation

{about[device]}, driver {about[driver]}, PyTorch {about[torch]}, {about[date]}; made by
`paper/tables/live_table.py` from `paper/data/live.jsonl` ({about[command]}).

Each program ran once with PyTorch's own allocator and no bound. `fragsim fit` named from
this recording what each policy needs, as a capacity and as a limit of the process. Then
the program ran on the policy with exactly this need, and with the least less: 2 MiB of a
device; a byte, or 2 MiB, of a limit.

`as replayed`: the run's own requests, replayed under its policy and bound, have as many
refused requests and the same peak reserved, to the byte. `as foretold`: the run lived
with the need and died below it.

Run 5: after a warm-up that loads kernels and libraries, a block of the wanted size is
taken, then all that can be had, and the block is freed; so exactly this size can be
allocated. The driver then reports {rest:,} bytes more as free. With nothing left to be had it
reports {about[full_free]:,}, and refuses the smallest request.

Run 1 found two faults, which the later runs ran without: a snapshot that is taken under a
policy was replayed with empty_cache calls that the program did not make, and a run that
survives refused requests (cuDNN tries again with less memory) was counted as one that
dies. The `as replayed` of run 1 therefore counts too few.

"""
READING = """
## Reading

- {calm} of {calm_of} runs of programs without convolutions did what was foretold, in runs 2
  to 4; with convolutions {wild} of {wild_of}. cuDNN asks for a workspace and, if it is refused, goes
  on with a smaller one. A recording without a bound has no refused request, so it does
  not show this: such a program can live with less than `fit` says, and no run died
  with more.
- On full devices {full} of {full_of} runs lived that had their need. Below it, {switch} of
  {switch_of} died with expandable segments and {own} of {own_of} on `expandable`: in
  `diffusion` cuDNN went on, and in `trainer_gpt2` the policy knew from the warm-up how
  much would be live, and needed less. On `torch` {plain} of {plain_of} died.
  On `expandable` the driver took {device_ns:.1f} us a call on full devices, and
  {limit_ns:.1f} under a limit of the same size (the {both} programs that ran with both,
  by program {least:.2f} to {most:.2f} times as long).
- In runs 1 to 4 the runs of `torch` that differ from their replay are of `speech` and `accelerate_t5`.
  PyTorch 2.11 takes the block with the lower address of two free blocks of equal size,
  and the addresses of the real driver's segments are not those of the simulated one.
  That this is the reason was not shown.
- Programs with autocast free in another order when they run again, since PyTorch drops
  its casts in the order of host addresses. Their need changes by a few blocks.
"""
CONVOLVE = {"diffusion", "speech", "volumes", "vision_resnet", "vision_segmentation",
            "vision_vit", "lightning_autoencoder", "contrast"}


def counts(rows):
    found = collections.defaultdict(lambda: [0, 0, 0])
    for r in rows:
        c = found[r["policy"], r["bound"].replace("process", "limit")]
        c[:] = c[0] + r["agrees"], c[1] + r["foretold"], c[2] + 1
    return found


def full_devices(rows):
    """The numbers of run 5."""
    full = [r for r in rows if r["bound"] == "device"]
    own = {b: {r["workload"]: r for r in rows if r["bound"] == b and
               (r["policy"], r["expected"]) == ("expandable", "survived")}
           for b in ("device", "process")}
    both = sorted(set(own["device"]) & set(own["process"]))
    found = {"rest": min(r["free_start"] - r["cap"] for r in full), "both": len(both)}
    for bound, some in own.items():
        spent, calls = (sum(some[p][key] for p in both)
                        for key in ("driver_ns", "driver_calls"))
        found[{"device": "device_ns", "process": "limit_ns"}[bound]] = spent / calls / 1000
    ratios = [math.prod(own[b][p][key] ** sign for b, key, sign in (
        ("device", "driver_ns", 1), ("device", "driver_calls", -1),
        ("process", "driver_ns", -1), ("process", "driver_calls", 1))) for p in both]
    found |= {"least": min(ratios), "most": max(ratios)}
    for key, some in (
            ("full", [r for r in full if r["expected"] == "survived"]),
            *((key, [r for r in full if (r["policy"], r["expected"]) == (policy, "died")])
              for key, policy in (("plain", "torch"), ("own", "expandable"),
                                  ("switch", "torch:expandable_segments:True")))):
        found[key], found[key + "_of"] = share(some)
    return found


def share(rows):
    return sum(r["foretold"] for r in rows), len(rows)


def main():
    with open(os.path.join(DATA, "live.jsonl"), encoding="utf-8") as file:
        about, *rows = map(json.loads, file)
    first, later, last = ([r for r in rows if r["run"] in runs]
                          for runs in ((1,), (2, 3, 4), (5,)))
    lines = []
    for title, some in (("Runs 2 to 4", later), ("Run 5, full devices",
                                                 [r for r in last if r["bound"] == "device"]),
                        ("Run 1", first)):
        programs = sorted({r["workload"] for r in some})
        lines += [f"## {title}: {len(programs)} programs", "", ", ".join(programs), "",
                  "| policy | bound | runs | as replayed | as foretold |",
                  "|---|---|---:|---:|---:|"]
        lines += [f"| `{p}` | {b} | {of} | {same} | {told} |"
                  for (p, b), (same, told, of) in sorted(counts(some).items())]
        lines += [""]
    killed = [r for r in later + last if r["expected"] == "survived" and r["outcome"] == "died"]
    assert not killed, killed
    calm, calm_of = share([r for r in later if r["workload"] not in CONVOLVE])
    wild, wild_of = share([r for r in later if r["workload"] in CONVOLVE])
    with open(os.path.join(PAGES, "live.md"), "w", encoding="utf-8") as out:
        full = full_devices(last)
        out.write(HEAD.format(about=about, **full) + "\n".join(lines).rstrip("\n") + "\n"
                  + READING.format(calm=calm, calm_of=calm_of, wild=wild, wild_of=wild_of,
                                   **full))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""steps.py: what a step costs close to the limit of the process and far from it.

  steps.py run FOLDER [--seconds N] [--rounds N] [--only PROGRAM,...] [--sides SIDE,...]
               [--longer N]
    on one GPU: each program once without a limit for its peak, then the sides in turns
    (tables/lockstep.py). Adds rows to FOLDER/steps.jsonl
  steps.py turn PROGRAM SIDE LIMIT LONGER
    one side, a process that takes turns; LIMIT in bytes, 0 for none

A side is an allocator under a limit (set_per_process_memory_fraction) of so many times
the peak that PyTorch's default allocates ("fragsim 1.05", "segments": no limit): the
default, its expandable segments, these with pages of 12 MiB, and policy `expandable` of
fragsim. The programs are those of truth_programs.py and
real_programs.py, --longer times as long, and all sides make the same steps. A turn is a
step and the wait for the device. The first step, which makes the model and loads
kernels, comes before the turns, of all sides at once, and has no time; what it costs the
policy of fragsim is in its calls of the driver. Of each later step, the policy says how
long its calls took. A program whose sides do not fit the device together has several
groups of sides, each with the default and its control. PYTORCH_CUDA_ALLOC_CONF must not
be set.
"""
import argparse
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
EXPANDABLE = "expandable_segments:True"
ALLOCATORS = {"default": ("", None), "again": ("", None), "segments": (EXPANDABLE, None),
              "pages12": (EXPANDABLE + ",large_segment_size_mb:12", None),
              "fragsim": ("", "expandable")}
CONTROLS = [("default", None), ("again", None)]
SIDES = ("fragsim 1.05,segments 1.05,pages12 1.05,fragsim 1.02,segments 1.02,pages12 1.02,"
         "fragsim 1.1,segments 1.1")
PROGRAMS = ("seq2seq,experts,rnn_language,vit_accumulate,diffusion,distill,speech,"
            "accelerate_t5,vision_vit,vision_resnet").split(",")
CONTEXT, GIB = 1 << 30, 1 << 30  # a process takes CONTEXT besides its tensors


# ---- a side ----

def say(what):
    print(json.dumps(what), flush=True)


def cores():
    """Eight cores, the same ones for all sides on this device."""
    count, mine = os.cpu_count(), int(os.environ.get("FRAG_CORES", "0"))
    return {(8 * mine + core) % count for core in range(8)}


def turn(program, side, limit, longer):
    conf, policy = ALLOCATORS[side]
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = conf
    import torch
    import truth
    from truth_programs import Job
    made = truth.every()[program]
    if policy:
        truth.select({"policy": policy, "bound": "process"})
    torch.set_num_threads(1)
    torch.cuda.init()
    total = torch.cuda.get_device_properties(0).total_memory
    if limit:
        torch.cuda.set_per_process_memory_fraction((limit + 0.5) / total)
    steps, alive = made(Job(longer=longer)), True
    os.sched_setaffinity(0, cores())  # of the threads that the first step makes, too
    next(steps)
    torch.cuda.synchronize()
    first = truth.numbers_inside() if policy else {}
    before = first.get("driver_ns", 0)
    say({"ready": True})
    while alive and sys.stdin.readline():
        began = time.perf_counter()
        alive = next(steps, "end") != "end"
        torch.cuda.synchronize()
        if not alive:
            break
        row = {"seconds": round(time.perf_counter() - began, 6)}
        if policy:
            now = truth.numbers_inside()["driver_ns"]
            row["driver_seconds"], before = round((now - before) / 1e9, 6), now
        say(row)
    stats = torch.cuda.memory_stats()
    end = {"allocated": stats["allocated_bytes.all.peak"],
           "reserved": stats["reserved_bytes.all.peak"],
           "retries": stats["num_alloc_retries"], "total": total,
           "created": stats["num_device_alloc"], "released": stats["num_device_free"]}
    if policy:
        end |= truth.numbers_inside() | {"first_ns": first["driver_ns"],
                                         "first_calls": first["driver_calls"]}
    say({"end": end})
    os._exit(0)


# ---- the process that starts them ----

class Run:
    def __init__(self, folder, seconds, longer):
        self.began, self.seconds, self.longer = time.monotonic(), seconds, longer
        self.out = open(os.path.join(folder, "steps.jsonl"), "a", encoding="utf-8")

    def left(self):
        return self.seconds - (time.monotonic() - self.began)

    def write(self, row):
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def say(self, *words):
        print(f"[{self.seconds - self.left():4.0f}]", *words, flush=True)


def process(program, side, limit, longer, folder):
    from lockstep import Program
    name, times = side
    label = name if times is None else f"{name} {times}"
    return Program(label, [sys.executable, "-W", "ignore", os.path.abspath(__file__),
                           "turn", program, name, str(limit), str(longer)], dict(os.environ),
                   os.path.join(folder, label + ".log"))


def peak(run, program, folder):
    """What the default allocates and reserves in a run of its own."""
    from lockstep import Gone
    one = process(program, ("default", None), 0, run.longer, folder)
    try:
        one.answer(120)
        while one.end is None:
            one.turn(b"turn")
        one.finish(30)
    except (Gone, OSError) as why:
        run.say(program, why)
        run.write({"kind": "failed", "program": program, "side": "peak",
                   "words": str(why)[-400:]})
        return None
    run.write({"kind": "peak", "program": program, **one.end})
    return one.end


def limit_of(times, found):
    return int(times * found["allocated"]) if times else 0


def sides_of(words):
    """[(name, times)]; times None: no limit."""
    pairs = [word.split() for word in words.split(",")]
    return [(name, float(times[0]) if times else None) for name, *times in pairs]


def groups(found, sides):
    """The sides that fit the device at once, with the controls in each group."""
    room = found["total"] - 3 * GIB

    def takes(side):
        return CONTEXT + (limit_of(side[1], found) or found["reserved"])

    lists = []
    for side in sides:
        fits = [g for g in lists if sum(map(takes, g + CONTROLS + [side])) <= room]
        if fits:
            fits[0].append(side)
        else:
            lists.append([side])
    return [CONTROLS + g for g in lists]


def take(run, program, group, sides, found, share, rounds):
    """One group of sides in turns, for this share of the time that is left."""
    from lockstep import attempt, take_turns

    def failed(side, words):
        run.say(program, side, words[-200:].replace("\n", " "))
        run.write({"kind": "failed", "program": program, "group": group, "side": side,
                   "oom": "OutOfMemoryError" in words, "words": words[-400:]})

    with tempfile.TemporaryDirectory() as folder:
        programs = [process(program, side, limit_of(side[1], found), run.longer, folder)
                    for side in sides]
        count = 0
        for answers in take_turns(programs, run.left() * share - 10, rounds, failed):
            run.write({"kind": "round", "program": program, "group": group, "round": count,
                       "ms": {n: round(1000 * a["seconds"], 3)
                              for n, a in answers.items()},
                       "driver_ms": {n: round(1000 * a["driver_seconds"], 3)
                                     for n, a in answers.items() if "driver_seconds" in a}})
            count += 1
        alive = [p for p in programs if p.process.poll() is None or p.end]
        attempt(alive, lambda p: run.write({"kind": "end", "program": program, "group": group,
                                            "side": p.name, **p.finish(30)}), failed)
    run.say(program, f"{len(sides)} sides, {count} rounds")


def run_all(args):
    run, names = Run(args.folder, args.seconds, args.longer), args.only.split(",")
    jobs = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found = peak(run, name, folder)
            parts = groups(found, sides_of(args.sides)) if found else []
            jobs += [(name, group, sides, found) for group, sides in enumerate(parts, 1)]
    run.say(len(jobs), "groups of sides")
    for number, (name, group, sides, found) in enumerate(jobs):
        take(run, name, group, sides, found, 1 / (len(jobs) - number), args.rounds)


def main():
    if sys.argv[1:2] == ["turn"]:
        sys.path.insert(0, HERE)
        turn(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run"])
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--sides", default=SIDES)
    parser.add_argument("--longer", type=int, default=8)
    run_all(parser.parse_args())


if __name__ == "__main__":
    main()

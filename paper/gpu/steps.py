#!/usr/bin/env python3
"""steps.py FOLDER [--seconds N] [--sides NAME,...] [--only NAME,...] [--rounds N]

What a step costs close to the limit and far from it: programs of truth_programs.py and
real_programs.py under a limit of the process of 1.02 to 1.25 times the peak that they
allocate, and without one, with PyTorch's default, its expandable segments, and policy
`expandable` of fragsim. One process at a time has the GPU; a round runs each side once,
in turn. A program makes LONGER times its steps. Each step ends with a wait for the
device; all steps count, the first ones too.

FOLDER gets steps.jsonl, a row for each run: program, side, times (of the limit over the
peak; null: none), cap, outcome, ms (of each step), reserved, retries, and of fragsim the
driver's calls and their ns. A side is a name of SIDES; `page` needs a libc10_cuda.so with
the change of ../upstream loaded (LD_PRELOAD).
"""
import argparse
import json
import os
import sys
import tempfile
import time

import truth

SIDES = {"default": ("", None), "expandable_segments": (truth.EXPANDABLE, None),
         "page": (truth.EXPANDABLE + ",expandable_segments_page_mb:2", None),
         "fragsim": ("", "expandable")}
TIMES, LONGER = (None, 1.25, 1.05, 1.02), 4
PROGRAMS = ("seq2seq,contrast,experts,accelerate_t5,distill,vision_vit").split(",")


def one(row, path):
    """The child process."""
    conf, policy = SIDES[row["side"]]
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = conf
    import torch
    program = truth.every()[row["program"]]
    if policy:
        truth.select({"policy": policy, "bound": "process"})
    torch.cuda.init()
    if row["cap"]:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((row["cap"] + 0.5) / total)
    measure(row, program)
    if policy:
        row |= truth.numbers_inside()
    with open(path, "w", encoding="utf-8") as out:
        json.dump(row, out)


def measure(row, program):
    import torch
    from truth_programs import Job
    torch.ones(1, device="cuda")  # the context is made
    torch.cuda.synchronize()
    row["ms"], last = [], time.perf_counter()
    try:
        for _ in program(Job(longer=LONGER)):
            torch.cuda.synchronize()
            now = time.perf_counter()
            row["ms"].append(round(1000 * (now - last), 3))
            last = now
        row["outcome"] = "survived"
    except torch.OutOfMemoryError:
        row["outcome"] = "died"
    stats = torch.cuda.memory_stats()
    row |= {"reserved": stats["reserved_bytes.all.peak"],
            "allocated": stats["allocated_bytes.all.peak"],
            "retries": stats["num_alloc_retries"]}


def run(row, folder):
    path = os.path.join(folder, "row.json")
    log = os.path.join(folder, "log")
    number = truth.fork(one, row, path, log=log)
    os.waitpid(number, 0)
    if not os.path.exists(path):
        with open(log, encoding="utf-8", errors="replace") as file:
            return row | {"outcome": "failed", "error": file.read()[-600:]}
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    os.remove(path)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sides", default="default,expandable_segments,fragsim")
    parser.add_argument("--only", default=",".join(PROGRAMS))
    args = parser.parse_args()
    import torch  # noqa: F401  so that every child has it from the start
    truth.every()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, \
            open(os.path.join(args.folder, "steps.jsonl"), "a", encoding="utf-8") as out:
        peaks = {}
        for round_ in range(args.rounds):
            for program in args.only.split(","):
                for times in TIMES:
                    for side in args.sides.split(","):
                        if time.monotonic() - began > args.seconds:
                            sys.exit(0)
                        if times and program not in peaks:
                            continue
                        cap = int(times * peaks[program]) if times else None
                        row = run({"program": program, "side": side, "times": times,
                                   "cap": cap, "round": round_}, folder)
                        if not times and row["outcome"] == "survived":
                            peaks.setdefault(program, row["allocated"])
                        out.write(json.dumps(row) + "\n")
                        out.flush()


if __name__ == "__main__":
    main()

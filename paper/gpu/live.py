#!/usr/bin/env python3
"""live.py FOLDER [--seconds N] [--width N] [--only NAME,...] [--policies P;...]
               [--bounds BOUND,...]

Whether a policy of fragsim in a running PyTorch does what the simulation says. Each of
twenty programs (ten of truth_programs.py, ten of real_programs.py) runs once with
PyTorch's own allocator and no bound. From this one recording `fragsim fit` names what
each policy needs, as a capacity and as a limit of the process. Then the program runs on
the policy under both kinds of bound, with exactly this need and with the
least less (2 MiB of a device; a byte or 2 MiB of a limit), each in a process of its own: it must live, and die.

BOUND: capacity (the policy is told the size of the device), limit (of the process), or
full: memory that the allocator does not know of leaves exactly the need to be allocated on
the real device, after the program ran once to load its kernels and libraries. These runs
are made one at a time. Default: capacity,limit.

Some programs free in another order when they run again (autocast drops its casts in the
order of host addresses). So each run is also recorded, and its own requests are replayed
under its policy and bound: whether a request fails, and the peak reserved, must be equal.

FOLDER gets live.jsonl, a row for each run: program, policy, bound, need, cap, expected
and found outcome, the peaks inside, those of the replay, and the driver's calls. Needs fragsim_torch on PYTHONPATH, FRAGSIM and FRAGSIM_TORCH_LIBRARY.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import truth

PROGRAMS = ("diffusion,vit_accumulate,seq2seq,low_rank,rnn_language,contrast,experts,"
            "speech,volumes,distill").split(",")
POLICIES = ["torch", "torch:expandable_segments:True", "expandable", "best_fit", "remap",
            "bfc"]
# bound: what fit calls it, what truth.py calls it
BOUNDS = {"capacity": ("capacity", "capacity"), "limit": ("process-limit", "process"),
          "full": ("capacity", "device")}


def edge(bound, need, step):
    """The need, and the least less. What is left of a device is whole pages."""
    return (-(-need // truth.PAGE) * truth.PAGE, truth.PAGE) if bound == "device" else \
        (need, step)


def fitted(path, policies, total, bounds):
    """(policy, bound): the need, the step below it, and the peak reserved with it."""
    command = [os.environ["FRAGSIM"], "fit", "-q", "-j1", "--as-recorded", "--json", "-",
               path]
    for policy in policies:
        command += ["-p", policy]
    found = {}
    for bound in bounds:
        # A capacity is the size of the whole device, as in a program.
        kind, of_run = BOUNDS[bound]
        size = [] if of_run == "capacity" else [f"--total={total}"]
        done = subprocess.run([*command, f"--{kind}=inf", *size], text=True,
                              capture_output=True, check=True)
        for policy, row in zip(policies, json.loads(done.stdout)["results"]):
            found[policy, bound] = edge(of_run, row["need_bytes"], row["step_bytes"]) + (
                row["need_peak_reserved_bytes"],)
    return found


def replayed(row, path):
    """The requests of a run, replayed under its policy and its bound."""
    size = [] if row["bound"] == "capacity" else [f"--total={row['total_memory']}"]
    bound = "--process-limit" if row["bound"] == "process" else "-c"
    done = subprocess.run(
        [os.environ["FRAGSIM"], "replay", "-q", "--as-recorded", "--json", "-", "-p",
         row["policy"], *size, bound, f"{row['cap']}B", path],
        capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or '{"results": [{}]}')["results"][0]
    return {"replayed_ooms": found.get("num_ooms", -1),
            "replayed_peak": found.get("peak_reserved_bytes"),
            "replay_error": done.stderr[-300:]}


class Live(truth.Runner):
    """Keeps the recordings of the programs, and writes a row for each later run."""

    def __init__(self, folder, seconds):
        super().__init__(folder, seconds)
        import fragsim_torch  # noqa: F401  in every process, as torch
        self.threads, self.judged = ThreadPoolExecutor(4), []
        self.out = open(os.path.join(folder, "live.jsonl"), "a", encoding="utf-8")

    def pack(self, row):
        if row.get("policy"):
            self.threads.submit(self.judge, row)

    def judge(self, row):
        path = self.path(row["name"], ".pickle")
        kept = {k: row.get(k) for k in (
            "workload", "policy", "bound", "need", "cap", "expected", "outcome", "oom",
            "simulated_reserved", "error", "device", "free_start", "outside_growth",
            "left_before", "seconds")} | row["inside"] | replayed(row, path)
        # The policy's own peaks would include the warm-up.
        kept |= {f"peak_{what}": truth.peak(row, what) for what in ("reserved", "allocated")}
        kept["foretold"] = row["outcome"] == row["expected"]
        # A program may go on after a refusal: cuDNN tries with less memory.
        kept["ooms"] = row["stats"]["num_ooms"]
        kept["agrees"] = kept["replayed_ooms"] == kept["ooms"] and \
            kept["replayed_peak"] == kept["peak_reserved"]
        os.remove(path)
        self.judged.append(kept)
        self.out.write(json.dumps(kept) + "\n")
        self.out.flush()


def needs(runner, rows, policies, bounds):
    """The needs of each program that ran to its end."""
    whole = [r for r in rows if runner.rows[r["name"]]["outcome"] == "survived"]

    def one(row):
        total = runner.rows[row["name"]]["total_memory"]
        return row["workload"], fitted(runner.path(row["name"], ".pickle"), policies, total,
                                       bounds)

    with ThreadPoolExecutor(8) as threads:
        return dict(threads.map(one, whole))


def jobs_of(found):
    """The runs at the edge of each need."""
    rows = []
    for program, fits in found.items():
        for (policy, bound), (need, step, reserved) in fits.items():
            for expected, cap in (("survived", need), ("died", need - step)):
                name = f"{program}-{policy}-{bound}-{expected}".replace(":", "_")
                rows.append(truth.spec(name, program, "", BOUNDS[bound][1], cap) | {
                    "policy": policy, "need": need, "expected": expected,
                    "simulated_reserved": reserved if expected == "survived" else None})
    return rows


def full_free(runner):
    """What the device reports as free when nothing more can be had of it."""
    ready, say = os.pipe()

    def fill():
        import torch
        truth.Ballast().leave(0)
        os.write(say, b"%d" % torch.cuda.mem_get_info()[0])

    filler = truth.fork(fill, log=runner.path("filler", ".log"))
    os.waitpid(filler, 0)
    os.close(say)
    runner.out.write(json.dumps({"full_free": int(os.read(ready, 32))}) + "\n")
    os.close(ready)


def table(rows):
    """Runs that did what their replay does, and what was foretold, by policy and bound."""
    agree = collections.defaultdict(lambda: [0, 0, 0])
    for row in rows:
        counts = agree[row["policy"], row["bound"]]
        counts[:] = (counts[0] + row["agrees"], counts[1] + row["foretold"], counts[2] + 1)
    for (policy, bound), (same, foretold, of) in sorted(agree.items()):
        print(f"{policy:32} {bound:9} as replayed {same} of {of}, as foretold {foretold}")
    for row in rows:
        if not row["agrees"] or not row["foretold"]:
            print("agrees" if row["agrees"] else "DIFFERS", row["workload"], row["policy"],
                  row["bound"], row["expected"], row["outcome"], row["cap"],
                  row["peak_reserved"], row["replayed_peak"], row["replayed_ooms"],
                  (row["replay_error"] or row["error"] or "")[-200:].replace("\n", " "))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--width", type=int, default=10)
    parser.add_argument("--only")
    parser.add_argument("--policies", default=";".join(POLICIES))
    parser.add_argument("--bounds", default="capacity,limit")
    args = parser.parse_args()
    from real_programs import REAL
    names = args.only.split(",") if args.only else PROGRAMS + list(REAL)
    policies = args.policies.split(";")
    subprocess.run([sys.executable, "-m", "fragsim_torch", "build"], check=True)
    runner = Live(args.folder, args.seconds)
    free = [truth.spec(name, name, "") for name in names]
    runner.all_of(free, args.width)
    jobs = jobs_of(needs(runner, free, policies, args.bounds.split(",")))
    print(f"[{runner.at():5.0f}] {len(jobs)} runs at the edges", flush=True)
    full = [j for j in jobs if j["bound"] == "device"]
    if full:
        full_free(runner)
    left = runner.full_device(full)
    left += runner.all_of([j for j in jobs if j["bound"] != "device"], args.width)
    runner.threads.shutdown()
    table(runner.judged)
    runner.close(left)


if __name__ == "__main__":
    main()

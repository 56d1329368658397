#!/usr/bin/env python3
"""holdout.py FRAGSIM FOLDER [--seconds N] [--width N]: asks the tool about jobs that
nobody has seen, and then lets them happen.

The programs are those of truth_programs.py with other seeds, lengths and batches, those
of real_programs.py, and those below. On a GPU, each run in a process of its own:
  1. each program without a limit, with PyTorch's default
  2. under limits of the process, LEVELS times the peak allocated, until it dies; the
     snapshot is taken there
  3. `tune` is asked about every snapshot, under its limit; FOLDER/predicted.csv is
     written before anything of 4 is run
  4. the program under the same limit with the setting of the answer, from the start;
     FOLDER/dead_holdout.csv is predicted.csv with what happened
"""
import argparse
import collections
import csv
import json
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.nn import functional as F

import truth
from real_programs import REAL
from truth_programs import (PROGRAMS, Denoiser, Gpt, Job, Session, adam, next_token,
                            player, small_model, update)

LEVELS = [("", 1.02), ("", 0.97), (truth.EXPANDABLE, 1.0), ("", 1.06), ("", 0.88),
          ("", 1.1), ("", 1.17)]
SEEDS = {101: 1.4, 202: 0.75}      # seed: how far lengths and batches are stretched
ENDS = (0.18, 0.57)                # of the time, at which parts 1 and 2 end
COLUMNS = ["death", "program", "recorded_with", "limit_bytes", "peak_bytes", "asked_bytes",
           "failed_requests", "died_step", "odds", "lived", "of", "setting",
           "need_said_bytes", "enough_said_bytes"]
HAPPENED = ["outcome", "held_step", "held_peak_bytes"]


class Other(Job):
    """A job whose lengths and batches are drawn with another seed, and stretched."""

    def __init__(self, seed, stretch):
        super().__init__()
        self.random, self.stretch = random.Random(seed), stretch
        torch.manual_seed(seed)

    def budget(self, size):
        return int(size * self.stretch)

    def between(self, low, high, unit=1):
        return super().between(low, low + int((high - low) * self.stretch), unit)


# ---- programs that no recording of ours has ----

def growing_batches(job):
    """A convolutional network whose batch grows every few steps."""
    model = nn.Sequential(*(part for i, o in ((3, 64), (64, 128), (128, 256), (256, 256))
                            for part in (nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o),
                                         nn.ReLU())), nn.Flatten(), nn.LazyLinear(100))
    model.to(job.device)(torch.rand(2, 3, 128, 128, device=job.device))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for step in job.steps(30):
        many = job.budget(64) * (1 + step // 6)
        x = torch.rand(many, 3, 128, 128, device=job.device)
        update(F.cross_entropy(model(x), job.ids(100, many)), optimizer)
        yield


def optimizer_switch(job):
    """Plain descent first; Adam, with its moments, from the middle on."""
    model = job.make(Gpt, 6, 768, 16000)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for step in job.steps(24):
        if step == 12:
            optimizer = adam(model)
        ids = job.ids(16000, 4, job.between(100, 700))
        with job.mixed():
            loss = next_token(model(ids), ids)
        update(loss, optimizer)
        yield


def off_policy(job):
    """A store of moves on the device grows to its limit; samples of it are learnt."""
    model, old = player().to(job.device), player().to(job.device)
    optimizer, store = adam(model), collections.deque(maxlen=120)
    for _ in job.steps(40):
        for _ in range(job.between(2, 8)):
            store.append(torch.randint(0, 255, (job.budget(96), 4, 84, 84),
                                       dtype=torch.uint8, device=job.device))
        some = torch.cat([job.random.choice(store) for _ in range(job.between(2, 12))])
        with torch.no_grad():
            wanted = old(some.float() / 255)
        update(F.mse_loss(model(some.float() / 255), wanted), optimizer)
        yield


def sampled_neighbours(job):
    """Three hops of neighbours are sampled from a graph, with uneven degrees."""
    nodes, width = 200_000, 256
    table = job.normal(nodes, width)
    parts = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3)).to(job.device)
    optimizer = adam(parts)
    for _ in job.steps(30):
        layers, seen = [], job.ids(nodes, job.between(200, 1500))
        for _ in range(3):
            edges = torch.randint(0, len(seen), (len(seen) * job.between(3, 9),))
            edges = edges.to(job.device)
            more = (seen[edges] * 2654435761 + torch.arange(
                len(edges), device=job.device)) % nodes
            every, at = torch.unique(torch.cat([seen, more]), return_inverse=True)
            layers.append((at[:len(seen)], at[len(seen):], edges))
            seen = every
        x = table[seen]
        for part, (own, other, edges) in zip(parts, reversed(layers)):
            met = torch.zeros(len(own), width, device=job.device)
            met = met.index_add(0, edges, x[other])
            x = F.relu(part(torch.cat([x[own], met], 1)))
        update(x.square().mean(), optimizer)
        yield


def beams(job):
    """Generation in batches: caches grow, are reordered, and start anew."""
    model, active = job.make(Gpt, 6, 1024, kind=torch.bfloat16), None
    with torch.inference_mode():
        for _ in job.steps(60):
            if active is None or active.left <= 0:
                ids = job.ids(32000, job.between(4, 24), job.between(50, 900))
                active = Session(model, ids, job.between(4, 20))
            active.step(model)
            order = torch.randperm(len(active.last)).to(job.device)
            active.caches = [tuple(t[order] for t in pair) for pair in active.caches]
            yield


def evaluates(job):
    """Small batches in training; now and then larger ones without gradients."""
    model = job.make(Gpt, 6, 640, 24000)
    optimizer = adam(model)
    for step in job.steps(32):
        ids = job.ids(24000, 4, job.between(100, 500))
        with job.mixed():
            loss = next_token(model(ids), ids)
        update(loss, optimizer)
        if step % 7 == 6:
            with torch.no_grad(), job.mixed():
                ids = job.ids(24000, job.between(8, 24), job.between(300, 700))
                next_token(model(ids), ids).item()
        yield


def curriculum(job):
    """Texts get longer from step to step."""
    model = job.make(Gpt, 8, 512, 16000)
    optimizer = adam(model)
    for step in job.steps(36):
        ids = job.ids(16000, 6, job.budget(100 + 25 * step))
        with job.mixed():
            loss = next_token(model(ids, again=4), ids)
        update(loss, optimizer)
        yield


def samples_pictures(job):
    """A denoiser in training, which makes a few pictures now and then."""
    model = job.make(Denoiser, (64, 128, 256))
    optimizer = adam(model)
    for step in job.steps(24):
        many, side = job.between(8, 40), job.between(32, 80, 8)
        x, when = job.normal(many, 4, side, side), torch.rand(many, device=job.device)
        update(F.mse_loss(model(x, when), x), optimizer)
        if step % 6 == 5:
            with torch.no_grad():
                x = job.normal(job.between(16, 64), 4, 64, 64)
                for _ in range(4):
                    x = model(x, torch.ones(len(x), device=job.device))
        yield


def ranks_pairs(job):
    """Two towers; all pairs of a batch of any size, hard ones again."""
    model = small_model(job)
    optimizer = adam(model)
    for _ in job.steps(50):
        many = job.between(200, 3000)
        left, right = model(job.normal(many, 1024)), model(job.normal(many, 1024))
        scores = left @ right.T
        hard = scores.detach().flatten().topk(many // 2).indices % many
        loss = F.cross_entropy(scores, torch.arange(many, device=job.device))
        update(loss + model(job.normal(many, 1024)[hard]).square().mean(), optimizer)
        yield


NEW = {f.__name__: f for f in (growing_batches, optimizer_switch, off_policy,
                               sampled_neighbours, beams, evaluates, curriculum,
                               samples_pictures, ranks_pairs)}


def other(program, seed):
    return lambda _: program(Other(seed, SEEDS[seed]))


def programs():
    """{name: program} of all; each is known by its name in every process."""
    return {f"{name}_{seed}": other(program, seed) for seed in SEEDS
            for name, program in (NEW | PROGRAMS).items()} | REAL


# ---- the four parts ----

class Runner(truth.Runner):
    """Keeps the snapshots of deaths until they were asked about, and no others."""

    def pack(self, row):
        if row["bound"] != "process" or row["outcome"] != "died" or "truth_of" in row:
            os.remove(self.path(row["name"], ".pickle"))

    def until(self, rows, width, end):
        self.seconds = end
        left = self.all_of(rows, width)
        print(f"[{self.at():5.0f}] no time for {len(left)}", flush=True)


def bounded(runner):
    """The runs under limits, all programs at the first level first."""
    for conf, level in LEVELS:
        for name, row in list(runner.rows.items()):
            asked, most = truth.peak(row, "allocated"), truth.peak(row, "reserved")
            if row["outcome"] == "survived" and int(level * asked) < most:
                tag = f"{name}__{100 * level:.0f}{'_exp' if conf else ''}"
                yield truth.spec(tag, name, conf, "process", int(level * asked)) \
                    | {"peak_bytes": most, "asked_bytes": asked}


def ask(fragsim, runner, row):
    """What the tool says of a death; None if it says nothing in time."""
    try:
        done = subprocess.run([
            fragsim, "tune", "-q", "-j", "1", runner.path(row["name"], ".pickle"), "--json",
            "-", "--process-limit", f"{row['cap']}B"], check=False, timeout=60,
            capture_output=True, text=True)
        told, = json.loads(done.stdout)["results"]
    except (subprocess.TimeoutExpired, ValueError):
        return None
    best, case = told["best"], told["cases"][0]["best"]
    return dict(zip(COLUMNS, (
        row["name"], row["workload"], row["conf"], row["cap"], row["peak_bytes"],
        row["asked_bytes"], row["stats"]["num_ooms"], row["died_step"], best["odds"],
        best["lived"], best["of"], best["settings"], case["need_bytes"],
        case["enough_bytes"])))


def write(folder, name, columns, rows):
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fragsim")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=530)
    parser.add_argument("--width", type=int, default=13)
    args = parser.parse_args()
    truth.every = programs
    runner = Runner(args.folder, args.seconds)
    runner.until([truth.spec(name, name, "") for name in programs()], args.width,
                 ENDS[0] * args.seconds)
    runner.until(list(bounded(runner)), args.width, ENDS[1] * args.seconds)
    dead = [row for row in runner.rows.values()
            if row["bound"] == "process" and row["outcome"] == "died"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [s for s in pool.map(lambda r: ask(args.fragsim, runner, r), dead) if s]
    write(args.folder, "predicted.csv", COLUMNS, said)

    runner.until([truth.spec(f"{s['death']}__held", s["program"], s["setting"], "process",
                             s["limit_bytes"]) | {"truth_of": s["death"]} for s in said],
                 args.width, args.seconds)
    for s in said:
        row = runner.rows.get(f"{s['death']}__held", {})
        s |= {"outcome": row.get("outcome", "not run"), "held_step": row.get("died_step"),
              "held_peak_bytes": truth.peak(row, "reserved")}
    write(args.folder, "dead_holdout.csv", [*COLUMNS, *HAPPENED], said)


if __name__ == "__main__":
    main()

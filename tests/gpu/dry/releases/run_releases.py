#!/usr/bin/env python3
"""run_releases.py [OPTION...] ENVIRONMENT...: runs the programs of this folder under `fragsim
dry` with each environment, and prints what each needs.

An environment is a folder that `fragsim dry --setup` made, with numpy, torchvision,
transformers, accelerate and triton. A cell is the need in MiB with the settings of
the program, `-` where the release lacks what the program calls, or how the program
ended. Behind the need is `!` where it called functions that a stand-in lacks; they
are listed below the table. The exit code is 1 if a program failed or lacked a function.
FRAGSIM names the tool.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

from common import ABSENT

HERE = os.path.dirname(os.path.abspath(__file__))
FRAGSIM = os.environ.get("FRAGSIM", "fragsim")
PROGRAMS = [
    *(("vision.py", name) for name in (
        "cnn_benchmark", "resnet_channels_last", "amp_gradscaler",
        "dataloader_pinned", "detection")),
    *(("text.py", name) for name in (
        "transformer_sdpa", "trainer_fp16", "trainer_bf16", "generate", "lstm_gru",
        "checkpointing", "ddp_two")),
    *(("device.py", name) for name in (
        "compile_mlp", "triton_kernel", "cuda_graphs", "einsum_linalg", "fft",
        "sparse", "mem_pool", "streams", "expandable", "foreach_optimizers"))]
# What the detector finds hangs on its weights, so it would run several times.
OPTIONS = {"ddp_two": ["--gpus", "2"], "detection": ["--values", "off"]}


def needs_of(path):
    """The bytes that the program needs of its GPUs: the most of them."""
    with open(path, encoding="utf-8") as file:
        results = json.load(file)["results"]
    return max(one["settings"][0]["need_bytes"] for one in results), \
        all(one["whole"] for one in results)


def run(python, file, name):
    """The cell of one program, the functions that it lacked, and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        answer = os.path.join(folder, "answer.json")
        env = {**os.environ, "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
               "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
               "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1",
               "MASTER_PORT": str(20000 + os.getpid() % 5000 + sum(map(ord, python)))}
        words = [FRAGSIM, "dry", *OPTIONS.get(name, ()), "--json", answer, "--",
                 python, os.path.join(HERE, file), name]
        done = subprocess.run(words, env=env, text=True, capture_output=True,
                              check=False, timeout=1200)
        lacked = set(re.findall(r"the stand-in has no (.*)", done.stderr))
        if done.returncode == ABSENT:
            return "-", lacked, ""
        if done.returncode:
            return f"exit {done.returncode}", lacked, done.stderr[-2000:]
        need, whole = needs_of(answer)
    return f"{need / 2**20:.0f}{'' if whole else '?'}{'!' if lacked else ''}", \
        lacked, "" if whole else "the trace is not whole"


def release_of(environment):
    done = subprocess.run(
        [os.path.join(environment, "bin", "python"), "-c",
         "import importlib.metadata as m; print(m.version('torch'))"],
        text=True, capture_output=True, check=True)
    return done.stdout.strip().partition("+")[0]


def show(rows, releases, file):
    width = max(len(name) for name, _ in rows)
    print(" " * width, *(f"{one:>9}" for one in releases), file=file)
    for name, cells in rows:
        print(f"{name:{width}}", *(f"{one:>9}" for one in cells), file=file)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("environments", nargs="+")
    options.add_argument("-j", type=int, default=1, help="programs at a time")
    options.add_argument("-o", help="CSV of the table")
    options.add_argument("--only", help="names of programs, with a comma between them")
    given = options.parse_args()
    chosen = [(file, name) for file, name in PROGRAMS
              if not given.only or name in given.only.split(",")]
    releases = [release_of(one) for one in given.environments]
    lacking, wrong = {}, []
    with concurrent.futures.ThreadPoolExecutor(given.j) as pool:
        runs = {(name, place): pool.submit(run, os.path.join(place, "bin", "python"),
                                           file, name)
                for place in given.environments for file, name in chosen}
        rows = []
        for _, name in chosen:
            cells = []
            for place, release in zip(given.environments, releases):
                cell, lacked, said = runs[name, place].result()
                print(release, name, cell, file=sys.stderr, flush=True)
                cells.append(cell)
                for one in lacked:
                    lacking.setdefault(one, []).append(f"{name} ({release})")
                if said or lacked:
                    wrong.append((name, release, said))
            rows.append((name, cells))
    show(rows, releases, sys.stdout)
    for one, where in sorted(lacking.items()):
        print(f"lacks {one}: {', '.join(where)}")
    for name, release, said in wrong:
        if said:
            print(f"--- {name}, {release}\n{said}", file=sys.stderr)
    if given.o:
        with open(given.o, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["program", *releases],
                                        *([name, *cells] for name, cells in rows)])
    sys.exit(bool(wrong))


main()

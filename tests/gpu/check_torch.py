#!/usr/bin/env python3
"""check_torch.py: checks libfragsim_torch.so under a program with threads and
streams.

tests/gpu/torch/torch_program.c calls the library as PyTorch does, on the stand-in for the driver. No
two owners may ever write to one block, with every policy that does not move
blocks, with streams whose work ends at once and with streams whose work ends
only when the program waits for the device. The result file must agree with the
numbers that the program read. Wrong settings and a full device must end the
program with a message. tests/gpu/torch/torch_streams.c has the scenes in which a stream
must wait and a block must not be free yet.
Environment: FRAG_BUILD_DIR.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM

PROGRAM = os.path.join(BUILD, "tests", "torch_program")
STREAMS = os.path.join(BUILD, "tests", "torch_streams")
LIBRARY = os.path.join(BUILD, "libfragsim_torch.so")
# The stand-ins for the driver and for PyTorch's libc10.so.
LIBRARIES = os.path.join(BUILD, "dry") + ":" + os.path.join(BUILD, "tests", "c10")
failures = []


def fail(text):
    failures.append(text)
    print(text)


def run(*arguments, program=PROGRAM, **settings):
    """The stand-in ignores memory that a dying process leaves behind."""
    env = dict(os.environ, FRAGSIM_DRY_LEAKS="1",
               LD_LIBRARY_PATH=LIBRARIES)
    env.update({key: str(value) for key, value in settings.items()})
    return subprocess.run([program, LIBRARY, *arguments], env=env, text=True,
                          capture_output=True, check=False)


def policies():
    done = subprocess.run([FRAGSIM, "policies", "--json", "-"], check=True,
                          capture_output=True, text=True)
    names = [p["name"] for p in json.loads(done.stdout)["policies"]
             if not {"moves", "future"} & set(p["needs"])]
    return names + ["torch:expandable_segments:True"]


def serves(folder, policy, lazy):
    output = os.path.join(folder, f"{policy.replace(':', '-')}{lazy}.h5")
    done = run(FRAGSIM_POLICY=policy, FRAGSIM_OUTPUT=output,
               FRAGSIM_DRY_LAZY=lazy)
    if done.returncode or done.stderr:
        fail(f"{policy}: exit {done.returncode}: {done.stderr.strip()}")
        return
    peak, calls, requests = map(int, done.stdout.split())
    if f"\t{peak}\t" not in bars(output):
        fail(f"{policy}: the result file has another peak")
    if calls < 1 or policy == "direct" and calls != requests:
        fail(f"{policy}: {calls} calls of the driver for {requests} requests")


def bars(path):
    """The data of the figure `compare`, which exists for any result file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([FRAGSIM, "plot", path, "compare", "-q", "-f", "--keep",
                        folder, "-o", os.path.join(folder, "x.svg")],
                       capture_output=True, check=False)
        texts = []
        for name in ("compare.tsv", "compare.facts.tsv"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append(file.read())
        return "\n".join(texts)


def orders(folder):
    is_quiet(run(program=STREAMS, FRAGSIM_DRY_LAZY=1,
                 FRAGSIM_OUTPUT=os.path.join(folder, "child.h5")), "streams")


def is_quiet(done, what):
    if done.returncode or done.stderr:
        fail(f"{what}: exit {done.returncode}: {done.stderr.strip()}")


def writes(folder):
    """The result file has the program's settings. An old file is overwritten
    only on request; an empty setting counts as none."""
    out = os.path.join(folder, "set.h5")
    what = {"FRAGSIM_POLICY": "torch:expandable_segments:True",
            "FRAGSIM_CAPACITY": "3GiB", "FRAGSIM_OUTPUT": out}
    days = [time.strftime("%Y-%m-%dT", time.gmtime())]
    is_quiet(run("4096", **what), "a request")
    days.append(time.strftime("%Y-%m-%dT", time.gmtime()))
    if ("torch:expandable_segments:True on 3 GiB" not in bars(out)
            or "torch_program" not in bars(out)):
        fail(f"the result file has other settings: {bars(out)}")
    page = os.path.join(folder, "page.html")
    subprocess.run([FRAGSIM, "report", out, "-q", "-o", page], check=True)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if (f"{PROGRAM} {LIBRARY} 4096" not in text
            or not any(day in text for day in days)):
        fail("the report has another command, or day")
    refuses("exists", "4096", **what)
    what["FRAGSIM_CAPACITY"] = "4GiB"
    is_quiet(run("4096", FRAGSIM_REPLACE=1, **what), "a second run")
    if "on 4 GiB" not in bars(out):
        fail("the second run did not replace the result file of the first")
    is_quiet(run("4096", FRAGSIM_POLICY="", FRAGSIM_CAPACITY="",
                 FRAGSIM_OUTPUT="", FRAGSIM_REPLACE=""), "empty settings")


def names_by_process(folder):
    pattern = os.path.join(folder, "a-%p-b.h5")
    with subprocess.Popen(
            [PROGRAM, LIBRARY, "4096"], env=dict(
                os.environ, FRAGSIM_DRY_LEAKS="1", FRAGSIM_OUTPUT=pattern,
                LD_LIBRARY_PATH=LIBRARIES)
    ) as tool:
        tool.wait()
    if not os.path.exists(pattern.replace("%p", str(tool.pid))):
        fail(f"%p: {os.listdir(folder)}")


def refuses(words, *arguments, **settings):
    done = run(*arguments, **settings)
    if not done.returncode or words not in done.stderr:
        fail(f"{settings}: exit {done.returncode}, {done.stderr.strip()}, "
             f"expected {words}")


def main():
    if not os.path.exists(PROGRAM):
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        list(pool.map(lambda p: serves(folder, p, 0), policies()))
        list(pool.map(lambda p: serves(folder, p, 1),
                      ["best_fit", "torch", "remap", "expandable"]))
        there = os.path.join(folder, "there.h5")
        with open(there, "w", encoding="utf-8"):
            pass
        refuses("exists", FRAGSIM_OUTPUT=there)
        orders(folder)
        writes(folder)
        names_by_process(folder)
    refuses("at most 4095 characters", FRAGSIM_OUTPUT="x" * 5000)
    refuses("there is no policy", FRAGSIM_POLICY="no_such")
    refuses("segment", FRAGSIM_POLICY="best_fit:segment=x")
    refuses("moves blocks", FRAGSIM_POLICY="compact")
    refuses("knows when each block is freed", FRAGSIM_POLICY="plan")
    refuses("FRAGSIM_CAPACITY", FRAGSIM_CAPACITY="much")
    refuses("out of memory", str(1 << 30), FRAGSIM_POLICY="best_fit",
            FRAGSIM_CAPACITY="512MiB")
    refuses("out of memory", str(1 << 40), FRAGSIM_POLICY="torch")
    if failures:
        sys.exit(f"check_torch: {len(failures)} wrong")


main()

#!/usr/bin/env python3
"""check_lockstep.py: checks paper/tables/lockstep.py, device_table.py and
paper/gpu/allocators.py, without a GPU and without PyTorch.

It checks the statistics against tables, counting and simulation; that programs
run strictly in turns; that a program that dies is left out and named. Then it runs
allocators.py on a replacement for torch and on the stand-in for the driver, and
compares the page with rows whose result is known.
Environment: FRAGSIM, FRAG_BUILD_DIR.
"""
import csv
import io
import itertools
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, ROOT

PAPER = os.path.join(ROOT, "paper")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(PAPER, "gpu"), os.path.join(PAPER, "tables")]
import allocators  # noqa: E402
import device_table  # noqa: E402
import lockstep  # noqa: E402

faults = []


def expect(true, what):
    if not true:
        faults.append(what)
        print(what)


# ---- statistics ----


def designs():
    for n in range(2, 8):
        rows = lockstep.orders(n)
        expect(all(sorted(r) == list(range(n)) for r in rows), f"rows of {n}")
        after = [p for r in rows for p in itertools.pairwise(r)]
        places = [p for r in rows for p in enumerate(r)]
        for found, wanted in ((after, n * (n - 1)), (places, n * n)):
            expect(len(set(found)) == wanted and
                   len({found.count(p) for p in found}) == 1,
                   f"orders of {n} are not balanced")


def intervals():
    """Compares ranks with tables of the sign test (Conover, table A3; n, lower
    rank)."""
    for n, rank in ((5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (25, 8),
                    (50, 18), (100, 40)):
        middle, found = lockstep.median_interval(range(1, n + 1))
        wanted = (rank, n + 1 - rank) if rank else None
        expect(found == wanted and middle == (n + 1) / 2,
               f"interval of {n}: {found}, expected {wanted}")


def many_values():
    middle, found = lockstep.median_interval(range(4001))
    expect(middle == 2000 and abs(found[0] - (2000 - 0.98 * 4001 ** .5)) < 2,
           f"interval of 4001: {found}")


def coverage():
    """Counts how often the true value lies in the interval, for skewed times.
    """
    draw, runs, hits = random.Random(7), 400, [0, 0]
    for _ in range(runs):
        pairs = [(1.02 * draw.lognormvariate(0, 0.1),
                  draw.lognormvariate(0, 0.1)) for _ in range(60)]
        low, high = lockstep.median_interval([a / b for a, b in pairs])[1]
        hits[0] += low <= 1.02 <= high
        low, high = lockstep.total_interval(pairs, draws=200)[1]
        hits[1] += low <= 1.02 <= high
    for hit, least in zip(hits, (0.94, 0.91)):
        expect(least <= hit / runs <= 0.99, f"the interval holds in {hit} of {runs}")


# ---- turns ----

PROGRAM = """
import json, sys, time
dies, log = int(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
print("noise"); print(json.dumps({"ready": True}), flush=True)
for number, line in enumerate(sys.stdin):
    if number == dies:
        sys.exit("so it ends")
    began = time.monotonic_ns(); time.sleep(.002)
    log.write(f"{began} {time.monotonic_ns()} {sys.argv[3]}\\n")
    print(json.dumps({"seconds": .002}), flush=True)
print(json.dumps({"end": {"turns": number + 1}}))
"""


def turns(folder):
    log, failed = os.path.join(folder, "log"), []
    programs = [lockstep.Program(
        name, [sys.executable, "-c", PROGRAM, "4" if name == "b" else "-1", log,
               name], os.environ, os.path.join(folder, name)) for name in "abcd"]
    rounds = list(lockstep.take_turns(programs, 60, 9,
                                      lambda *what: failed.append(what)))
    left = [p for p in programs if p.process.returncode is None]
    ends = {p.name: p.finish() for p in left}
    expect([sorted(r) for r in rounds] == [list("abcd")] * 4 + [list("acd")] * 5,
           f"rounds {[sorted(r) for r in rounds]}")
    expect(ends == {n: {"turns": 9} for n in "acd"}, f"ends {ends}")
    expect(len(failed) == 1 and failed[0][0] == "b" and
           "so it ends" in failed[0][1], f"failures {failed}")
    with open(log, encoding="ascii") as file:
        spans = sorted((*map(int, line.split()[:2]), line.split()[2])
                       for line in file)
    expect(all(a[1] <= b[0] for a, b in itertools.pairwise(spans)),
           "two programs were at work at once")
    four, three = lockstep.orders(4), lockstep.orders(3)
    wanted = ["abcd"[i] for r in range(5) for i in four[r % 4]]
    wanted = [n for k, n in enumerate(wanted) if k < 16 or n != "b"]
    wanted += ["acd"[i] for r in range(4) for i in three[r]]
    expect([s[2] for s in spans] == wanted, "turns are out of order")


def full_rounds(folder):
    """Less important programs run in every fourth round, and the output states
    it."""
    def program(name):
        return lockstep.Program(name, [sys.executable, "-c", """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"word": line.strip()}), flush=True)
print(json.dumps({"end": {}}))
"""], os.environ, os.path.join(folder, name))

    programs = [program(name) for name in "abcd"]
    rounds = list(lockstep.take_turns(programs, 60, 25, print, rare="cd"))
    for p in programs:
        p.finish()
    wanted = [("abcd", "full") if r % 4 == 3 else ("ab", "turn")
              for r in range(25)]
    got = [("".join(sorted(r)), "".join({a["word"] for a in r.values()}))
           for r in rounds]
    expect(got == wanted, f"rounds {got}")
    orders = ["".join(r) for r in rounds]
    expect(sorted(set(orders[3::4])) == sorted(
        "".join("abcd"[i] for i in o) for o in lockstep.orders(4)),
        f"full rounds in the orders {orders[3::4]}")
    both = [o for o in orders if len(o) == 2]
    expect(abs(both.count("ab") - both.count("ba")) <= 1, f"orders {both}")


# ---- the experiments ----

TORCH = {
    "torch/__init__.py": """
import types
__version__ = "0"
nothing = lambda *rest, **named: None
from_numpy = lambda held: held
kept = [False]
cuda = types.SimpleNamespace(
    synchronize=nothing, init=nothing, reset_peak_memory_stats=nothing,
    get_device_name=lambda i: "NONE",
    empty_cache=lambda: kept.__setitem__(0, False))
""",
    "fragsim_torch.py": """
import os
use = lambda: os.environ["FRAGSIM_POLICY"]
""",
    "torch/utils/__init__.py": "",
    "torch/utils/cpp_extension.py": """
import types
load_inline = lambda *rest, **named: types.SimpleNamespace(
    replay_uncached=lambda events: 5000.0)
""",
    "numpy.py": """
uint8 = None
def fromfile(path, dtype):
    with open(path, "rb") as file: return file.read()
""",
    "oracle.py": """
import os, types
import torch
base = 100 + 100 * ("PYTORCH_CUDA_ALLOC_CONF" in os.environ)
base += {"torch": 1000, "remap": 2000}.get(os.environ.get("FRAGSIM_POLICY"), 0)
def replay(events, stop):
    found = base + (0 if torch.kept[0] else 50)
    torch.kept[0] = True
    return -1, found, 0
load = lambda: types.SimpleNamespace(replay=replay)
def one(job):
    return {"first_oom_index": None, "peak_reserved": os.path.getsize(job["events"]),
            "ns_per_event_warm": load().replay(None, True)[1]}
def main(): raise SystemExit("it has no command line here")
main()
""",
}


def on_allocators(folder):
    """PyTorch's side runs on the replacement for torch, in its own processes;
    fragsim's side runs on the stand-in for the driver."""
    for name, text in TORCH.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    library = os.path.join(BUILD, "dry")
    if not os.path.exists(library):
        return
    name, fragsim = "cudagraph", os.environ.get("FRAGSIM",
                                                os.path.join(BUILD, "fragsim"))
    recording = os.path.join(ROOT, f"traces/bundled/{name}.pickle.xz")
    with open(os.path.join(folder, name + ".events"), "wb") as file:
        file.write(bytes(24 * 100))
    path = os.path.join(folder, "device_pytorch.csv")
    done = subprocess.run(
        [sys.executable, os.path.join(PAPER, "gpu", "allocators.py"), "run", "--rounds",
         "2", "--events", folder, recording], capture_output=True, text=True,
        check=False, env=dict(os.environ, FRAG_ROWS=path, PYTHONPATH=folder,
                              FRAGSIM=fragsim, LD_LIBRARY_PATH=library,
                              FRAG_ORACLE=os.path.join(folder, "oracle.py"),
                              PYTHONDONTWRITEBYTECODE="1"))
    expect(done.returncode == 0 and not done.stderr,
           f"allocators: exit {done.returncode}: {done.stderr}")
    with open(path, encoding="utf-8") as file:
        rows = [line.strip().split(",") for line in list(file)[2:]]
    order = [r[2] for r in rows]
    expect(order[:8] == order[:7:-1], f"not forward and back: {order}")
    steady = {r[2]: r[4:] for r in rows if r[1] == "1"
              and r[2].startswith("PyTorch")}
    expect(steady == {
        "PyTorch": ["150", "100"],
        "PyTorch:expandable_segments:True": ["250", "200"],
        "PyTorch over torch": ["1150", "1100"],
        "PyTorch over remap": ["2150", "2100"],
        "PyTorch without cache": ["5000.0", ""]}, f"times: {steady}")
    device_table.DATA = folder
    found = device_table.Allocators()
    wanted = ["PyTorch", "torch", "PyTorch:expandable_segments:True",
              "torch:expandable_segments:True", "PyTorch over torch",
              "PyTorch over remap", "PyTorch without cache", "direct"]
    expect([key[1] for key in found.ns] == wanted and
           all(set(rounds) == {"0", "1"} for rounds in found.ns.values()),
           f"rows of allocators: {found.ns}")
    with tempfile.TemporaryDirectory() as other:
        allocators.FRAGSIM = fragsim
        trace = allocators.native(recording, other)[1]
        simulated = subprocess.run([fragsim, "replay", "-q", trace, "-p", "torch",
                                    "--csv", "-"], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout
    peak = next(csv.DictReader(io.StringIO(simulated)))["peak_reserved_bytes"]
    expect(found.peak[name, "torch"] == {peak}, f"{found.peak}, not {peak}")
    lines = []
    device_table.pytorch(lines, found)
    device_table.direct(lines, found)
    text = "\n".join(lines)
    for words in (f"| {name} | default | 2,400 | {int(peak):,} | 150 (150 to 150) |",
                  f"| {name} | 5,000 (5,000 to 5,000) | 33 (33 to 33) |"):
        expect(words in text, f"{words} is not in {text}")


def on_limits(folder):
    """Runs at limits: differences are reported, and seconds have both paces."""
    columns = ("trace,policy,capacity_bytes,same,difference,modelled_seconds,"
               "measured_seconds,pace,paced_ratio,leaked_bytes")
    for name, lines in (("contents", ["a,p,9,1,,1,1,1,1,0"]),
                        ("limits", ["b,p,9,1,,2,5,2,0.8,0",
                                    "c,q,7,0,frees 3,1,1,1,1,6"])):
        with open(os.path.join(folder, f"device_{name}.csv"), "w",
                  encoding="utf-8") as file:
            file.write("\n".join(["# here", columns, *lines]) + "\n")
    device_table.DATA, lines = folder, []
    device_table.limits(lines)
    device_table.again(lines)
    text = "\n".join(lines)
    for words in ("| a | 1 | 1 | **1** | 0 |", "| b, c | 2 | 2 | **1** | 6 |",
                  "- `q` on c at 7: frees 3",
                  "2 of 2 recordings, 0.80 to 1.00, and 2 of 2 single runs; "
                  "without the correction 1 of 2, 0.40 to 1.00"):
        expect(words in text, f"the page of limits lacks: {words}: {text}")


def on_other_devices(folder):
    """The results of a further device are a row of each table; its costs stand
    beside those of the H200."""
    folder = os.path.join(folder, "others")
    os.mkdir(folder)
    columns = ("trace,policy,capacity_bytes,same,difference,modelled_seconds,"
               "measured_seconds,pace,paced_ratio,modelled_ratio,leaked_bytes")
    for name, lines in (("contents", ["a,p,9,1,,1,1,1,1,1,0"]),
                        ("limits", ["a,p,9,1,,1,1,1,1,1,0"]),
                        ("contents_h200", ["d,p,9,1,,1,1,1,1,1,0",
                                           "d,q,9,0,maps 3,1,1,1,1,1,0"]),
                        ("times_h200", ["d,p,9,1,,2,4,2,1,0.5,0",
                                        "d,q,9,1,,3,4,2,1.5,0.75,0"])):
        with open(os.path.join(folder, f"device_{name}.csv"), "w",
                  encoding="utf-8") as file:
            file.write("\n".join(["# device Another, driver 7", columns,
                                  *lines]) + "\n")
    device_table.DATA, lines = folder, []
    device_table.limits(lines)
    device_table.other_devices(lines)
    text = "\n".join(lines)
    for words in ("| d | 2 | 2 | **1** | 0 | checked",
                  "- `q` on d at 9: maps 3",
                  "| Another | 1 | 2 | 2 | 1.25 to 1.25 | 1 of 2 | 0 of 2 | "
                  "2.00 to 2.00 | device Another, driver 7 |",
                  "| segment_alloc | 45.38 + 0.0518 | 45.38 + 0.0518 |"):
        expect(words in text, f"the page of devices lacks: {words}: {text}")


def main():
    designs()
    intervals()
    many_values()
    coverage()
    with tempfile.TemporaryDirectory() as folder:
        turns(folder)
        full_rounds(folder)
        on_limits(folder)
        on_other_devices(folder)
        on_allocators(folder)
    if faults:
        sys.exit(f"check_lockstep: {len(faults)} wrong")


main()

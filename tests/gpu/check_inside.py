#!/usr/bin/env python3
"""check_inside.py: checks the experiments of paper/tables/lockstep.py, inside_torch.py
and allocators.py, without a GPU and without PyTorch.

It checks the statistics against tables, counting and simulation; that programs
run strictly in turns; that a program that dies is left out and named; every
verdict and every count of the page, on rows whose result is known. Then it
checks the experiments themselves: the workers on a replacement for torch of
forty lines, the recorder on the CUDA program of its tests, and fragsim's
allocators on the stand-in for the driver.
Environment: FRAGSIM, FRAG_BUILD_DIR.
"""
import csv
import io
import itertools
import json
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
import inside_page  # noqa: E402
import inside_torch  # noqa: E402
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


# ---- the page, of rows whose answer is known ----


def rows():
    """Sides that are 0.2 % and 3 % slower, one that may be either, and one with
    a slow step in ten, which a median does not show."""
    draw, found = random.Random(3), [
        {"kind": "about", "torch": "0, NONE", "driver": "1", "cores": 2,
         "date": "2000-01-01"}]
    slower = {"default": 1, "again": 1, "expandable": 1.0, "remap": 1.002,
              "torch": 1.03, "recorded": 1.01}
    noise = {"recorded": 0.05}
    for number in range(205):
        drift = draw.lognormvariate(0, 0.2)
        sides = {}
        for side, factor in slower.items():
            took = drift * factor * draw.lognormvariate(0, noise.get(side, 0.01))
            took *= 1.5 if side == "expandable" and number % 10 == 0 else 1
            sides[side] = {"seconds": took if number >= 5 else 1e6, "calls": 4}
            if side in ("remap", "torch"):
                timed = number % 4 == 3
                sides[side].update(ns=int(0.005 * took * 1e9),
                                   timed_calls=1000 * timed,
                                   timed_ns=int(0.02 * took * 1e9) * timed)
            else:
                sides[side]["requests"] = 1000
            sides[side].update(peak_reserved=number << 30,
                               peak_allocated=number << 29)
        found.append({"kind": "round", "workload": "toy", "sitting": 1,
                      "round": number, "sides": sides})
    for side in slower:
        end = {"workload": "toy", "side": side, "peak_reserved": 3 << 30,
               "peak_allocated": 2 << 30, "allocs": 5, "frees": 2}
        loss = {"default": [3.0, 2.0, 1.0], "again": [3.0, 2.0, 1.0],
                "remap": [3.0, 2.5, 1.0]}.get(side, [3.0, 2.0])
        trace = {"trace": {"alloc": 6, "free": 2}} if side == "recorded" else {}
        found.append({"kind": "end", **end, **trace, "values": loss})
        if trace:
            trace.update(history={"alloc": 5, "free": 2},
                         others=[["alloc", 4096]])
        found.append({"kind": "losses", **end, **trace, "values":
                      ["aa", "bb" if side != "torch" else "xx"]})
    found.append({"kind": "failed", "workload": "toy", "what": "turns",
                  "side": "torch", "words": "first\nlast words"})
    return found


def page():
    # Steps of about a second: 1000 requests of 5 us are 0.5 % of one.
    text = inside_page.page(rows(), {("toy", "PyTorch"): 5000.0,
                                     ("toy", "PyTorch over remap"): 10000.0})
    table = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        table.setdefault(tuple(cells[:3]), cells)
    times = {cells[1]: cells for key, cells in table.items() if len(cells) == 11}
    for side, verdict in (("again", "yes, yes"), ("expandable", "yes, no"),
                          ("remap", "yes, yes"), ("torch", "no, no"),
                          ("recorded", "open, open")):
        expect(times[inside_page.NAMES[side]][8] == verdict,
               f"{side}: {times[inside_page.NAMES[side]]}")
    nine = [cells for line in text.splitlines()
            for cells in [[c.strip() for c in line.strip("|").split("|")]]
            if len(cells) == 9 and cells[0] == "`toy`"]
    shares = {cells[1]: cells for cells in nine[:-1]}
    verdict = nine[-1]
    expect(verdict[1:4] == [inside_page.NAMES["remap"], "2.000", "no"] and
           verdict[5] == "yes, yes" and verdict[7:] == ["0.50", "0 %"] and
           abs(float(verdict[6]) - (1.5 - 500 / float(shares[verdict[1]][2])))
           < 0.05, f"{verdict}")
    of_remap = shares[inside_page.NAMES["remap"]]
    step = float(of_remap[2])
    part = float(of_remap[4].split("(")[1].split()[0])  # a fourth of the steps'
    expect(of_remap[3] == "1,000" and abs(part - 2) < 0.05 and
           of_remap[6] == f"10.00 ({1000 / step:.2f} %)" and
           abs(float(of_remap[7]) - (2 - 500 / step)) < 0.05 and
           abs(float(of_remap[8]) - 500 / step) < 0.02, f"{of_remap}")
    of_torch = shares[inside_page.NAMES["torch"]]
    expect(of_torch[5:] == ["-", "-", of_torch[7], ""] and
           float(of_torch[7]) > 0 and
           shares[inside_page.NAMES["default"]][4] == "-", f"{shares}")
    expandable = times[inside_page.NAMES["expandable"]]
    expect(4 < float(expandable[7].split()[0]) < 6, f"{expandable}: slow steps")
    remap = times[inside_page.NAMES["remap"]]
    expect(remap[2:5] == ["204.000", "2.000", "2.000 (205)"] and
           remap[9] == "4.00" and remap[10].endswith("(0.50 %)"), f"{remap}")
    for words in ("200 rounds in 1 series", "last words",
                  "equal in the first 1 of 3, then by up to 2.5e-01",
                  "| as they are | PyTorch, default once more | equal in 3 |",
                  "| sums in one order | fragsim, `torch` | 1 of 2 equal |",
                  "counts 5 device allocations and 2 frees, the trace has 6 and 2",
                  "PyTorch's requests are all in it, in order; the other 1 "
                  "requests come from the libraries under it (4096 B)"):
        expect(words in text, f"the page lacks: {words}")


def references():
    """Which side is compared with which."""
    row = {side: {"seconds": took} for side, took in
           (("default", 2), ("again", 4), ("remap", 6))}
    for side, wanted in (("remap", [(6, 3)]), ("again", [(4, 2)]),
                         ("torch", [])):
        got = inside_page.pairs_of([row], side)
        expect(got == wanted, f"{side} against {got}, expected {wanted}")


def steps():
    """A side that runs in few rounds is compared with the same steps of the
    others."""
    rows, made = [], 0
    for number in range(40):
        sides = {"default": {"seconds": number, "peak_reserved": number,
                             "peak_allocated": 1}}
        if number % 4 == 3:
            sides["torch"] = {"seconds": 10 * made, "peak_reserved": 100 + made,
                              "peak_allocated": 1}
            made += 1
        rows.append({"kind": "round", "workload": "toy", "sitting": 1,
                     "round": number, "sides": sides})
    held = [r for r in inside_page.rounds_of(rows, "toy") if "torch" in r]
    got = [(r["torch"]["seconds"], r["default"]["seconds"]) for r in held]
    expect(got == [(10 * k, k) for k in range(inside_page.WARM, 10)],
           f"steps held against each other: {got}")
    ends = [{"kind": "end", "workload": "toy", "side": side, "values": [0] * n,
             "peak_reserved": 999, "peak_allocated": 1}
            for side, n in (("default", 40), ("torch", 10))]
    peaks = inside_page.peaks_of(rows + ends, "toy")
    got = [inside_page.memory_cells(peaks, side)[1:]
           for side in ("default", "torch", "none")]
    expect(got == [["9.000", "39.000 (40)"], ["109.000", "109.000 (10)"],
                   ["-", "-"]] and inside_page.worst_ratio(peaks, "default") == 39,
           f"peaks after unequal steps: {got}")
    ends[0]["values"] = ends[1]["values"]
    peaks = inside_page.peaks_of(rows + ends, "toy")
    expect(peaks == {side: {0: {(999, 1)}} for side in ("default", "torch")},
           f"peaks at the end {peaks}")


def sittings():
    """A side that is missing in the last series is compared with the default of
    its own series."""
    sides = [s for s in inside_page.NAMES if s != "remap"]
    lines = list(inside_page.losses(
        [{"kind": "losses", "workload": "toy", "side": side, "values": [1.0, 2.0]}
         for side in ["remap", *sides, *sides]]))[2:]
    expect(len(lines) == len(sides) and all("equal in 2" in l for l in lines),
           f"losses of two sittings: {lines}")


def subsequences():
    a, b, c = ["alloc", 1], ["alloc", 2], ["free", 1]
    for wanted, found, left in (([a, c], [a, b, c], [b]), ([], [a], [a]),
                                ([a, c], [a, c], []), ([c, a], [a, c], None),
                                ([a, a], [a, b], None)):
        got = inside_torch.beside(wanted, found)
        expect(got == left, f"{wanted} beside {found}: {got}")


# ---- the experiments ----

TORCH = {
    "torch/__init__.py": """
import types
__version__ = "0"
class Tensor:
    def __init__(self, value): self.value = value
    def backward(self): pass
    def detach(self): return self
    def __float__(self): return self.value
    def tolist(self): return [self.value]
calls = [0]
def stats(device):
    calls[0] += 2
    return {"num_device_alloc": calls[0], "num_device_free": 0,
            "allocation.all.allocated": 3 * calls[0],
            "allocation.all.freed": 2 * calls[0],
            "reserved_bytes.all.peak": calls[0] << 20,
            "allocated_bytes.all.peak": 1 << 30}
nothing = lambda *rest, **named: None
manual_seed = set_num_threads = use_deterministic_algorithms = device = nothing
from_numpy = lambda held: held
kept = [False]
cuda = types.SimpleNamespace(synchronize=nothing, memory_stats=stats,
                             get_device_name=lambda i: "NONE", init=nothing,
                             empty_cache=lambda: kept.__setitem__(0, False),
                             reset_peak_memory_stats=nothing)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(
    enable_flash_sdp=nothing, enable_mem_efficient_sdp=nothing,
    enable_cudnn_sdp=nothing))
""",
    "torch/nn/__init__.py": "",
    "torch/nn/functional.py": "",
    "transformers.py": """
import torch
class LlamaForCausalLM:
    def forward(self, n): pass
    def generate(self, n):
        for _ in range(n): self.forward(n)
        return torch.Tensor(n)
""",
    "fragsim_torch.py": """
import os
use = lambda: os.environ["FRAGSIM_POLICY"]
driver_calls = driver_ns = peak_reserved = peak_allocated = lambda: 3 << 30
is_timed, made = [False], [0]
timed = lambda on: is_timed.__setitem__(0, on)
def timed_calls():
    made[0] += 10 * is_timed[0]
    return made[0]
timed_ns = lambda: 1000 * made[0]
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
    "workloads.py": """
raise SystemExit("what is before the workloads is not run")
def steps(n): return a.steps or n
def w_toy():
    for i in range(steps(4)): torch.Tensor(random.random()).backward()
def w_generate():
    from transformers import LlamaForCausalLM
    for i in range(steps(3)): LlamaForCausalLM().generate(random.randrange(4, 9))
def scrub(snap): pass
""",
}


def experiment(folder, *arguments):
    """The rows of one experiment."""
    path = os.path.join(folder, "rows.jsonl")
    env = dict(os.environ, FRAG_ROWS=path, PYTHONPATH=folder,
               FRAG_BUILD_DIR=BUILD, PYTHONDONTWRITEBYTECODE="1",
               FRAGSIM=os.environ.get("FRAGSIM",
                                      os.path.join(BUILD, "fragsim")),
               FRAG_WORKLOADS=os.path.join(folder, "workloads.py"))
    script = os.path.join(PAPER, "gpu", "inside_torch.py")
    done = subprocess.run([sys.executable, script,
                           *arguments], env=env, capture_output=True, text=True,
                          check=False)
    expect(done.returncode == 0 and not done.stderr,
           f"{arguments}: exit {done.returncode}: {done.stderr}")
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    os.remove(path)
    return found


def on_torch(folder):
    for name, text in TORCH.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    sides = [s for s in inside_torch.SIDES
             if s not in ("recorded", *inside_torch.NAMED)]
    random.seed(0)
    wanted = [random.random() for _ in range(9)]
    found = experiment(folder, "turns", "--rounds", "8", "toy")
    held = [r for r in found if r["kind"] == "round"]
    few = [s for s in sides if s not in inside_torch.RARE]
    expect([sorted(r["sides"]) for r in held] ==
           [sorted(few if r % 4 < 3 else sides) for r in range(8)],
           f"rounds on the stand-in: {held}")
    for number, r in enumerate(held):
        own, ours = r["sides"]["default"], r["sides"]["remap"]
        expect(own["requests"] == 5 * own["calls"] > 0 and ours["calls"] == 0 and
               (ours["timed_calls"] > 0) == (number % 4 == 3) and
               ours["timed_ns"] == 1000 * ours["timed_calls"] and
               own["peak_reserved"] > own["requests"], f"counts: {r}")
    ends = {r["side"]: r for r in found if r["kind"] == "end"}
    expect(all(ends[s]["values"] == wanted[:3 if s in inside_torch.RARE else 9]
               for s in sides), f"values: {ends}, expected {wanted}")
    few = experiment(folder, "turns", "--rounds", "3", "--sides", "remap,default",
                     "toy")
    expect([sorted(r["sides"]) for r in few if r["kind"] == "round"] ==
           [["default", "remap"]] * 3, f"two sides on the stand-in: {few}")
    found += experiment(folder, "losses", "--steps", "2", "toy")
    expect([r["values"] for r in found if r["kind"] == "losses"] ==
           [wanted[:2]] * len(sides), "losses on the stand-in")
    tokens = experiment(folder, "turns", "generate")
    random.seed(0)
    each = [random.randrange(4, 9) for _ in range(3)]
    expect(sum(r["kind"] == "round" for r in tokens) == sum(each) - 1 and
           all(len(r["values"]) == 3 for r in tokens if r["kind"] == "end"),
           f"{sum(each)} tokens: {tokens}")
    expect("equal in 2" in inside_page.page(found + tokens, {}), "its page")


def on_recorder(folder):
    if not os.path.exists(os.path.join(BUILD, "tests/record/record_loader")):
        return
    found = experiment(folder, "work", "--rounds", "8")
    orders = [tuple(r["sides"]) for r in found
              if r["kind"] == "round" and r["workload"] == "both"]
    expect(len(orders) == 8 and sorted(orders[:6]) == sorted(
        itertools.permutations(("again", "default", "recorded"))),
           f"orders in one process: {orders}")
    text = inside_page.page(found, {})
    for what in inside_page.PROGRAMS.values():
        expect(f"\n| {what} | " in text, f"times of {what}")
    expect(text.count("144 requests and 144 frees; the trace has the same") == 2,
           f"the recorder: {text}")


def on_allocators(folder):
    """PyTorch's side runs on the replacement for torch, in its own processes;
    fragsim's side runs on the stand-in for the driver."""
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
    references()
    steps()
    sittings()
    subsequences()
    page()
    with tempfile.TemporaryDirectory() as folder:
        turns(folder)
        full_rounds(folder)
        on_torch(folder)
        on_recorder(folder)
        on_limits(folder)
        on_other_devices(folder)
        on_allocators(folder)
    if faults:
        sys.exit(f"check_inside: {len(faults)} wrong")


main()

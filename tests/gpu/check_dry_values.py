#!/usr/bin/env python3
"""check_dry_values.py: what a program without a GPU reads back of the device.

A program computes masks, lengths, counts and the end of a loop on the device, and prints
what it reads. The judge is PyTorch itself: the same program on the CPU prints the same
lines. Random numbers are those of an H200. What nothing tells is read as 0 and counted,
what hangs on trained weights is drawn and gives an interval, and the requests are those
that the program makes without the values being computed. Needs FRAG_DRY_PYTHON, a Python
with PyTorch's CUDA build; exit 77 without it.

With `all` it runs the programs of dry/values, whose memory depends on what the device
computes, and compares with what they reserved on an H200 (dry/values.csv, beside what was
predicted before they ran there); some need transformers 5.17.
Environment: FRAGSIM (default build/fragsim), FRAG_DRY_PYTHON.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM

PYTHON = os.environ.get("FRAG_DRY_PYTHON", "")
PROGRAM = r'''
import random
import sys
import torch
import torch.utils._python_dispatch
d = sys.argv[1]
def say(*what): print("=", *what)

ids = (torch.arange(40) * 7 % 23).reshape(4, 10).to(d)
mask = (torch.arange(10) < torch.tensor([[3], [5], [7], [9]])).to(d)
unknown = torch.randn(4, 10, device=d)
say(mask.all().item(), mask.sum().item(), mask.nonzero().shape, mask.sum(1).tolist())
say(ids[mask].tolist(), unknown[mask].shape, torch.masked_select(unknown, mask).shape)
say((torch.arange(10, device=d).diff() != 1).cumsum(-1)[-1].eq(0).item())
say(torch.unique(torch.tensor([1, 5, 5, 7], device=d)).shape,
    torch.bincount(torch.tensor([1, 5, 5, 7], device=d)).max().item())
lengths = torch.tensor([3, 4, 2]).to(d)
say(torch.repeat_interleave(torch.arange(3, device=d), lengths).tolist())
base = torch.zeros(5, dtype=torch.long, device=d)
base[1:3] += 4
base[0] = 9
say(base.tolist(), base.cpu().sum())
host = torch.tensor([1, 2, 3])
host += 1
host.copy_(lengths + host.to(d))
say(host.tolist(), torch.equal(lengths, lengths.clone()))
labels = ids.clone()
labels[~mask] = -100
say((labels != -100).sum().item())
left, steps = torch.ones(3, dtype=torch.long, device=d), 0
while steps < 50:
    steps += 1
    drawn = unknown[:3, 0] > 100
    left = left & ~(drawn | torch.full((3,), steps >= 6, device=d))
    if left.max() == 0:
        break
say(steps)
with torch.inference_mode():
    inner = torch.arange(4, device=d)
    inner += 1
    say(inner.tolist(), (inner > 2).nonzero().flatten().tolist())
say(torch.ones_like(unknown, dtype=torch.long).sum().item())
say(torch.empty(3, dtype=torch.int, device=d).new_ones(3).tolist())
numbers = torch.arange(600000, device=d)
say(numbers[(torch.arange(600000) % 3 == 0).to(d)].shape)
before = torch.get_rng_state()
say((torch.randint(0, 9, (100,), device=d) < 9).all().item())
overwritten = torch.arange(3, device=d)
overwritten.copy_(unknown[0, :3])
if d == "cuda":
    assert overwritten.tolist() == unknown[0, :3].trunc().tolist()
    some = torch.arange(3, device=d) == 0
    assert not (drawn | some).all().item() and some.any().item()
    assert torch.equal(before, torch.get_rng_state())
    library = torch.library.Library("fragsim_test", "DEF")
    library.define("write(Tensor x) -> ()")
    library.impl("write", lambda x: None, "CUDA")
    others, static = torch.arange(5, 8, device=d), torch.arange(5, 8, device=d)
    torch.ops.fragsim_test.write(others)
    assert others.tolist() == [0, 0, 0], others.tolist()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static += 1
    assert static.tolist() == [6, 7, 8], static.tolist()
    graph.replay()
    assert static.tolist() == [0, 0, 0]
    # The answers of an H200 with PyTorch 2.11; the table of Random123 (philox4x32 10).
    torch.manual_seed(0)
    for ours, recorded in (
            (torch.randn(5, device=d), [-0.92466241, -0.42534422, -2.64384579, 0.14518386,
                                        -0.12086640]),
            (torch.rand(5, device=d), [0.97224122, 0.79096931, 0.46904108, 0.32999983,
                                       0.33447948])):
        assert (ours.cpu() - torch.tensor(recorded)).abs().max() < 1e-6, ours.tolist()
    assert torch.multinomial(torch.ones(3, 50, device=d), 1).tolist() == [[39], [42], [14]]
    random.seed(0)
    torch.manual_seed(0)
    torch.randn(400_000, 128, device=d)
    drawn = torch.randint(0, 400_000, (random.randrange(20_000, 200_000),), device=d)
    assert drawn.unique().numel() == 104620, drawn.unique().numel()
    philox = sys.modules["fragsim_draws"].philox
    assert philox(0, 0, 1024, 256).flatten()[::256].tolist() == [
        0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]
    assert philox(-1, 4 * 2**31, 8, 1).flatten()[4:].tolist() == philox(
        -1, 4 * (2**31 + 1), 4, 1).flatten().tolist()
'''
TRAINING = r'''
import torch
layers = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(layers.parameters())
for step in range(3):
    x = torch.randn(32, 64, device="cuda", requires_grad=True)
    y = layers(x) + layers(2 * x) + x
    torch.nn.functional.cross_entropy(y, torch.randint(0, 64, (32,)).cuda()).backward()
    optimizer.step()
    optimizer.zero_grad()
def adds():
    inner = x.detach().view(4, 8, 64).transpose(0, 1)
    mask = torch.zeros(8, 8, device="cuda")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        torch.nn.functional.scaled_dot_product_attention(
            *3 * [torch.randn(2, 4, 8, 16, device="cuda")], mask)
    with torch.no_grad():
        return layers(inner)
class Own(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
count = lambda: len(torch.cuda.memory._snapshot()["device_traces"][0])
adds()
before = count()
adds()
plain = count() - before
with Own():
    adds()
print("= adds", plain, count() - before - plain > plain)
trace = torch.cuda.memory._snapshot()["device_traces"][0]
files = {f["filename"] for entry in trace for f in entry.get("frames", ())}
print("= entries", len(trace), any("fragsim_values" in f for f in files))
'''


EXPERTS = r'''
import torch
torch.manual_seed(0)
router, experts = torch.nn.Linear(64, 4).cuda(), torch.nn.ModuleList(
    torch.nn.Sequential(torch.nn.Linear(64, 4096), torch.nn.Linear(4096, 64))
    for _ in range(4)).cuda()
optimizer = torch.optim.SGD([*router.parameters(), *experts.parameters()], 0.1)
for step in range(3):
    x = torch.randn(2000, 64, device="cuda")
    weight, chosen = router(x).softmax(-1).max(-1)
    y = torch.zeros_like(x)
    for k, expert in enumerate(experts):
        rows = (chosen == k).nonzero().flatten()
        y[rows] = expert(x[rows]) * weight[rows, None]
    y.pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
'''
ZEROS = r'''
import torch
assert torch.ones(3, device="cuda").sum().item() == 0
'''


def lines(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("= ")]


def dry(folder, text, *arguments):
    path, answer = os.path.join(folder, "program.py"), os.path.join(folder, "a.json")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    options = [word for word in arguments if word != "cuda"]
    found = lines([FRAGSIM, "dry", "-q", "-f", "--json", answer, *options, "--", PYTHON,
                   path, "cuda"])
    with open(answer, encoding="utf-8") as file:
        return path, found, json.load(file)


def reads_of(answer):
    """The texts of the reads by kind."""
    reads = {}
    for note in answer["results"][0]["notes"]:
        if note["kind"] in ("exact", "drawn", "read", "assumed"):
            reads[note["kind"]] = reads.get(note["kind"], "") + note["name"] + "\n"
    return reads


def check_drawn(folder):
    """Experts: the first step is computed, later ones hang on trained weights."""
    answer = dry(folder, EXPERTS)[2]
    reads, one = reads_of(answer), answer["results"][0]
    needs = one["settings"][0]
    assert "nonzero" in reads["drawn"] and one["runs"] == 6, (reads, one["runs"])
    assert needs["need_at_least_bytes"] < needs["need_at_most_bytes"] \
        == needs["need_bytes"], needs
    once = dry(folder, EXPERTS.replace("range(3)", "range(1)"))[2]["results"][0]
    assert once["runs"] == 1 and "drawn" not in reads_of({"results": [once]})
    assert once["settings"][0]["need_at_least_bytes"] \
        == once["settings"][0]["need_at_most_bytes"]
    assumed = dry(folder, EXPERTS, "--assume", "nonzero=25%")[2]
    assert "nonzero" in reads_of(assumed)["assumed"], assumed
    zeros = dry(folder, ZEROS, "--values", "off")[2]["results"][0]
    assert reads_of({"results": [zeros]}).keys() == {"read"}


def judge_programs():
    """The intervals of dry, and the memory that the H200 reserved."""
    here, held = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dry"), []
    with open(os.path.join(here, "values.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        with tempfile.TemporaryDirectory() as folder, open(os.path.join(
                here, "values", row["program"] + ".py"), encoding="utf-8") as program:
            answer = dry(folder, program.read())[2]["results"][0]["settings"][0]
        least, most = (answer[f"peak_reserved_at_{end}_bytes"] for end in ("least", "most"))
        held.append(least <= int(row["reserved_bytes"]) <= most)
        print(f"{row['program']:18} {least:12} {most:12} {row['reserved_bytes']:>12}",
              "" if held[-1] else "not held", flush=True)
    print(f"{sum(held)} of {len(held)} intervals hold")
    return held


def main():
    if not PYTHON:
        print("check_dry_values: FRAG_DRY_PYTHON is not set; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        path, found, answer = dry(folder, PROGRAM, "cuda")
        wanted = lines([PYTHON, path, "cpu"])
        assert found == wanted and len(wanted) == 14, (found, wanted)
        reads = reads_of(answer)
        assert "overwritten.tolist()" in reads["exact"] and "lengths" in reads["exact"] \
            and "others.tolist()" in reads["read"] and "drawn" not in reads, reads
        check_drawn(folder)
        with_values = dry(folder, TRAINING)[1]
        without = dry(folder, "import torch.utils._python_dispatch as p\n"
                      "m = p._get_current_dispatch_mode()\nm.leave()\n" + TRAINING)[1]
        assert with_values == without and "True" in without[0] \
            and "False" in without[1], (with_values, without)
    if "all" in sys.argv:
        assert all(judge_programs())
    print("check_dry_values: 14 lines as on the CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""inside_torch.py: policies of fragsim under PyTorch, on a machine with a GPU.

inside_torch.py run [WORKLOAD...]   trains, a row a run to data/inside_torch.jsonl
inside_torch.py                     makes inside_torch.md from the rows

The workloads are those of the recordings (../shared/oracle/record.py, or
FRAG_WORKLOADS). Each runs in a process of its own with the same seed, as it is
(for peaks and times) and with kernels whose sums have one order (`same`, for
losses; that takes more memory). Needs real/torch/fragsim_torch.py on PYTHONPATH
and FRAGSIM_TORCH_LIBRARY.
"""
import hashlib
import json
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(HERE, "data", "inside_torch.jsonl")
WORKLOADS = os.environ.get("FRAG_WORKLOADS", os.path.join(
    HERE, "..", "..", "shared", "oracle", "record.py"))
STEPS = {"rcnn_train": 8}
ROUNDS = [[], [], ["same"]]
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
SIDES = [("native", {}), ("native", EXPANDABLE)] + [
    ("ours", {"FRAGSIM_POLICY": policy})
    for policy in ("remap", "plan_online", "torch")]


def workload_source():
    """The workloads without the recording around them."""
    with open(WORKLOADS, encoding="utf-8") as file:
        text = file.read()
    return text[text.index("def steps(n)"):text.index("def scrub(snap)")]


def one(workload, side, same):
    """In a process of its own."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    if side == "ours":
        import fragsim_torch
        fragsim_torch.use()
    random.seed(0)
    torch.manual_seed(0)
    if same:
        torch.use_deterministic_algorithms(True, warn_only=True)
        for kind in ("flash", "mem_efficient", "cudnn"):
            getattr(torch.backends.cuda, f"enable_{kind}_sdp")(False)
    ends, values = [], []

    def keep(value):
        values.append(value.detach().float().reshape(-1).sum().reshape(1))
        torch.cuda.synchronize()
        ends.append(time.perf_counter())

    watch(torch, keep)
    space = {"torch": torch, "nn": nn, "F": F, "random": random,
             "dev": torch.device("cuda:0"),
             "a": type("a", (), {"steps": STEPS.get(workload, 0)})}
    exec(workload_source(), space)  # pylint: disable=exec-used
    space["w_" + workload]()
    torch.cuda.synchronize()
    print(json.dumps(row(workload, side, same, ends, values)), flush=True)


def watch(torch, keep):
    """Losses of training, tokens of generation."""
    from transformers import LlamaForCausalLM
    backward, generate = torch.Tensor.backward, LlamaForCausalLM.generate

    def with_loss(self, *rest, **named):
        backward(self, *rest, **named)
        keep(self)

    def with_tokens(self, *rest, **named):
        tokens = generate(self, *rest, **named)
        keep(tokens[..., -8:])
        return tokens

    torch.Tensor.backward = with_loss
    LlamaForCausalLM.generate = with_tokens


def row(workload, side, same, ends, values):
    import torch
    numbers = [float(v.item()) for v in values]
    gaps = sorted(b - a for a, b in zip(ends[2:], ends[3:]))
    if side == "ours":
        import fragsim_torch
        reserved = fragsim_torch.peak_reserved()
        allocated = fragsim_torch.peak_allocated()
    else:
        stats = torch.cuda.memory_stats(0)
        reserved = stats["reserved_bytes.all.peak"]
        allocated = stats["allocated_bytes.all.peak"]
    return {"workload": workload, "how": side, "same": same,
            "policy": os.environ.get("FRAGSIM_POLICY", ""),
            "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
            "steps": len(numbers), "last": numbers[-1],
            "losses": hashlib.sha256(
                json.dumps(numbers).encode()).hexdigest()[:16],
            "median_step": gaps[len(gaps) // 2] if gaps else None,
            "peak_reserved": reserved, "peak_allocated": allocated}


def run(workloads):
    env = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8",
               PYTHONWARNINGS="ignore", TRANSFORMERS_VERBOSITY="error")
    with open(ROWS, "a", encoding="utf-8") as rows:
        for workload in workloads:
            for extra in ROUNDS:
                for side, settings in SIDES:
                    subprocess.run([sys.executable, __file__, "one", workload,
                                    side, *extra], check=True, stdout=rows,
                                   env=dict(env, **settings))


def name_of(r):
    if r["how"] == "ours":
        return f"fragsim, `{r['policy']}`"
    return f"PyTorch, `{r['conf']}`" if r["conf"] else "PyTorch, default"


def cells(rows):
    """(workload, allocator) -> its rows as they are and with `same`."""
    found = {}
    for r in rows:
        found.setdefault((r["workload"], name_of(r)), []).append(r)
    return found


def verdict(mine, reference):
    """Whether the losses are those of PyTorch's default."""
    if not mine or not reference:
        return "-"
    return "equal" if mine == reference else "differ"


def table(rows):
    found = cells(rows)
    for (workload, name), mine in found.items():
        plain = [r for r in mine if not r["same"]]
        default = found[workload, "PyTorch, default"]
        losses = {r["losses"] for r in mine if r["same"]}
        wanted = {r["losses"] for r in default if r["same"]}
        steps = [r["median_step"] for r in plain if r["median_step"]]
        ratio = plain[0]["peak_reserved"] / plain[0]["peak_allocated"]
        yield (f"| `{workload}` | {name} | "
               f"{plain[0]['peak_reserved'] / 2**30:.3f} | {ratio:.3f} | "
               f"{', '.join(f'{1e3 * s:.0f}' for s in steps)} | "
               f"{verdict(losses, wanted)} |") if plain else None


def main():
    if sys.argv[1:2] == ["one"]:
        one(sys.argv[2], sys.argv[3], "same" in sys.argv)
    elif sys.argv[1:2] == ["run"]:
        run(sys.argv[2:] or ["llama_varlen", "generate", "rcnn_train"])
    else:
        with open(ROWS, encoding="utf-8") as file:
            lines = list(filter(None, table([json.loads(l) for l in file])))
        with open(os.path.join(HERE, "inside_torch.md"), "w",
                  encoding="utf-8") as out:
            out.write(TEXT.replace("ROWS", "\n".join(lines)))


TEXT = """# Policies of fragsim inside PyTorch

PyTorch 2.11 on an H200 (driver 580.159.04), 2026-11-20; made by
`paper/inside_torch.py` from `data/inside_torch.jsonl`. Peak reserved is in GiB and over
peak allocated. Step times are medians in ms, a number a run. Losses (of `generate`: tokens)
were compared in runs of their own, with kernels whose sums have one order; without
them PyTorch's default differs from itself from run to run.

| workload | allocator | reserved | / allocated | step, ms | losses |
|---|---|---:|---:|---|---|
ROWS

`remap` here does not mesh pages: that would take live memory away for a moment while a
program may be using it. The step times of equal runs differ by 10 to 30 % on this
machine, between PyTorch's own runs too, so they say that no policy is slower by more than
that, and not that the aim of 1 % holds.
"""

main()

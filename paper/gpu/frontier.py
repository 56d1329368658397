#!/usr/bin/env python3
"""frontier.py: the sequence length at which training dies, for each allocator:
predicted without a GPU, then measured. The question is that of PyTorch's pull request
188110, with one dense model of 2.7 billion parameters.

  frontier.py predict OUT.csv [--ranks 2]
    one dry run (`fragsim dry`) at each of LENGTHS, and from each the need under every
    allocator
  frontier.py measure OUT.jsonl PREDICTED.csv [--ranks 2] [--runs N] [--seconds N]
    on the GPU, under a limit of LIMIT for each process: for each allocator the lengths
    around the predicted frontier, each in new processes
  frontier.py train LENGTH SIDE RANK RANKS LIMIT
    one process of a run; prints a JSON object

A run makes STEPS steps of one sequence each, of 16/32 to 32/32 of the length in an
order that the seed gives. With two ranks, DistributedDataParallel.
Environment: FRAGSIM (the tool), FRAG_PYTHON (Python with PyTorch; for predict of an
environment of `fragsim dry --setup`), and for policies of fragsim what fragsim_torch
needs.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                             "tables"))
from data_header import read_csv, replayed, write_csv  # noqa: E402

GIB = 1 << 30
LIMIT = 60 * GIB
STEP = 128
LENGTHS = {1: range(11776, 14337, STEP), 2: range(11008, 12673, STEP)}  # by ranks
STEPS, PARTS = 12, 32
LAYERS, WIDTH, HEADS, INNER, WORDS = 32, 2560, 20, 6912, 32000
# side: settings of PyTorch, policy inside PyTorch, policy of the simulation
SIDES = {
    "default": ("", None, "torch"),
    "expandable_segments": ("expandable_segments:True", None,
                            "torch:expandable_segments:True"),
    "cudaMallocAsync": ("backend:cudaMallocAsync", None, "cuda_async"),
    "fragsim": ("", "expandable", "expandable"),
}
FRAGSIM = os.environ.get("FRAGSIM", "fragsim")
PYTHON = os.environ.get("FRAG_PYTHON", sys.executable)


# ---- a process of a run ----

def make_model():
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(2))
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)
            self.up = nn.Linear(WIDTH, 2 * INNER, bias=False)
            self.down = nn.Linear(INNER, WIDTH, bias=False)

        def forward(self, x):
            heads = [part.view(*x.shape[:2], HEADS, -1).transpose(1, 2)
                     for part in self.qkv(self.norms[0](x)).chunk(3, -1)]
            seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
            gate, value = self.up(self.norms[1](x)).chunk(2, -1)
            return x + self.down(functional.silu(gate) * value)

    with torch.device("cuda"):
        return nn.Sequential(nn.Embedding(WORDS, WIDTH),
                             *(Layer() for _ in range(LAYERS)), nn.RMSNorm(WIDTH),
                             nn.Linear(WIDTH, WORDS, bias=False)).to(torch.bfloat16)


def lengths(length):
    order = [PARTS, *random.Random(7).choices(range(PARTS // 2, PARTS), k=STEPS - 1)]
    random.Random(8).shuffle(order)
    return [length * part // PARTS for part in order]


def train(length, side, rank, ranks, limit):
    conf, policy, _ = SIDES[side]
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = conf
    import torch
    if policy:
        import fragsim_torch
        fragsim_torch.use(policy)
    torch.cuda.set_device(rank)
    if limit:
        total = torch.cuda.get_device_properties(rank).total_memory
        torch.cuda.set_per_process_memory_fraction((limit + 0.5) / total, rank)
    if ranks > 1:
        torch.distributed.init_process_group("nccl", rank=rank, world_size=ranks)
    said = {"length": length, "side": side, "rank": rank, "steps": 0, "died": False}
    try:
        model = make_model()
        if ranks > 1:
            model = torch.nn.parallel.DistributedDataParallel(
                model, device_ids=[rank], gradient_as_bucket_view=True)
        adam = torch.optim.AdamW(model.parameters())
        for now in lengths(length):
            words = torch.randint(WORDS, (1, now), device="cuda")
            torch.nn.functional.cross_entropy(model(words)[0].float(),
                                              words[0]).backward()
            adam.step()
            adam.zero_grad()
            torch.cuda.synchronize()
            said["steps"] += 1
    except torch.OutOfMemoryError as why:
        said |= {"died": True, "why": str(why)[:200]}
    said["allocated"] = torch.cuda.max_memory_allocated()
    said["reserved"] = torch.cuda.max_memory_reserved()
    print(json.dumps(said), flush=True)
    os._exit(0)  # the other rank may have died in the middle of a collective call


# ---- predictions ----

def tool(*words):
    return json.loads(subprocess.run([FRAGSIM, *words, "--json", "-"], check=True,
                                     stdout=subprocess.PIPE).stdout)


def record(length, ranks, folder):
    """The snapshots of a dry run, one for each rank."""
    base = os.path.join(folder, f"{length}.pickle")
    script = " & ".join(
        f"RANK={rank} '{PYTHON}' '{os.path.abspath(__file__)}' train {length} "
        f"default {rank} {ranks} 0" for rank in range(ranks))
    subprocess.run([FRAGSIM, "dry", "-q", "--gpu", "h200", "--gpus", str(ranks), "-o",
                    base, "--", "sh", "-c", script + "; wait"], check=True,
                   stdout=subprocess.DEVNULL,
                   env=os.environ | {"MASTER_ADDR": "127.0.0.1",
                                     "MASTER_PORT": "29511"})
    found = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                   if name.startswith(str(length)))
    assert len(found) == ranks, found
    return found


def policies():
    return [word for _, _, name in SIDES.values() for word in ("-p", name)]


def needs(path):
    rows = tool("fit", "-q", "--process-limit", "inf", *policies(), path)["results"]
    return [row["need_bytes"] for row in rows]


def predict(path, ranks):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for length in LENGTHS[ranks]:
            for rank, snapshot in enumerate(record(length, ranks, folder)):
                for side, need in zip(SIDES, needs(snapshot)):
                    rows.append({
                        "ranks": ranks, "rank": rank, "length": length, "side": side,
                        "limit_bytes": LIMIT, "need_bytes": need,
                        "survives": int(need <= LIMIT)})
                os.remove(snapshot)
    write_csv(path, replayed(FRAGSIM, "paper/gpu/frontier.py predict",
                             "dry runs of PyTorch 2.11 as on an H200; nothing was "
                             "measured"), list(rows[0]), rows)
    show(rows)


# ---- the GPU ----

def survives(rows, side, length):
    return all(int(row["survives"]) for row in rows
               if row["side"] == side and int(row["length"]) == length)


def frontier(rows, side):
    """The longest length up to which all survive; 0: none does."""
    best = 0
    for length in sorted({int(row["length"]) for row in rows}):
        if not survives(rows, side, length):
            break
        best = length
    return best


def show(rows):
    for side in SIDES:
        print(f"{side}: {frontier(rows, side)}")


def run(length, side, ranks):
    """One run on the GPU: an object of each rank; a rank that another one left
    waiting is ended."""
    env = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    ranks = [subprocess.Popen([sys.executable, __file__, "train", str(length), side,
                               str(rank), str(ranks), str(LIMIT)], text=True, env=env,
                              stdout=subprocess.PIPE) for rank in range(ranks)]
    said = []
    for process in ranks:
        try:
            out = process.communicate(timeout=20 if any(
                row["died"] for row in said) else 120)[0]
            said.append(json.loads(out.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError) as why:
            process.kill()
            said.append({"length": length, "side": side, "died": False,
                         "error": type(why).__name__})
    return said


def outcome(said):
    """Whether all ranks lived; None: one ended in another way and none died."""
    if any(one["died"] for one in said):
        return False
    return None if any("error" in one for one in said) else True


def measure(path, predicted, ranks, runs, seconds):
    """The lengths next to each predicted frontier first, then those around them."""
    end = time.monotonic() + seconds
    rows = [row for row in read_csv(predicted)[1] if int(row["ranks"]) == ranks]
    order = [(away, side, frontier(rows, side) + away * STEP)
             for away in (0, 1, -1, 2, -2) for side in SIDES]
    with open(path, "a", encoding="utf-8") as out:
        for away, side, length in order * runs:
            if time.monotonic() > end:
                print("not reached:", side, length)
                continue
            said = run(length, side, ranks)
            row = {"ranks": ranks, "side": side, "length": length,
                   "predicted": away <= 0,
                   "survived": outcome(said), "said": said}
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(side, length, row["predicted"], row["survived"], flush=True)


def main():
    if sys.argv[1:2] == ["train"]:
        length, side, rank, ranks, limit = sys.argv[2:7]
        train(int(length), side, int(rank), int(ranks), int(limit))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["predict", "measure"])
    parser.add_argument("out")
    parser.add_argument("predicted", nargs="?")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=500)
    args = parser.parse_args()
    if args.verb == "predict":
        predict(args.out, args.ranks)
    else:
        measure(args.out, args.predicted, args.ranks, args.runs, args.seconds)


if __name__ == "__main__":
    main()

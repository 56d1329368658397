#!/usr/bin/env python3
"""check_dry_ranks.py: programs of several processes, dry beside H200s.

tests/gpu/dry/ranks/train.py trains a model with DDP, FSDP2, tensor parallel and a pipeline
on two and four devices; ranks.csv has what each rank took on H200s with PyTorch 2.11 and
NCCL 2.28.9 (its multicast off). The need of a rank is its reserved memory and what is outside of
PyTorch; where a thread of NCCL decides, it is an interval. It may be 3 % off.
Environment: FRAGSIM, FRAG_BUILD_DIR, FRAG_DRY_PYTHON.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT

HERE = os.path.join(ROOT, "tests", "gpu", "dry")
MOST_OFF = 0.03


def dry(interpreter, mode, ranks, folder):
    """The rows of the answer, and those that the ranks of the first run wrote, which
    asked for the memory outside of PyTorch where they did on the GPUs; by rank."""
    answer = os.path.join(folder, "answer.json")
    done = subprocess.run(
        [FRAGSIM, "dry", "-q", "-f", "--gpus", str(ranks), "--json", answer, "--",
         interpreter, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
         os.path.join(HERE, "ranks", "train.py"), mode, os.path.join(folder, "rows")],
        text=True, capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(answer, encoding="utf-8") as file:
        rows = {row["rank"]: row for row in json.load(file)["results"]}
    with open(os.path.join(folder, "rows"), encoding="utf-8") as file:
        own = [json.loads(line) for line in file]
    return rows, {row["rank"]: row["outside"] for row in reversed(own)
                  if (row["mode"], row["ranks"]) == (mode, ranks)}


def interval(row):
    """Bytes reserved at least and at most."""
    setting = row["settings"][0]
    return [setting.get("peak_reserved_%sbytes" % part, setting["peak_reserved_bytes"])
            for part in ("at_least_", "at_most_")]


def main():
    interpreter = os.environ.get("FRAG_DRY_PYTHON")
    if not interpreter:
        print("FRAG_DRY_PYTHON is not set: skipped")
        sys.exit(77)
    with open(os.path.join(HERE, "ranks.csv"), encoding="utf-8", newline="") as file:
        truths = list(csv.DictReader(file))
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for mode, ranks in sorted({(t["mode"], int(t["ranks"])) for t in truths}):
            rows, own = dry(interpreter, mode, ranks, folder)
            for truth in truths:
                if (truth["mode"], int(truth["ranks"])) != (mode, ranks):
                    continue
                least, most = interval(rows[int(truth["rank"])])
                outside = own[int(truth["rank"])]
                reserved, others = (int(truth[key]) for key in
                                    ("reserved_bytes", "outside_bytes"))
                nearest = min(max(reserved, least), most) + outside
                off = nearest / (reserved + others) - 1
                print("%-8s %d of %d  reserved %d to %d (H200: %d)  outside %d (%d)  "
                      "%+.2f %%" % (mode, int(truth["rank"]), ranks, least, most, reserved,
                                    outside, others, 100 * off), flush=True)
                if abs(off) > MOST_OFF:
                    wrong.append((mode, ranks, truth["rank"], off))
    assert not wrong, wrong


main()

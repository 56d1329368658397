#!/usr/bin/env python3
"""check_batch.py: `fragsim batch` against PyTorch.

../shared/recorded/batch holds training programs at 13 batch sizes, recorded with
a memory limit of 12 GiB. From pairs of recordings, of which the larger needs at
least half of the limit, the prediction of every larger batch size must be within
2 % of the recorded peak reserved, and the OOMs and the largest batch size that
fits must be the recorded ones. For gpt2, pairs of small batch sizes must do, too.
No prediction that is wrong by more than 2 % may come without a warning, also from
pairs that are further away, and nearly all recorded peaks lie between low and high.
A search must find a result between the neighbours of the grid. A job that died
before a step was complete is refused.
Skips without the recordings. Environment: FRAGSIM, FRAG_SHARED_DIR.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "paper", "tables"))
import batch_table  # noqa: E402

PAIRS = {"gpt2": [(2, 3), (1, 6), (4, 8), (6, 8)],
         "resnet": [(1, 64), (12, 64), (48, 64)],
         "llama_ckpt": [(2, 8), (8, 12)]}
FAR = [(1, 2), (2, 4), (4, 24), (12, 24), (16, 24), (12, 64)]
MOST = 0.02


def check_pair(program, truth, pair):
    outcome = batch_table.Outcome(truth, pair)
    error = outcome.worst(pair[1])
    assert abs(error) <= MOST, (program, pair, outcome.errors)
    assert not outcome.wrong, (program, pair, outcome.wrong)
    assert outcome.largest == outcome.true_largest, (program, pair)
    assert outcome.largest_sure or program == "resnet", (program, pair)
    check_range(outcome)


def check_range(outcome):
    """Returns how many peaks above the pair lie within their range."""
    for batch, error in outcome.errors.items():
        assert abs(error) <= MOST or not outcome.sure[batch], (
            outcome.pair, batch, error)
    return sum(outcome.within[batch] for batch in outcome.above())


def check_far(truth):
    """resnet from pairs whose predictions are off, above or below them."""
    found = [batch_table.Outcome(truth, pair) for pair in FAR]
    within = sum(check_range(outcome) for outcome in found)
    count = sum(len(outcome.above()) for outcome in found)
    assert within >= 0.9 * count, (within, count)
    off = [batch for outcome in found for batch, error
           in outcome.errors.items() if abs(error) > MOST]
    assert len(off) > 10, "these pairs no longer need a warning"


def check_search(truth):
    """Without --at, between the largest batch of the grid and the next."""
    done = subprocess.run(
        [batch_table.FRAGSIM, "batch", "-q", f"2={truth[2]['path']}",
         f"4={truth[4]['path']}", "--process-limit", "12GiB", "--json", "-"],
        capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert 12 <= answer["largest"]["torch"] < 16, answer["largest"]


def check_dead(truth):
    done = subprocess.run(
        [batch_table.FRAGSIM, "batch", "-q", f"8={truth[8]['path']}",
         f"32={truth[32]['path']}", "--process-limit", "12GiB"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "before a step was complete" in done.stderr, done.stderr


def main():
    if not os.path.isdir(batch_table.FOLDER):
        print(f"check_batch: no recordings in {batch_table.FOLDER}; skipped")
        raise SystemExit(77)
    for program, pairs in PAIRS.items():
        truth = batch_table.recordings(program)
        for pair in pairs:
            check_pair(program, truth, pair)
    check_far(batch_table.recordings("resnet"))
    truth = batch_table.recordings("gpt2")
    check_search(truth)
    check_dead(truth)
    print("check_batch: ok")


main()

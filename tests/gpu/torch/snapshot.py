"""snapshot.py POLICY FILE: random requests and frees, with empty_cache calls. At many
moments the segments of the snapshot must sum up to memory_reserved(), and the
history must end with their addresses. Writes a snapshot to FILE and prints the peak of the reserved
bytes and their last value, for a replay of FILE.
"""
import os
import random
import sys

os.environ["FRAGSIM_POLICY"] = sys.argv[1]

import torch  # noqa: E402  pylint: disable=wrong-import-position

import fragsim_torch  # noqa: E402  pylint: disable=wrong-import-position

def joined(ranges):
    """The same addresses in the fewest ranges."""
    found = []
    for start, end in sorted(ranges):
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def replayed(history):
    """The ranges that are held after the history."""
    held = []
    for e in history:
        start, end = e["addr"], e["addr"] + e["size"]
        if e["action"] in ("segment_alloc", "segment_map"):
            assert all(end <= a or b <= start for a, b in held), e
            held.append((start, end))
        elif e["action"] in ("segment_free", "segment_unmap"):
            before = sum(b - a for a, b in held)
            held = [(a, b) for old in held for a, b in (
                (old[0], min(old[1], start)), (max(old[0], end), old[1]))
                if a < b]
            assert sum(b - a for a, b in held) == before - e["size"], e
    return joined(held)


def look():
    found, reserved = torch.cuda.memory._snapshot(), torch.cuda.memory_reserved()
    held = joined((s["address"], s["address"] + s["total_size"])
                  for s in found["segments"])
    for segment in found["segments"]:
        assert sum(b["size"] for b in segment["blocks"]) == \
            segment["total_size"], segment
    assert sum(b - a for a, b in held) == reserved, reserved
    assert replayed(found["device_traces"][0]) == held


fragsim_torch.use()
torch.cuda.memory._record_memory_history(context=None, max_entries=10**6)
draw, live = random.Random(7), {}
for step in range(1500):
    if live and draw.random() < 0.48:
        del live[draw.choice(sorted(live))]
    else:
        live[step] = torch.empty(int(2 ** draw.uniform(0, 26)),
                                 dtype=torch.uint8, device="cuda")
    if step % 100 == 50:
        look()
    if step % 300 == 299:
        torch.cuda.empty_cache()
        look()
torch.cuda.memory._dump_snapshot(sys.argv[2])
print(torch.cuda.max_memory_reserved(), torch.cuda.memory_reserved())

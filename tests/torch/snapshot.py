"""snapshot.py POLICY FILE: random requests and frees, with empty_cache calls. At many
moments the segments of the snapshot, and the maps of the history, must sum up to
memory_reserved(). Writes a snapshot to FILE and prints the peak of the reserved
bytes and their last value, for a replay of FILE.
"""
import os
import random
import sys

os.environ["FRAGSIM_POLICY"] = sys.argv[1]

import torch  # noqa: E402  pylint: disable=wrong-import-position

import fragsim_torch  # noqa: E402  pylint: disable=wrong-import-position

SIGNS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1,
         "segment_unmap": -1}


def look():
    found, reserved = torch.cuda.memory._snapshot(), torch.cuda.memory_reserved()
    held = sum(s["total_size"] for s in found["segments"])
    history = sum(SIGNS.get(e["action"], 0) * e["size"]
                  for e in found["device_traces"][0])
    for segment in found["segments"]:
        assert sum(b["size"] for b in segment["blocks"]) == \
            segment["total_size"], segment
    assert held == history == reserved, (held, history, reserved)


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

#!/usr/bin/env python3
"""scripts.py: drives PyTorch's own allocator with random scripts, and writes the
snapshots that it takes of itself. Runs in the environment of a release of
PyTorch, on the stand-ins for CUDA's libraries (LD_LIBRARY_PATH).

usage: scripts.py FOLDER KIND CHUNKS SCRIPTS CALLS SEED

A snapshot, FOLDER/N.pickle, holds SCRIPTS scripts of about CALLS calls each, in a
process of its own under one value of the settings. FOLDER/N.json has the
counters of memory_stats, the limit of the process and the seed. KIND is a row of
KINDS.
"""
import json
import os
import random
import subprocess
import sys

MIB = 1 << 20
BASIC = ["", "max_split_size_mb:64", "max_split_size_mb:21,max_non_split_rounding_mb:40",
         "roundup_power2_divisions:4", "roundup_power2_divisions:[64:2,256:8,>:1]",
         "large_segment_size_mb:48", "garbage_collection_threshold:0.6",
         "max_split_size_mb:128,garbage_collection_threshold:0.8"]
EXPANDABLE = ["expandable_segments:True",
              "expandable_segments:True,max_split_size_mb:64",
              "expandable_segments:True,roundup_power2_divisions:2",
              "expandable_segments:True,garbage_collection_threshold:0.7",
              "expandable_segments:True,large_segment_size_mb:32"]
# name: (settings, streams, share of calls that record a stream, whether scripts
# have a limit, whether they use pools)
KINDS = {
    "plain": (BASIC, 1, 0, False, False),
    "expandable": (EXPANDABLE, 1, 0, False, False),
    "streams": (BASIC + EXPANDABLE, 4, 0.15, False, False),
    "limit": (BASIC + EXPANDABLE, 2, 0, True, False),
    "full": (BASIC + EXPANDABLE, 2, 0, False, False),  # a small device
    "pools": (BASIC + EXPANDABLE, 2, 0.05, False, True),
    "throw": (["throw_on_cudamalloc_oom:True",
               "throw_on_cudamalloc_oom:True,expandable_segments:True",
               "throw_on_cudamalloc_oom:True,garbage_collection_threshold:0.5"],
              2, 0, True, False),
    "reserve": (["expandable_segments:True,expandable_segments_reserve:0.01",
                 "expandable_segments:True,expandable_segments_reserve:1G"],
                1, 0, False, False),
}


class Script:
    """A random program: its sizes, its live blocks."""

    def __init__(self, rng, streams, recorded, empties):
        self.rng, self.streams, self.recorded = rng, streams, recorded
        self.empties = empties  # calls of empty_cache: a snapshot does not tell
        #                         them from releases before a retry
        kinds = [(1, 4096), (1, MIB), (MIB, 10 * MIB), (MIB, 40 * MIB),
                 (20 * MIB, 220 * MIB)]
        self.ranges = rng.sample(kinds, rng.randint(1, 3))
        self.usual = [self.draw() for _ in range(rng.randint(1, 8))]
        self.repeats = rng.random()
        self.level = rng.randint(4, 60)
        self.live = []

    def draw(self):
        low, high = self.rng.choice(self.ranges)
        return min(self.rng.randint(low, high), 4096 * MIB)

    def allocate(self):
        size = self.rng.choice(self.usual) if self.rng.random() < self.repeats \
            else self.draw()
        stream = self.rng.choice(self.streams)
        with torch.cuda.stream(stream):
            try:
                self.live.append(torch.empty(size, dtype=torch.uint8,
                                             device="cuda"))
            except torch.OutOfMemoryError:
                if self.live and self.rng.random() < 0.7:
                    self.free()

    def free(self):
        at = self.rng.randrange(len(self.live))
        self.live[at], self.live[-1] = self.live[-1], self.live[at]
        self.live.pop()

    def step(self):
        rng = self.rng
        if rng.random() < self.recorded and self.live:
            rng.choice(self.live).record_stream(rng.choice(self.streams))
        elif self.empties and rng.random() < 0.004:
            torch.cuda.empty_cache()
        elif rng.random() < 0.004:
            torch.cuda.synchronize()
        elif self.live and rng.random() < len(self.live) / (2 * self.level):
            self.free()
        else:
            self.allocate()


def run_script(rng, streams, recorded, calls, pools, empties):
    script = Script(rng, streams, recorded, empties)
    at = 0
    while at < calls:
        if pools and rng.random() < 0.05:
            n = rng.randint(1, 30)
            with torch.cuda.use_mem_pool(rng.choice(pools)):
                for _ in range(n):
                    script.step()
            at += n
        else:
            script.step()
            at += 1
    if rng.random() < 0.8:
        script.live.clear()
    return script


def run_chunk(folder, name, kind, seed):
    settings, stream_count, recorded, limited, with_pools = KINDS[kind]
    scripts, calls = int(os.environ["SCRIPTS"]), int(os.environ["CALLS"])
    memory = torch.cuda.memory
    total = torch.cuda.get_device_properties(0).total_memory
    streams = [torch.cuda.default_stream()] + \
        [torch.cuda.Stream() for _ in range(stream_count - 1)]
    rng = random.Random(seed)
    conf = os.environ.get("PYTORCH_ALLOC_CONF", "")
    limit = rng.choice([0.05, 0.1, 0.2, 0.4]) if limited or "garbage" in conf \
        else 1.0
    torch.cuda.set_per_process_memory_fraction(limit)
    memory._record_memory_history(context=None, max_entries=4000000)
    pools = [torch.cuda.MemPool() for _ in range(2)] if with_pools else []
    kept = []
    for _ in range(scripts):
        kept.append(run_script(rng, streams, recorded, calls, pools,
                               limit == 1 and kind != "full"))
        if len(kept) > 2:
            kept.pop(0)
    path = os.path.join(folder, name)
    stats = torch.cuda.memory_stats()
    memory._dump_snapshot(path + ".pickle")
    with open(path + ".json", "w", encoding="ascii") as file:
        json.dump({"stats": stats, "total_memory": total, "seed": seed,
                   "conf": conf, "torch": torch.__version__,
                   "cap": 0 if limit == 1 else int(limit * total)}, file)
    os._exit(0)  # the stand-ins would complain of what is still held


def main():
    folder, kind, chunks, scripts, calls, seed = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.environ.update(SCRIPTS=scripts, CALLS=calls)
    for chunk in range(int(chunks)):
        own = int(seed) * 1000003 + chunk
        settings = KINDS[kind][0]
        os.environ["PYTORCH_ALLOC_CONF"] = settings[own % len(settings)]
        subprocess.run([sys.executable, "-W", "ignore", __file__, "chunk", folder,
                        f"{chunk}", kind, f"{own}"], check=True)


if __name__ == "__main__":
    if sys.argv[1] == "chunk":
        import torch
        run_chunk(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    main()

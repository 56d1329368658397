#!/usr/bin/env python3
"""scripts.py: drives PyTorch's own allocator with random scripts, and writes the
snapshots that it takes of itself. Runs in the environment of a release of
PyTorch, on the stand-ins for CUDA's libraries (LD_LIBRARY_PATH).

usage: scripts.py FOLDER KIND FIRST CHUNKS SCRIPTS CALLS SEED

A snapshot, FOLDER/N.pickle (N is FIRST, FIRST+1...), holds SCRIPTS scripts of
about CALLS calls each, in a process of its own under one value of the settings: a
fork of this one, for which PyTorch is imported once. FOLDER/N.json has the
counters of memory_stats, the limit of the process and the seed, and FOLDER/N.csv
all requests, also those that were refused, if the kind has neither private pools
nor blocks used on several streams. KIND is a row of KINDS.
"""
import gc
import json
import os
import pickle
import random
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
# A request in a capture that returns memory to the device ends the capture, as
# with max_split_size_mb and with garbage collection.
CALM = [text for text in BASIC + EXPANDABLE
        if "max_split" not in text and "garbage" not in text]
# name: (settings, streams, share of calls that record a stream, whether scripts
# have a limit, kinds of private pools)
KINDS = {
    "plain": (BASIC, 1, 0, False, ""),
    "expandable": (EXPANDABLE, 1, 0, False, ""),
    "streams": (BASIC + EXPANDABLE, 4, 0.15, False, ""),
    "limit": (BASIC + EXPANDABLE, 2, 0, True, ""),
    "full": (BASIC + EXPANDABLE, 2, 0, False, ""),  # a small device
    "pools": (BASIC + EXPANDABLE, 2, 0.05, False, "plain"),
    "pool_limit": (BASIC + EXPANDABLE, 2, 0.05, True, "plain"),
    "no_split": (BASIC + EXPANDABLE, 2, 0, False, "no_split"),
    "use_on_oom": (BASIC + EXPANDABLE, 2, 0, True, "use_on_oom"),
    "ended": (BASIC + EXPANDABLE, 2, 0, False, "ended"),
    "ended_limit": (BASIC + EXPANDABLE, 2, 0, True, "ended"),
    "graphs": (CALM, 2, 0.05, False, "graph"),
    "graphs_limit": (CALM, 2, 0.05, True, "graph"),
    "throw": (["throw_on_cudamalloc_oom:True",
               "throw_on_cudamalloc_oom:True,expandable_segments:True",
               "throw_on_cudamalloc_oom:True,garbage_collection_threshold:0.5"],
              2, 0, False, ""),  # a small device
    "reserve": (["expandable_segments:True,expandable_segments_reserve:0.01",
                 "expandable_segments:True,expandable_segments_reserve:1G",
                 "expandable_segments:True,expandable_segments_reserve:0.0071"],
                2, 0, False, ""),
    # The settings change in mid-run; ..._limit: the limit too.
    "changes": (BASIC + EXPANDABLE, 2, 0.05, False, ""),
    "changes_limit": (BASIC + EXPANDABLE, 2, 0, True, ""),
    "changes_full": (BASIC + EXPANDABLE, 2, 0, False, ""),  # a small device
}
CHANGES = BASIC + EXPANDABLE + ["expandable_segments:False"] * 4

# The first release, 2.N, that has what a kind uses.
SINCE = {"no_split": 11, "throw": 12, "reserve": 15}
SMALL = ("full", "throw", "changes_full")  # kinds that need a small device
LOG = ["op,id,bytes,stream"]


class Script:
    """A random program: its sizes, its live blocks."""

    def __init__(self, rng, streams, recorded, empties, changes):
        self.rng, self.streams, self.recorded = rng, streams, recorded
        self.empties = empties  # calls of empty_cache: a snapshot does not tell
        #                         them from releases before a retry
        kinds = [(1, 4096), (1, MIB), (MIB, 10 * MIB), (MIB, 40 * MIB),
                 (20 * MIB, 220 * MIB)]
        self.ranges = rng.sample(kinds, rng.randint(1, 3))
        self.usual = [self.draw() for _ in range(rng.randint(1, 8))]
        self.repeats = rng.random()
        self.level = rng.randint(4, 60)
        self.live = []  # tensors and their ids
        self.captured = None  # the stream of a capture in progress
        self.changes = changes  # those that the script may make

    def draw(self):
        low, high = self.rng.choice(self.ranges)
        return min(self.rng.randint(low, high), 4096 * MIB)

    def allocate(self):
        size = self.rng.choice(self.usual) if self.rng.random() < self.repeats \
            else self.draw()
        at = 0 if self.captured else self.rng.randrange(len(self.streams))
        stream = self.captured or self.streams[at]
        ident = len(LOG)
        LOG.append(f"alloc,{ident},{size},{at}")
        torch.cuda.set_stream(stream)
        try:
            self.live.append((torch.empty(size, dtype=torch.uint8,
                                          device=DEVICE), ident))
        except torch.OutOfMemoryError:
            LOG.append(f"free,{ident},,")
            if self.live and self.rng.random() < 0.7:
                self.free()

    def free(self):
        at = self.rng.randrange(len(self.live))
        self.live[at], self.live[-1] = self.live[-1], self.live[at]
        self.pop()

    def pop(self):
        LOG.append(f"free,{self.live.pop()[1]},,")

    def clear(self):
        while self.live:
            self.pop()

    def change(self):
        if self.changes == "limits" and self.rng.random() < 0.3:
            torch.cuda.set_per_process_memory_fraction(
                self.rng.choice([0.05, 0.1, 0.2, 0.4, 1.0]))
            return
        try:
            torch.cuda.memory._set_allocator_settings(self.rng.choice(CHANGES))
        except (ValueError, RuntimeError):
            pass  # a value that an earlier change forbids

    def step(self):
        rng = self.rng
        if self.changes and rng.random() < 0.03:
            self.change()
        elif rng.random() < self.recorded and self.live:
            rng.choice(self.live)[0].record_stream(rng.choice(self.streams))
        elif self.empties and not self.captured and rng.random() < 0.004:
            torch.cuda.empty_cache()
            LOG.append("empty_cache,,,")
        elif not self.captured and rng.random() < 0.004:
            torch.cuda.synchronize()
        elif self.live and rng.random() < len(self.live) / (2 * self.level):
            self.free()
        else:
            self.allocate()


class Pools:
    """The private pools of a process. A kind is `plain`, `no_split`,
    `use_on_oom`, `ended` (they are deleted and made anew) or `graph` (of
    captures, which share them in pairs)."""

    def __init__(self, kind, rng):
        self.kind, self.rng, self.side = kind, rng, None
        self.items = [self.make() for _ in range(2)] if kind else []

    def make(self):
        if self.kind == "graph":
            return []
        options = {self.kind: True} if self.kind in ("no_split", "use_on_oom") \
            else {}
        return torch.cuda.MemPool(**options)

    def use(self, script):
        """Runs some steps of the script with one of the pools."""
        at, steps = self.rng.randrange(2), self.rng.randint(1, 30)
        if self.kind == "graph":
            self.capture(at, steps, script)
            return steps
        empties, script.empties = script.empties, self.kind != "ended" and \
            script.empties  # it can break PyTorch's own state
        with torch.cuda.use_mem_pool(self.items[at]):
            for _ in range(steps):
                script.step()
        script.empties = empties
        if self.kind == "ended" and self.rng.random() < 0.3:
            self.items[at] = None
            self.items[at] = self.make()
        return steps

    def capture(self, at, steps, script):
        """A capture, into the pool of an earlier one if there is one; graphs
        are reset now and then."""
        graphs = self.items[at]
        if graphs and self.rng.random() < 0.2:
            graphs.clear()
        self.side = self.side or torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.side):
            if graphs:
                graph.capture_begin(pool=graphs[0].pool())
            else:
                graph.capture_begin()
            script.captured = self.side
            for _ in range(steps):
                script.step()
            script.captured = None
            graph.capture_end()
        graphs.append(graph)


def run_script(rng, streams, recorded, calls, pools, empties, changes):
    script = Script(rng, streams, recorded, empties, changes)
    at = 0
    while at < calls:
        if pools.kind and rng.random() < 0.05:
            at += pools.use(script)
        else:
            script.step()
            at += 1
    if rng.random() < 0.8:
        script.clear()
    return script


def take(counters):
    """The counters and the snapshot of now."""
    return {"stats": torch.cuda.memory_stats(), **counters}, \
        torch.cuda.memory._snapshot()


def is_broken(snapshot):
    """Whether cudaFree took a whole segment of which PyTorch meant to return the
    first part, which a change allows: later pointers lead nowhere."""
    held = {}
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "segment_alloc":
            held[entry["addr"]] = entry["size"]
        elif entry["action"] == "segment_free" and \
                held.pop(entry["addr"], 0) != entry["size"]:
            return True
    return False


def write(path, taken):
    texts = json.dumps(taken[0]), pickle.dumps(taken[1])  # may end the process
    with open(path + ".json", "w", encoding="ascii") as file:
        file.write(texts[0])
    with open(path + ".pickle", "wb") as file:
        file.write(texts[1])


def run_chunk(path, kind, scripts, calls, seed):
    _, stream_count, recorded, limited, pool_kind = KINDS[kind]
    total = torch.cuda.get_device_properties(0).total_memory
    streams = [torch.cuda.default_stream()] + \
        [torch.cuda.Stream() for _ in range(stream_count - 1)]
    rng = random.Random(seed)
    conf = os.environ.get("PYTORCH_ALLOC_CONF", "")
    limit = rng.choice([0.05, 0.1, 0.2, 0.4]) if limited or "garbage" in conf \
        else 1.0
    changes = ""
    if kind.startswith("changes"):
        changes = "limits" if limited else "settings"
        pytorch_record.Changes.of_process()
    torch.cuda.set_per_process_memory_fraction(limit)
    torch.cuda.memory._record_memory_history(context=None, max_entries=8000000)
    if changes:
        pytorch_record.Changes.of_process().begin()
    counters = {"total_memory": total, "seed": seed, "conf": conf,
                "torch": torch.__version__}
    if kind not in SMALL or limit < 1:
        counters["cap"] = 0 if limit == 1 else int(limit * total)
    pools = Pools(pool_kind, rng)
    kept, taken = [], None
    try:
        for counters["scripts"] in range(1, scripts + 1):
            kept.append(run_script(rng, streams, recorded, calls, pools,
                                   limit == 1 and
                                   kind not in SMALL, changes))
            if len(kept) > 2:
                kept.pop(0).clear()
            if changes:
                last, taken = taken, take(counters)
                if is_broken(taken[1]):
                    return last and write(path, last)
        if kind in SMALL:  # an OOM shows how much the device has
            LOG.extend([f"alloc,0,{2 * total},0", "free,0,,"])
            torch.cuda.set_stream(streams[0])
            torch.empty(2 * total, dtype=torch.uint8, device=DEVICE)
    except torch.OutOfMemoryError:
        pass
    except RuntimeError as error:  # deleted pools can break PyTorch's own state
        # After a change PyTorch can pass a part of a segment to cudaFree: the
        # scripts before are kept.
        if "INTERNAL ASSERT" in str(error) or changes:
            return taken and write(path, taken)
        raise
    last, taken = taken, take(counters)
    write(path, last if changes and is_broken(taken[1]) else taken)
    # Which of several segments with a reserve is used depends on addresses.
    if not pool_kind and not recorded and not changes and kind != "reserve":
        with open(path + ".csv", "w", encoding="ascii") as file:
            file.write("\n".join(LOG) + "\n")
    return None


def main():
    folder, kind, first, chunks, scripts, calls, seed = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.environ["FRAGSIM_DRY_LEAKS"] = "1"
    settings = KINDS[kind][0]
    gc.disable()  # it would copy all pages of PyTorch's objects in each fork
    for chunk in range(int(first), int(first) + int(chunks)):
        own = int(seed) * 1000003 + chunk
        for name in "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF":
            os.environ[name] = settings[own % len(settings)]
        if not os.fork():
            try:
                run_chunk(os.path.join(folder, f"{chunk}"), kind, int(scripts),
                          int(calls), own)
            finally:
                os._exit(0)  # the stand-ins would complain of what is held
        os.wait()


if __name__ == "__main__":
    import torch
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..",
                                    "traces"))
    import pytorch_record
    DEVICE = torch.device("cuda", 0)
    if int(torch.__version__.split(".")[1]) < 11:  # releases without the key
        CHANGES = [text for text in CHANGES if "large" not in text]
    main()

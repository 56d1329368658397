#!/usr/bin/env python3
"""host_scripts.py: drives PyTorch's own allocator of pinned host memory with
random scripts and small programs, and writes what it did as snapshots. Runs in
the environment of a release of PyTorch, on the stand-ins for CUDA's libraries
(LD_LIBRARY_PATH).

usage: host_scripts.py FOLDER KIND CHUNKS CALLS SEED

FOLDER/N.pickle is a snapshot with `host_traces`. PyTorch writes the entries
itself since 2.14; the script adds to each alloc the bytes that it requested
(`requested_size`), which PyTorch does not record. For earlier releases the
script writes entries of the same form: the pointers that it got, and the
completions and new blocks that host_memory_stats counts. Only the order of the
blocks that empty_cache returns is then not observed. KIND is a row of KINDS; in
the kinds named changes, the scripts change the settings now and then.
"""
import json
import os
import pickle
import random
import subprocess
import sys

KIB, MIB = 1 << 10, 1 << 20
THRESHOLDS = ["pinned_max_round_threshold_mb:1", "pinned_max_round_threshold_mb:64",
              "pinned_max_round_threshold_mb:8,pinned_max_cached_size_mb:32",
              "pinned_max_cached_size_mb:4"]
OTHERS = ["pinned_use_cuda_host_register:True",
          "pinned_use_cuda_host_register:True,pinned_num_register_threads:8",
          "max_split_size_mb:64,expandable_segments:True"]
CHANGES = THRESHOLDS + OTHERS + ["", "pinned_max_round_threshold_mb:8",
                                 "garbage_collection_threshold:0.5"]
# name: (settings, since which release, streams, whether work ends late, program)
KINDS = {
    "plain": ([""], 6, 0, False, "scripts"),
    "settings": (OTHERS, 6, 1, False, "scripts"),
    "streams": ([""], 6, 3, False, "scripts"),
    "late": ([""], 9, 3, True, "scripts"),
    "thresholds": (THRESHOLDS, 13, 0, False, "scripts"),
    "late_thresholds": (THRESHOLDS, 13, 2, True, "scripts"),
    "reserve": (["pinned_reserve_segment_size_mb:64",
                 "pinned_reserve_segment_size_mb:3"], 10, 1, False, "scripts"),
    "changes": (THRESHOLDS, 14, 0, False, "scripts"),
    "late_changes": (THRESHOLDS, 14, 2, True, "scripts"),
    "threads": (["pinned_use_background_threads:True"], 14, 2, True, "scripts"),
    "graphs": ([""], 14, 1, False, "graphs"),
    "loader": ([""], 14, 1, False, "loader"),
    "offload": (["", "pinned_max_round_threshold_mb:16"], 13, 1, True, "offload"),
    "weights": ([""], 9, 0, False, "weights"),
    "registered": ([""], 14, 1, False, "registered"),
    "cache": ([""], 9, 1, True, "cache"),
}


def release():
    return int(torch.__version__.split(".")[1])


class Log:
    """The requests of the program; before 2.14 also the trace of the allocator."""

    def __init__(self):
        self.own = release() < 14
        self.requests, self.entries = [], []
        self.pending, self.cached = [], []  # (address, size), oldest first
        self.sizes = {}  # of each block, by its address
        settings = torch.cuda.memory._snapshot()["allocator_settings"]
        values = [settings.get("max_" + key, -1)
                  for key in ("round_threshold", "cached_size")]
        self.most_rounded, self.most_cached = \
            (v if v >= 0 else sys.maxsize for v in values)
        if not self.own:
            torch.cuda.memory._record_memory_history(
                context=None, record_pinned_host_memory=True,
                record_cuda=False, max_entries=4000000)

    def stats(self):
        """Blocks that are in use or pending; blocks that were ever made."""
        if release() < 9:
            return None, None
        stats = torch.cuda.memory.host_memory_stats()
        active = "active_requests" if release() >= 11 else "allocation"
        return stats[active + ".current"], stats["num_host_alloc"]

    def enter(self, action, addr, size, **more):
        self.entries.append({"action": action, "addr": addr, "size": size,
                             "stream": 0, **more})

    def complete(self, count):
        """The blocks that waited longest are usable again."""
        for addr, size in self.pending[:count]:
            self.finish(addr, size)
        del self.pending[:count]

    def finish(self, addr, size):
        self.enter("free_completed", addr, size)
        if size > self.most_cached:
            self.enter("segment_free", addr, size)
        else:
            self.cached.append((addr, size))

    def rounded(self, size):
        return size if size > min(self.most_rounded, self.most_cached) \
            else 1 << (size - 1).bit_length()

    def empty(self, size):
        """A pinned tensor of that many bytes."""
        before, made = self.stats() if self.own else (0, 0)
        tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self.requests.append(size)
        if self.own:
            self.log_alloc(tensor.data_ptr(), size, before, made)
        return tensor

    def log_alloc(self, addr, size, before, made):
        active, made_now = self.stats()
        self.complete(len(self.pending) if active is None
                      else before + 1 - active)
        found = [b for b in self.cached if b[0] == addr]
        is_new = not found if made is None else made_now > made
        block = (addr, self.rounded(size)) if is_new else found[0]
        if is_new:
            self.enter("segment_alloc", *block)
        else:
            self.cached.remove(block)
        self.sizes[addr] = block[1]
        self.enter("alloc", *block, requested_size=size)

    def free(self, row):
        """Drops the only reference to a tensor: row[0]. row[1]: a stream used
        it."""
        addr = row[0].data_ptr()
        row[0] = None
        if not self.own:
            return
        size = self.sizes[addr]
        self.enter("free_requested", addr, size)
        if row[1]:
            self.pending.append((addr, size))
        else:
            self.finish(addr, size)

    def empty_cache(self):
        before, _ = self.stats() if self.own else (0, 0)
        torch._C._host_emptyCache()
        if not self.own:
            return
        active, _ = self.stats()
        self.complete(len(self.pending) if active is None else before - active)
        for block in sorted(self.cached, key=lambda b: (b[1] - 1).bit_length()):
            self.enter("segment_free", *block)
        self.cached = []

    def dump(self, path):
        snapshot = torch.cuda.memory._snapshot()
        snapshot["segments"] = []  # of the GPU: they have no history
        settings = snapshot["allocator_settings"]
        if self.own:
            snapshot["host_traces"] = self.entries
            conf = settings["PYTORCH_CUDA_ALLOC_CONF"]
            settings["PYTORCH_CUDA_ALLOC_CONF"] = \
                f"torch_version:2.{release()}" + (conf and "," + conf)
        else:
            allocs = [e for e in snapshot["host_traces"]
                      if e["action"] == "alloc"]
            if len(allocs) == len(self.requests):
                for entry, size in zip(allocs, self.requests):
                    entry["requested_size"] = size
        with open(path + ".pickle", "wb") as file:
            pickle.dump(snapshot, file)
        stats = torch.cuda.memory.host_memory_stats() if release() >= 9 else {}
        with open(path + ".json", "w", encoding="ascii") as file:
            json.dump({"stats": {}, "host_stats": stats, "torch": torch.__version__,
                       "conf": os.environ.get("PYTORCH_ALLOC_CONF", "")}, file)


class Script:
    """A random program: its sizes, and its live blocks, each with whether a
    stream used it."""

    def __init__(self, log, rng, streams, small):
        self.log, self.rng, self.streams = log, rng, streams
        ranges = [(1, 600), (1, 64 * KIB), (64 * KIB, 6 * MIB)]
        if not small:
            ranges += [(2 * MIB, 20 * MIB), (20 * MIB, 150 * MIB)]
        self.ranges = rng.sample(ranges, rng.randint(1, 3))
        self.usual = [self.draw() for _ in range(rng.randint(1, 8))]
        self.repeats = rng.random()
        self.level = rng.randint(4, 40)
        self.live = []
        self.changes = False  # whether the script changes the settings

    def draw(self):
        return self.rng.randint(*self.rng.choice(self.ranges))

    def allocate(self):
        size = self.rng.choice(self.usual) if self.rng.random() < self.repeats \
            else self.draw()
        self.live.append([self.log.empty(size), False])

    def use(self):
        row = self.rng.choice(self.live)
        stream_uses(self.rng.choice(self.streams), row)

    def step(self):
        rng = self.rng
        if self.changes and rng.random() < 0.05:
            torch.cuda.memory._set_allocator_settings(rng.choice(CHANGES))
        elif self.streams and self.live and rng.random() < 0.25:
            self.use()
        elif self.streams and rng.random() < 0.05:
            rng.choice(self.streams).synchronize()
        elif rng.random() < 0.01:
            self.log.empty_cache()
        elif self.live and rng.random() < len(self.live) / (2 * self.level):
            self.log.free(self.live.pop(rng.randrange(len(self.live))))
        else:
            self.allocate()


def stream_uses(stream, row):
    with torch.cuda.stream(stream):
        torch.empty(1, dtype=torch.uint8, device="cuda").copy_(
            row[0][:1], non_blocking=True)
    row[1] = True


def scripts(log, rng, streams, calls, changes):
    small = "reserve" in os.environ.get("PYTORCH_ALLOC_CONF", "")
    kept = []
    for _ in range(4):
        script = Script(log, rng, streams, small)
        script.changes = changes
        for _ in range(calls // 4):
            script.step()
        while script.live and rng.random() < 0.99:
            log.free(script.live.pop())
        kept += script.live
    return kept


def graphs(log, rng, streams, calls):
    """Requests inside of captures, each capture with a pool of its own, and
    between them; graphs end, and their pools with them."""
    kept, script = [], Script(log, rng, [], True)
    for _ in range(6):
        kept.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(kept[-1], stream=streams[0]):
            for _ in range(calls // 10):
                script.step()
        for _ in range(calls // 10):
            script.step()
        if len(kept) > 2:
            kept.pop(0).reset()
            log.empty_cache()
    return kept, script


def loader(log, rng, streams, calls):
    """A DataLoader whose batches of varying length are pinned and copied."""
    data = [torch.zeros(rng.randint(1, 4096), 64) for _ in range(calls)]
    batches = torch.utils.data.DataLoader(data, batch_size=None, pin_memory=True)
    for batch in batches:
        batch.to("cuda", non_blocking=True)


def offload(log, rng, streams, calls):
    """Parameters of a model are moved to pinned memory and back, layer by
    layer."""
    layers = [rng.randint(1, 40 * MIB) for _ in range(12)]
    for _ in range(calls // 12):
        held = []
        for size in layers:
            held.append([log.empty(size), False])
            stream_uses(streams[0], held[-1])
        for row in held:
            stream_uses(streams[0], row)
            log.free(row)
            if rng.random() < 0.3:
                streams[0].synchronize()
    return held


def weights(log, rng, streams, calls):
    """Weights are pinned once, one tensor each, and kept (--cpu-offload-gb)."""
    return [log.empty(rng.randint(1, 64) * 1117 * KIB) for _ in range(calls // 4)]


def cache(log, rng, streams, calls):
    """A cache of pinned pages that grows, and whose oldest page is dropped."""
    pages = []
    for _ in range(calls):
        pages.append([log.empty(rng.choice([3, 5, 12]) * 300 * KIB), False])
        stream_uses(streams[0], pages[-1])
        if len(pages) > 30:
            log.free(pages.pop(0))
        if rng.random() < 0.1:
            streams[0].synchronize()
    return pages


def registered(log, rng, streams, calls):
    """Buffers that the program pins itself, beside those of the allocator."""
    cudart = torch.cuda.cudart()
    kept = []
    for i in range(calls // 10):
        buffer = torch.empty(rng.randint(1, 30) * 4096 * 3, dtype=torch.uint8)
        assert not int(cudart.cudaHostRegister(buffer.data_ptr(),
                                               buffer.numel(), 0))
        kept.append((buffer, [log.empty(rng.randint(1, 9 * MIB)), False]))
        if len(kept) > 6:
            buffer, row = kept.pop(i % 5)
            assert not int(cudart.cudaHostUnregister(buffer.data_ptr()))
            log.free(row)
    return kept


def run_chunk(path, kind, calls, seed):
    count, program = KINDS[kind][2], KINDS[kind][4]
    torch.cuda.init()
    log = Log()
    log.empty_cache()
    changes = "changes" in kind
    if changes:
        pytorch_record.Changes.of_process().begin()
    streams = [torch.cuda.Stream() for _ in range(count)]
    kept = globals()[program](log, random.Random(seed), streams, calls,
                              *([changes] if program == "scripts" else []))
    log.dump(path)
    del kept
    sys.stdout.flush()
    os._exit(0)  # the stand-ins would complain of what is still held


def main():
    folder, kind, chunks, calls, seed = sys.argv[1:]
    settings, since, _, late, _ = KINDS[kind]
    if release() < since:
        return
    os.makedirs(folder, exist_ok=True)
    for chunk in range(int(chunks)):
        conf = settings[(int(seed) + chunk) % len(settings)]
        env = dict(os.environ, FRAGSIM_DRY_LAZY="1" if late else "0",
                   PYTORCH_ALLOC_CONF=conf, PYTORCH_CUDA_ALLOC_CONF=conf)
        subprocess.run([sys.executable, "-W", "ignore", __file__, "chunk",
                        os.path.join(folder, f"{chunk}"), kind, calls,
                        f"{int(seed) * 1000003 + chunk}"], check=True, env=env)


if __name__ == "__main__":
    import torch
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..",
                                    "traces"))
    import pytorch_record
    if sys.argv[1] == "chunk":
        run_chunk(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    main()

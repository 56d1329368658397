#!/usr/bin/env python3
"""in_production_programs.py NAME SIDE [FOLDER]: one small PyTorch program that
checks one thing on one allocator, and prints one JSON line: {"checks": [[what,
whether it holds, numbers or words]...]}.

SIDE is PyTorch, PyTorch:SETTINGS of its own allocator, or a policy of fragsim as in
FRAGSIM_POLICY; "POLICY pluggable" is the pluggable allocator over it. Programs that
need kernels (graphs, compile) need a GPU; the others run on a stand-in for the CUDA
runtime too. in_production.py starts them and says which sides each is for.
"""
import contextlib
import json
import os
import random
import sys
import threading
import time
from queue import Empty

MIB = 1 << 20
checks = []


def check(what, holds, words=""):
    checks.append([what, bool(holds), words])


def ours(side):
    return not side.startswith("PyTorch")


def environment(side):
    """The variables that select a side."""
    if ours(side):
        return {"FRAGSIM_POLICY": side.removesuffix(" pluggable")}
    conf = side.partition(":")[2]
    return {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}


def use(side):
    if ours(side):
        import fragsim_torch
        pluggable = side.endswith(" pluggable")
        way = fragsim_torch.use(pluggable=pluggable)
        check("the way that use() selects",
              way == ("pluggable" if pluggable else "class"), way)


def pattern(size, seed=0):
    import torch
    made = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=made)


def filled(size, seed=0, device="cuda"):
    """A tensor of `size` bytes with a known content."""
    return pattern(size, seed).to(device)


def intact(tensor, seed=0):
    import torch
    return torch.equal(tensor.cpu(), pattern(tensor.numel(), seed))


def words_of(act, *kinds):
    """The words of the exception that act() raises, or None."""
    try:
        act()
    except kinds as error:
        return f"{type(error).__name__}: {error}"
    return None


# ---- the programs ----

def oom(side, _):
    """A request that cannot be met is refused, and the program goes on."""
    import torch
    plain = side.endswith(" pluggable")
    kinds = RuntimeError if plain else torch.OutOfMemoryError
    kept = filled(5 * MIB)
    small = filled(1000, 1)
    for round_ in range(3):
        words = words_of(lambda: torch.empty(1 << 42, dtype=torch.uint8,
                                             device="cuda"), kinds)
        check(f"request {round_} of 4 TiB is refused", words and
              "CUDA out of memory" in words, (words or "")[:300])
        check(f"a block after request {round_}", intact(filled(3 * MIB, 2), 2))
    check("the blocks from before", intact(kept) and intact(small, 1))
    # A device that is full in earnest: blocks until the refusal, under a limit.
    if not plain:
        torch.cuda.set_per_process_memory_fraction(0.02)
        held, words = [], None
        while words is None and len(held) < 10000:
            words = words_of(lambda: held.append(torch.empty(
                16 * MIB, dtype=torch.uint8, device="cuda")), kinds)
        check("blocks until the limit", words and 2 <= len(held) < 10000,
              f"{len(held)} blocks of 16 MiB; {(words or '')[:300]}")
        full = len(held)
        held.clear()
        for _ in range(full - 1):
            held.append(torch.empty(16 * MIB, dtype=torch.uint8,
                                    device="cuda"))
        check("as many blocks once more", len(held) == full - 1)
        held.clear()
        check("counted in memory_stats()",
              torch.cuda.memory_stats()["num_ooms"] >= 4,
              torch.cuda.memory_stats()["num_ooms"])
    check("the blocks from before, at the end", intact(kept) and
          intact(small, 1))


def peers(_, __):
    """Copies between two devices."""
    import torch
    access = torch.cuda.can_device_access_peer(0, 1)
    check("two devices with peer access",
          torch.cuda.device_count() >= 2 and access)
    for size in (100, 2 * MIB - 7, 40 * MIB + 3):
        one = filled(size, size, "cuda:1")
        zero = one.to("cuda:0")
        check(f"{size} B from cuda:1 to cuda:0", intact(zero, size))
        back = zero.to("cuda:1")
        check(f"{size} B from cuda:0 to cuda:1", intact(back, size))
    # Memory that is mapped after access was enabled.
    later = filled(96 * MIB, 5, "cuda:1")
    check("a block from after the first copy", intact(later.to("cuda:0"), 5))
    host = pattern(MIB)
    into = torch.empty(2 * MIB, dtype=torch.uint8, device="cuda:0")
    into[MIB // 2:MIB // 2 + MIB].copy_(host.to("cuda:1"))
    check("a copy into the middle of a block",
          torch.equal(into[MIB // 2:MIB // 2 + MIB].cpu(), host))
    stream = torch.cuda.Stream(0)
    with torch.cuda.stream(stream):
        zero = later.to("cuda:0", non_blocking=True)
    stream.synchronize()
    check("a copy on a stream", intact(zero, 5))
    check("the devices count apart", torch.cuda.memory_allocated(1) >=
          96 * MIB and torch.cuda.memory_reserved(0) >= 96 * MIB)


def second_device(side, _):
    """set_device(1) comes before use()."""
    import torch
    torch.cuda.set_device(1)
    use(side)
    tensor = filled(7 * MIB)
    check("the block is on cuda:1", tensor.device.index == 1)
    check("its content", intact(tensor))
    check("cuda:1 counts it, cuda:0 does not",
          torch.cuda.memory_allocated() == 7 * MIB and
          torch.cuda.memory_allocated(0) == 0,
          [torch.cuda.memory_allocated(d) for d in (0, 1)])
    zero = filled(3 * MIB, 1, "cuda:0")
    check("a block on cuda:0", intact(zero, 1) and
          torch.cuda.memory_allocated(0) == 3 * MIB)
    del tensor, zero
    torch.cuda.empty_cache()
    check("nothing stays", all(
        torch.cuda.memory_reserved(d) == 0 for d in (0, 1)))


class Model:
    """Blocks of a random program, and the numbers that must come out."""

    def __init__(self):
        self.sizes, self.requests = {}, []
        self.bytes = self.peak = self.total = self.freed = 0

    def add(self, key, size):
        self.sizes[key] = size
        self.requests.append(size)
        self.total += size
        self.bytes += size
        self.peak = max(self.peak, self.bytes)

    def drop(self, key):
        self.freed += 1
        self.bytes -= self.sizes.pop(key)


def random_program(steps, model, live, look):
    import torch
    draw = random.Random(7)
    for step in range(steps):
        if live and draw.random() < 0.48:
            key = draw.choice(sorted(live))
            del live[key]
            model.drop(key)
        else:
            size = int(2 ** draw.uniform(0, 26))
            live[step] = torch.empty(size, dtype=torch.uint8, device="cuda")
            model.add(step, size)
        if step % 100 == 99:
            look(step)


def statistics(_, folder):
    """Every number of torch.cuda.memory against a model of the program."""
    import torch
    cuda, looks = torch.cuda, []
    cuda.memory._record_memory_history(context=None, max_entries=100000)
    model, live, wrong = Model(), {}, []

    def look(step):
        stats = cuda.memory_stats()
        held = {"requested": stats["requested_bytes.all.current"] ==
                model.bytes,
                "peak requested": stats["requested_bytes.all.peak"] ==
                model.peak,
                "requested in all": stats["requested_bytes.all.allocated"] ==
                model.total,
                "blocks": stats["allocation.all.current"] ==
                len(model.sizes),
                "requests": stats["allocation.all.allocated"] ==
                len(model.requests),
                "frees": stats["allocation.all.freed"] == model.freed,
                "allocated covers requested": model.bytes <=
                cuda.memory_allocated() <= cuda.memory_reserved(),
                "allocated is the sum of its blocks":
                cuda.memory_allocated() == sum(
                    b["size"] for s in cuda.memory._snapshot()["segments"]
                    for b in s["blocks"] if b["state"] == "active_allocated"),
                "reserved is the sum of the segments":
                cuda.memory_reserved() == sum(
                    s["total_size"]
                    for s in cuda.memory._snapshot()["segments"]),
                "maxima": cuda.max_memory_allocated() ==
                stats["allocated_bytes.all.peak"] and
                cuda.max_memory_reserved() ==
                stats["reserved_bytes.all.peak"] >= cuda.memory_reserved()}
        wrong.extend(f"{step}: {k}" for k, v in held.items() if not v)
        looks.append(stats)

    random_program(2000, model, live, look)
    check("numbers equal to the model", not wrong, wrong[:6])
    check("memory_stats() has values", len(looks[-1]) > 50, len(looks[-1]))
    history = [e for e in cuda.memory._snapshot()["device_traces"][0]
               if e["action"] == "alloc"]
    sizes = [e["size"] for e in history]
    check("the history has the program's requests, in order",
          sizes == model.requests, f"{len(sizes)} of {len(model.requests)}")
    words = cuda.memory_summary()
    check("memory_summary()", "Allocated memory" in words and
          "GPU reserved memory" in words)
    cuda.reset_peak_memory_stats()
    check("reset_peak_memory_stats()",
          cuda.max_memory_allocated() == cuda.memory_allocated() and
          cuda.max_memory_reserved() == cuda.memory_reserved())
    cuda.reset_accumulated_memory_stats()
    check("reset_accumulated_memory_stats()",
          cuda.memory_stats()["allocation.all.allocated"] == 0)
    live.clear()
    cuda.synchronize()
    cuda.empty_cache()
    check("nothing stays", cuda.memory_allocated() == 0 ==
          cuda.memory_reserved(),
          [cuda.memory_allocated(), cuda.memory_reserved()])
    check("no segment stays", not cuda.memory._snapshot()["segments"])
    looks.append(cuda.memory_stats())
    with open(os.path.join(folder, f"stats.{os.getpid()}.json"), "w",
              encoding="utf-8") as file:
        json.dump(looks, file)
    return {"stats": file.name}


def graphs(_, __):
    """Captures, replays and memory pools; the results of eager kernels."""
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(),
                              torch.nn.Linear(1024, 512)).cuda()
    inputs = [torch.randn(64, 512, device="cuda") for _ in range(4)]
    with torch.no_grad():
        wanted = [net(x) for x in inputs]
        static = inputs[0].clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            net(static)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = net(static)
        between = [torch.empty(9 * MIB, device="cuda") for _ in range(5)]
        del between
        for number, x in enumerate(inputs):
            static.copy_(x)
            graph.replay()
            check(f"replay {number}", torch.equal(found, wanted[number]))
        second = torch.cuda.CUDAGraph()
        with torch.cuda.graph(second, pool=graph.pool()):
            again = net(static) * 2
        static.copy_(inputs[1])
        second.replay()
        check("a second graph in the pool of the first",
              torch.equal(again, wanted[1] * 2))
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            inside = net(inputs[2])
        check("kernels on a memory pool", torch.equal(inside, wanted[2]))
        check("the pool has segments", len(pool.snapshot()) > 0,
              len(pool.snapshot()))
    made = torch.cuda.make_graphed_callables(net, (inputs[0].clone(),))
    check("make_graphed_callables()",
          torch.equal(made(inputs[3]).detach(), wanted[3]))
    del graph, second, found, again, inside, pool, made
    torch.cuda.empty_cache()


def compiled(_, __):
    """torch.compile with CUDA graphs, in inference and in training."""
    import torch
    torch.manual_seed(0)

    def net():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                   torch.nn.Linear(512, 256)).cuda()

    plain, model = net(), net()
    fast = torch.compile(model, mode="reduce-overhead")
    inputs = [torch.randn(32, 256, device="cuda") for _ in range(6)]
    with torch.no_grad():
        for number, x in enumerate(inputs):
            torch.compiler.cudagraph_mark_step_begin()
            check(f"inference {number}",
                  torch.allclose(fast(x), plain(x), rtol=1e-4, atol=1e-5))
    steps = [torch.optim.SGD(m.parameters(), lr=0.01) for m in (plain, model)]
    for number, x in enumerate(inputs):
        torch.compiler.cudagraph_mark_step_begin()
        losses = []
        for run, step in ((plain, steps[0]), (fast, steps[1])):
            loss = run(x).square().mean()
            loss.backward()
            step.step()
            step.zero_grad()
            losses.append(loss.item())
        check(f"training step {number}",
              abs(losses[0] - losses[1]) < 1e-4 * abs(losses[0]), losses)
    from torch._inductor import cudagraph_trees
    tree = cudagraph_trees.get_container(0).tree_manager
    check("CUDA graphs were used", tree is not None and
          tree.roots, "no tree" if tree is None else "")


def snapshot(side, folder):
    """A snapshot from inside; its replay is compared with the policy's own
    number afterwards (in_production.py replay)."""
    import torch
    torch.cuda.memory._record_memory_history(context=None, max_entries=10**6)
    model, live = Model(), {}
    random_program(3000, model, live, lambda step: None)
    torch.cuda.synchronize()
    path = os.path.join(folder, "snapshot." + "".join(
        c if c.isalnum() else "_" for c in side) + ".pickle")
    peak = torch.cuda.max_memory_reserved()
    torch.cuda.memory._dump_snapshot(path)
    check("the snapshot is there", os.path.getsize(path) > 100000,
          os.path.getsize(path))
    return {"snapshot": os.path.basename(path), "peak_reserved": peak,
            "peak_allocated": torch.cuda.max_memory_allocated()}


def receiver(queue, answers, side):
    try:
        if side:
            use(side)
        tensor = queue.get()
        answers.put(tensor.cpu().numpy().tobytes())
        tensor.copy_(tensor.cpu().fill_(7))
        tensor.cpu()  # waits for it
        answers.put("written")
        del tensor
    except Exception as error:  # pylint: disable=broad-exception-caught
        answers.put(f"in the other process: {error}")


def other_process(side, _):
    """A tensor that is sent to a spawned process, with PyTorch's own allocator
    and with this one, which writes to it."""
    import torch
    import torch.multiprocessing as mp

    def send(tensor, other=""):
        # What the queue does in its own thread, where a failure is not seen.
        words = words_of(tensor.untyped_storage()._share_cuda_, RuntimeError)
        if words:
            return words
        context = mp.get_context("spawn")
        queue, answers = context.Queue(), context.Queue()
        child = context.Process(target=receiver, args=(queue, answers, other))
        child.start()
        queue.put(tensor)
        try:
            got = answers.get(timeout=40)
            if not isinstance(got, str):
                check("the other process writes",
                      answers.get(timeout=40) == "written" and
                      bool((tensor.cpu() == 7).all()))
        except Empty:
            got = "no answer from the other process"
        child.join(5)
        child.kill()
        return got

    tensor = filled(3 * MIB)
    found = send(tensor)
    check("a block of the policy arrives",
          found == pattern(3 * MIB).numpy().tobytes(),
          found[:400] if isinstance(found, str) else "")
    if ours(side):
        large = filled(50 * MIB + 7, 2)
        found = send(large, side)
        check("a block of many maps arrives under the same policy",
              found == pattern(50 * MIB + 7, 2).numpy().tobytes(),
              found[:400] if isinstance(found, str) else "")
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        pooled = filled(3 * MIB, 1)
    found = send(pooled)
    check("a block of a memory pool arrives",
          found == pattern(3 * MIB, 1).numpy().tobytes(),
          found[:400] if isinstance(found, str) else "")


# ---- the soak ----

class Soak:
    """Threads that allocate, copy, use several streams and catch refusals.

    One graph exists all the time. The first CUDAGraph that exists requests memory for
    the random numbers of its kernels (CUDAGeneratorImpl.cpp of PyTorch 2.11,
    register_graph). If that request is refused, the graph is not registered, and its
    destructor throws (unregister_graph), which ends the process under every allocator.
    """

    def __init__(self, seconds):
        import torch
        self.torch, self.until = torch, time.monotonic() + seconds
        self.sources = [pattern(32 * MIB, k) for k in range(4)]
        self.device = [s.cuda() for s in self.sources]
        self.kept = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.kept):
            self.device[0][:8].clone()
        self.lock, self.errors = threading.Lock(), {}
        self.counts = {"blocks": 0, "checked": 0, "wrong": 0, "refused": 0,
                       "too large": 0, "graphs": 0, "emptied": 0}

    def count(self, name, more=1):
        with self.lock:
            self.counts[name] += more

    def failed(self, where, error):
        words = f"{where}: {type(error).__name__}: {str(error)[:200]}"
        with self.lock:
            self.errors[words] = self.errors.get(words, 0) + 1

    def right(self, block):
        tensor, kind, size = block
        self.count("checked")
        if not self.torch.equal(tensor.cpu(), self.sources[kind][:size]):
            self.count("wrong")

    def block(self, draw):
        torch, size = self.torch, int(2 ** draw.uniform(0, 25))
        kind = draw.randrange(4)
        tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        tensor.copy_(self.device[kind][:size])
        self.count("blocks")
        return tensor, kind, size

    def step(self, draw, live, others):
        torch, what = self.torch, draw.random()
        if live and what < 0.45:
            gone = live.pop(draw.randrange(len(live)))
            if what < 0.05:
                self.right(gone)
            if 0.05 < what < 0.1:  # another stream reads it after its free
                other = draw.choice(others)
                other.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(other):
                    copy = gone[0].clone()
                gone[0].record_stream(other)
                live.append((copy, *gone[1:]))
                torch.cuda.current_stream().wait_stream(other)
                copy.record_stream(torch.cuda.current_stream())
        elif what < 0.99 or len(live) < 4:
            live.append(self.block(draw))
        elif what < 0.993:
            torch.cuda.empty_cache()
            self.count("emptied")
        else:
            with contextlib.suppress(torch.OutOfMemoryError):
                torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
                self.failed("worker", ValueError("4 TiB were served"))
            self.count("too large")

    def worker(self, number):
        torch, draw, live = self.torch, random.Random(number), []
        others = [torch.cuda.Stream() for _ in range(2)]
        with torch.cuda.stream(torch.cuda.Stream()):
            while time.monotonic() < self.until:
                try:
                    self.step(draw, live, others)
                except torch.OutOfMemoryError:
                    self.count("refused")
                    del live[::2]
                except RuntimeError as error:
                    self.failed("worker", error)
                    if sum(self.errors.values()) > 50:
                        return
            with contextlib.suppress(RuntimeError):
                for block in live:
                    self.right(block)
            live.clear()

    def capturer(self, captures):
        """Captures copies into a graph while the other threads allocate."""
        torch, draw = self.torch, random.Random(99)
        static = self.device[0][:3 * MIB].clone()
        while captures and time.monotonic() < self.until:
            kind = draw.randrange(4)
            try:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph,
                                      capture_error_mode="thread_local"):
                    found = static.clone()
                static.copy_(self.device[kind][:3 * MIB])
                graph.replay()
                torch.cuda.current_stream().synchronize()
                self.right((found, kind, 3 * MIB))
                self.count("graphs")
                del graph, found
            except torch.OutOfMemoryError:
                self.count("refused")
            except RuntimeError as error:
                self.failed("capture", error)
                if sum(self.errors.values()) > 50:
                    return
            time.sleep(0.1)

    def report(self, side, ended):
        """Adds a row to the file FRAG_ROWS from time to time, so that a run that is
        cut off keeps what it has."""
        cuda, began = self.torch.cuda, time.monotonic()
        while not ended.wait(float(os.environ.get("FRAG_EVERY", "20"))):
            with self.lock:
                row = {"kind": "soak", "side": side, "seconds": round(
                           time.monotonic() - began, 1),
                       "counts": dict(self.counts), "errors": dict(
                           list(self.errors.items())[:4]),
                       "peak_reserved": cuda.max_memory_reserved()}
            with open(os.environ["FRAG_ROWS"], "a", encoding="utf-8") as rows:
                rows.write(json.dumps(row) + "\n")


def soak(side, _):
    """Many threads for a while; at the end nothing is left."""
    import torch
    seconds = float(os.environ.get("FRAG_SOAK", "20"))
    captures = os.environ.get("FRAG_CAPTURES", "1") != "0"
    torch.cuda.set_per_process_memory_fraction(
        float(os.environ.get("FRAG_FRACTION", "0.03")))
    run, ended = Soak(seconds), threading.Event()
    threads = [threading.Thread(target=run.worker, args=(k,))
               for k in range(7)]
    threads.append(threading.Thread(target=run.capturer, args=(captures,)))
    if "FRAG_ROWS" in os.environ:
        threading.Thread(target=run.report, args=(side, ended),
                         daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    peak = torch.cuda.max_memory_reserved()
    counts, errors = run.counts, run.errors
    check("contents", counts["checked"] > 0 and counts["wrong"] == 0,
          f"{counts['wrong']} of {counts['checked']} wrong")
    check("requests were refused and caught", counts["too large"] > 0,
          f"{counts['refused']} at the limit, {counts['too large']} of 4 TiB")
    check("no other error", not errors,
          [f"{n}x {w}" for w, n in list(errors.items())[:4]])
    run.device.clear()
    run.kept = None
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    left = [torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]
    check("nothing is allocated or reserved at the end", left == [0, 0], left)
    return {"counts": counts, "peak_reserved": peak, "seconds": seconds}


PROGRAMS = {
    "oom": oom, "peers": peers, "second_device": second_device,
    "statistics": statistics, "graphs": graphs, "compiled": compiled,
    "snapshot": snapshot, "other_process": other_process, "soak": soak,
}


def main():
    name, side = sys.argv[1:3]
    folder = sys.argv[3] if len(sys.argv) > 3 else "."
    os.environ.update(environment(side))
    if name != "second_device":
        use(side)
    try:
        more = PROGRAMS[name](side, folder) or {}
    except Exception as error:  # pylint: disable=broad-exception-caught
        check("the program came to its end", False,
              f"{type(error).__name__}: {str(error)[:600]}")
        more = {}
    print(json.dumps({"checks": checks, **more}), flush=True)
    if name == "other_process":
        os._exit(0)  # a queue may wait for its reader


if __name__ == "__main__":
    main()

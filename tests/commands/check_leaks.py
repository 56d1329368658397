#!/usr/bin/env python3
"""check_leaks.py: what `fragsim leaks` says of recordings and made-up programs that are
known to leak or not to leak.

A recorded program leaks if its name begins with leak, or if the file beside it says so.
Without their marks the recordings give no false alarm either. A made-up program writes a
snapshot, with or without the marks of the optimizer, and with or without Python stacks.
One that does not leak gives no alarm; one that does is found, with its site, wherever
marks or stacks say where its work ends; where neither does, or where the growth began too
late, the verdict is unknown, with the reason, and never none.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR, and FRAG_LEAKS: a folder of
further recordings, each with a .json beside it.
"""
import contextlib
import glob
import json
import lzma
import os
import pickle
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, SHARED, results, share

KIB, MIB = 1 << 10, 1 << 20
PACKAGES = "/usr/lib/python3/site-packages/"
MODULE = [(PACKAGES + "torch/nn/modules/module.py", "_call_impl", 1710)]
OPTIMIZER = [(PACKAGES + "torch/optim/optimizer.py", "wrapper", 500)]
LOADER = [(PACKAGES + "transformers/modeling_utils.py", "from_pretrained", 300)]
ENGINE = [("??", "torch::autograd::Engine::thread_main", 0)]


class Program:
    """Writes a snapshot. `stacks` and `marks`: whether it has them."""

    def __init__(self, marks, stacks):
        self.marks, self.stacks = marks, stacks
        self.time, self.next = 1_700_000_000_000_000, 1 << 30
        self.entries, self.annotations, self.live = [], [], {}
        self.frames = [("main.py", "<module>", 9)]
        self.random = random.Random(1)
        self.weights, self.state, self.kept = [], [], []

    @contextlib.contextmanager
    def within(self, *frames):
        before, self.frames = self.frames, self.frames + list(frames)
        yield
        self.frames = before

    def alloc(self, size, line=20, function="run"):
        self.time += 10
        entry = {"action": "alloc", "addr": self.next, "size": int(size),
                 "stream": 0, "time_us": self.time}
        if self.stacks:
            entry["frames"] = [
                {"filename": file, "name": name, "line": at} for file, name, at
                in reversed(self.frames + [("main.py", function, line)])]
        self.entries.append(entry)
        self.live[self.next] = int(size)
        self.next += (int(size) + 2 * MIB) // (2 * MIB) * 2 * MIB
        return entry["addr"]

    def free(self, *blocks):
        for block in blocks:
            self.time += 5
            self.entries += [
                {"action": action, "addr": block, "size": self.live[block],
                 "stream": 0, "time_us": self.time}
                for action in ("free_requested", "free_completed")]
            del self.live[block]

    def mark(self, name="Optimizer.step#AdamW.step"):
        self.time += 3
        if self.marks:
            self.annotations += [{"stage": stage, "name": name, "device": 0,
                                  "time_us": self.time - 1 + i}
                                 for i, stage in enumerate(("START", "END"))]

    def write(self, path):
        with open(path, "wb") as file:
            pickle.dump({"segments": [], "device_traces": [self.entries],
                         "allocator_settings": {},
                         "external_annotations": self.annotations}, file)

    # -- parts of programs --

    def build(self, layers=6, size=512 * KIB):
        with self.within(*MODULE):
            self.weights = [self.alloc(size * (1 + i % 3), 12, "build")
                            for i in range(6 * layers)]

    def forward(self, size, layers=6, grad=False, cache=None, share=0.1):
        """The blocks that the backward pass needs, and the output. Each layer
        puts keys and values in the cache, if there is one."""
        kept, x = [], self.alloc(size)
        with self.within(*MODULE):
            for _ in range(layers):
                with self.within(("model.py", "block", 30), *MODULE):
                    made = [self.alloc(size * n, 50 + i, "layer")
                            for i, n in enumerate((1, 1, 1, 2, 4, 4))]
                    if cache is not None:
                        cache += [self.alloc(size * share, 58 + i, "attend")
                                  for i in range(2)]
                    y = self.alloc(size, 60, "layer")
                self.free(x, *([] if grad else made))
                kept += made if grad else []
                x = y
        return kept, x

    def train(self, size=MIB, layers=6, parts=1):
        grads = []
        for part in range(parts):
            x = self.alloc(size / 4, 40)
            kept, y = self.forward(size, layers, grad=True)
            before, self.frames = self.frames, ENGINE
            for block in reversed(kept):
                self.free(self.alloc(self.live[block]), block)
            if not part:
                grads = [self.alloc(self.live[w]) for w in self.weights]
            self.frames = before
            self.free(y, x)
        with self.within(*OPTIMIZER):
            if not self.state:
                self.state = [self.alloc(self.live[w], 70, "adam")
                              for w in self.weights for _ in range(2)]
            for block in self.weights:
                self.free(self.alloc(self.live[block], 71, "adam"))
        self.mark()
        self.free(*grads)

    def keep(self, size):
        self.kept.append(self.alloc(size, 90, "keep"))


# -- programs: each calls `extra` once a step or a request --


def training(p, extra, steps=40, evaluates=0, **how):
    p.build()
    for step in range(steps):
        p.train(**how)
        extra(p, step)
        for _ in range(8 if evaluates and step % evaluates == 1 else 0):
            x = p.alloc(MIB / 4, 45, "evaluate")
            p.free(x, *p.forward(MIB)[1:])


def varying(p, extra, steps=60):
    p.build()
    for step in range(steps):
        p.train(MIB * p.random.uniform(0.3, 1))
        extra(p, step)


def serving(p, extra, requests=400):
    p.build()
    for step in range(requests):
        p.length = p.random.randrange(16, 512)
        x = p.alloc(8 * p.length, 30, "handle")
        _, y = p.forward(2 * KIB * p.length)
        extra(p, step)
        p.free(x, y)


def ending(p, extra, requests=1200):
    """A server of few blocks that frees all that it has before it ends."""
    p.build(1)
    for step in range(requests):
        x = p.alloc(MIB, 30, "handle")
        extra(p, step)
        p.free(x)
    p.free(*list(p.live))


def remembering(p, extra, sessions=40, layers=4):
    """Each session keeps the keys and values of its layers, and of its length."""
    p.build()
    for _ in range(sessions):
        length = p.random.randrange(16, 512)
        extra(p, length)
        for token in range(4):
            x = p.alloc(512, 22, "generate")
            with p.within(*MODULE):
                kept = []
                for _ in range(layers):
                    p.free(p.alloc(64 * KIB * length, 50, "layer"))
                    kept += [p.alloc(KIB * (length + token), 90, "keep")
                             for _ in range(2)]
            p.free(x, *(kept if token < 3 else []))


def chunking(p, extra, tokens=1500):
    """One generation whose cache is replaced by a larger one now and then."""
    p.build()
    cache = p.alloc(KIB, 80, "attend")
    for token in range(tokens):
        extra(p, token)
        p.free(p.alloc(512, 22, "generate"))
        with p.within(*MODULE):
            for _ in range(6):
                p.free(p.alloc(4 * MIB, 50, "layer"))
        if token % 100 == 99:
            longer = p.alloc(KIB * token, 80, "attend")
            p.free(cache)
            cache = longer


def generating(p, extra, requests=30, tokens=60, extends=True):
    """A cache of keys and values that is extended, or to which is added, with
    each token of an answer, and freed with the answer."""
    p.build()
    for step in range(requests):
        cache = []
        for token in range(tokens):
            x = p.alloc(512, 22, "generate")
            y = p.forward(64 * KIB, cache=None if extends else cache,
                          share=0.02)[1]
            if extends:
                with p.within(*MODULE):
                    longer = [p.alloc(2048 * (token + 1), 80, "attend")
                              for _ in range(12)]
                p.free(*cache)
                cache = longer
            p.free(x, p.alloc(512, 24, "generate"), y)
        p.free(*cache)
        extra(p, step)


def loading(p, extra, casts=0, answers=0):
    """Loads the weights, each through so many casts, and then answers."""
    extra(p, 0)
    with p.within(*LOADER):
        for i in range(320):
            p.free(*[p.alloc(MIB, 5, "load") for _ in range(casts)],
                   *[p.alloc(512, 6, "load")][:i % 2])
            p.alloc(MIB * (1 + i % 3), 7, "load")
    for _ in range(answers):
        p.free(p.alloc(4096, 9, "main"), p.forward(MIB / 4)[1])


def passing(p, extra, layers=48, **how):
    """One pass, whose end is not recorded."""
    extra(p, 0)
    p.build(layers)
    p.forward(MIB, layers, **how)


def naming(p, extra, layers=48):
    """One pass that marks its layers."""
    p.build(layers)
    for layer in range(layers):
        extra(p, layer)
        p.alloc(MIB, 50, "layer")
        p.free(p.alloc(9 * MIB, 51, "layer"))
        p.mark(f"layer_{layer}")


def one_step(p, extra, layers=48):
    """It also makes the optimizer's state."""
    p.build(layers)
    p.train(MIB / 4, layers)
    extra(p, 0)


def recurring(p, extra):
    """A recurrent network: its loop is inside of one call."""
    p.build(2)
    with p.within(*MODULE):
        for step in range(300):
            extra(p, step)
            p.free(p.alloc(MIB, 31, "cell"), p.alloc(4 * MIB, 32, "cell"))
            p.alloc(64 * KIB, 33, "cell")


def working(p, extra, rounds=99, size=MIB):
    """Rounds without a module."""
    for step in range(rounds):
        x = p.alloc(size, 30, "work")
        extra(p, step)
        p.free(x)


# -- what they do besides --


def nothing(_p, _step):
    pass


def keeps(size, every=1, since=0):
    def extra(p, step):
        if step >= since and step % every == 0:
            p.keep(size if size else p.random.randrange(KIB, MIB))
    return extra


def joins(size):
    """It replaces a block by one that is longer by so much."""
    def extra(p, step):
        p.keep(size * (step + 2))
        p.free(*p.kept[:-1])
        del p.kept[:-1]
    return extra


def calls(layers, sizes, work=0):
    """A pass of which each layer keeps blocks: for a graph, a traceback, a hook."""
    def extra(p, _step):
        with p.within(*MODULE):
            for _ in range(layers):
                with p.within(("model.py", "block", 30), *MODULE):
                    p.free(*[p.alloc(work, 50, "layer")] if work else [])
                    for i, size in enumerate(sizes):
                        p.alloc(size, 90 + i, "keep")
    return extra


def at_once(p, _step):
    for _ in range(400):
        p.keep(MIB)


def loads(p, step):
    p.keep(MIB * (1 + step % 3))


def by_length(p, _step):
    """A cache by the length of the request: as long as new ones come."""
    p.seen = getattr(p, "seen", set())
    if p.length not in p.seen:
        p.seen.add(p.length)
        p.keep(p.length ** 2)


def by_few_lengths(p, step):
    p.length //= 4
    by_length(p, step)


def caches(room):
    """It holds the last blocks."""
    def extra(p, _step):
        if len(p.kept) == room:
            p.free(p.kept.pop(0))
        p.keep(300_000)
    return extra


def fills(room):
    def extra(p, _step):
        if len(p.kept) < room:
            p.keep(300_000)
    return extra


def gathers(room):
    """It frees all when there are so many."""
    def extra(p, _step):
        if len(p.kept) == room:
            p.free(*p.kept)
            p.kept.clear()
        p.keep(300_000)
    return extra


BOTH, NEVER = (True, False), (False,)
# name, leaks, program, what it does besides, with marks or not, more; and the
# reason why a leak is not judged without marks, and that without stacks, too
PROGRAMS = [
    ("small blocks", True, training, keeps(512), BOTH, {}),
    ("steps that vary", True, varying, keeps(512), BOTH, {}),
    ("blocks that vary", True, training, keeps(0), BOTH, {}),
    ("every third step", True, training, keeps(4096, 3), BOTH, {"steps": 60}),
    ("every seventh step", True, training, keeps(4096, 7), BOTH, {"steps": 90}),
    ("half of the steps", True, training, keeps(65536, since=24), BOTH,
     {"steps": 60}),
    ("starts late", True, training, keeps(65536, since=70), BOTH,
     {"steps": 100}, "begins late"),
    ("a longer list", True, training, joins(4096), BOTH, {}, "is extended"),
    ("accumulation", True, training, keeps(65536), BOTH,
     {"steps": 20, "parts": 4}),
    ("with evaluation", True, training, keeps(65536), BOTH, {"evaluates": 8}),
    ("few steps", True, training, keeps(65536), (True,), {"steps": 12}),
    ("large blocks", True, training, keeps(20 * MIB), BOTH, {"steps": 30}),
    ("answers", True, serving, keeps(70_000), NEVER, {}),
    ("by length", True, serving, by_length, NEVER, {}),
    ("seldom", True, serving, keeps(70_000, 20), NEVER, {"requests": 600}),
    ("generated", True, generating, keeps(8192), NEVER, {}),
    ("few answers", True, generating, keeps(MIB), NEVER,
     {"requests": 16, "tokens": 150}),
    ("until the end", True, ending, keeps(70_000), NEVER, {}),
    ("sessions", True, remembering, nothing, NEVER, {}),
    ("a list", True, working, keeps(MIB / 2), NEVER, {}, None, "piles up"),
    ("a closure", True, serving, keeps(8 * MIB), NEVER, {"requests": 99}),
    ("a sum of losses", True, working, calls(6, [MIB / 8] * 4), NEVER, {}, None,
     "piles up"),
    ("a sum of losses beside", True, training, calls(6, [8192] * 4), NEVER,
     {"steps": 99}),
    ("hooks", True, serving, calls(6, [65536], MIB), NEVER, {"requests": 99}),
    ("a buffer", True, serving, joins(65536), NEVER, {"requests": 99}, None,
     "is extended"),
    ("tracebacks", True, serving, calls(1, [MIB / 8] * 4), NEVER, {"requests": 99}),
    ("tokens that are joined", False, serving, joins(8), NEVER, {}),
    ("a list at once", False, working, at_once, NEVER, {"rounds": 1}),
    ("own load", False, working, loads, NEVER, {"rounds": 320}),
    ("own pass", False, working, calls(1, [MIB / 2] * 4), NEVER, {"rounds": 48}),
    ("plain", False, training, nothing, BOTH, {}),
    ("varying", False, varying, nothing, BOTH, {}),
    ("accumulating", False, training, nothing, BOTH, {"parts": 4}),
    ("evaluating", False, training, nothing, BOTH, {"evaluates": 8}),
    ("fills early", False, training, fills(16), BOTH, {}),
    ("fills late", False, training, fills(32), BOTH, {}),
    ("fills at last", False, training, fills(34), BOTH, {}),
    ("short cache", False, training, caches(12), BOTH, {}),
    ("long cache", False, training, caches(24), BOTH, {"steps": 32}),
    ("short teeth", False, training, gathers(8), BOTH, {}),
    ("two teeth", False, training, gathers(20), BOTH, {}),
    ("long teeth", False, training, gathers(30), BOTH, {"steps": 90}),
    ("one step", False, one_step, nothing, BOTH, {}),
    ("few equal steps", False, training, nothing, BOTH, {"steps": 3}),
    ("server", False, serving, nothing, NEVER, {}),
    ("server with a cache", False, serving, caches(64), NEVER, {}),
    ("few lengths", False, serving, by_few_lengths, NEVER, {"requests": 2000}),
    ("one generation", False, generating, nothing, NEVER,
     {"requests": 1, "tokens": 300}),
    ("one generation, added", False, generating, nothing, NEVER,
     {"requests": 1, "tokens": 300, "extends": False}),
    ("one generation, in chunks", False, chunking, nothing, NEVER, {}),
    ("three generations", False, generating, nothing, NEVER,
     {"requests": 3, "tokens": 150}),
    ("generations", False, generating, nothing, NEVER, {}),
    ("generations, added", False, generating, nothing, NEVER,
     {"extends": False}),
    ("load", False, loading, nothing, NEVER, {}),
    ("load with a cast", False, loading, nothing, NEVER, {"casts": 2}),
    ("load with many", False, loading, nothing, NEVER, {"casts": 6}),
    ("load, answers", False, loading, nothing, NEVER,
     {"casts": 2, "answers": 3}),
    ("load, many answers", False, loading, nothing, NEVER, {"answers": 30}),
    ("forward pass", False, passing, nothing, NEVER, {"grad": True}),
    ("layers with names", False, naming, nothing, (True,), {}),
    ("prefill", False, passing, nothing, NEVER, {"cache": [], "share": 1}),
    ("prefill, few heads", False, passing, nothing, NEVER,
     {"cache": [], "layers": 80}),
    ("recurrent", False, recurring, nothing, NEVER, {}),
]


# In these no work is seen to repeat, so that they do not leak is not known.
ONCE = {"one step", "few equal steps", "load", "forward pass", "own load", "own pass",
        "a list at once"}


def made_fault(row, name, leaks, marks, stacks, reason, blind=None):
    """What is wrong with the answer, or None."""
    sites = {leak["function"] for leak in row["leaks"]}
    if not leaks and row["verdict"] == "leak":
        return "false alarm"
    if not leaks:
        return "not judged" if name in ONCE and row["verdict"] == "none" else None
    if not marks and (reason or not stacks):
        expected = {reason, *([] if stacks else [blind, "no stacks"])}
        return None if row["verdict"] == "unknown" and \
            row["reason"] in expected and sites else "not said"
    if row["verdict"] != "leak":
        return "missed"
    return "wrong site" if stacks and sites != {"keep"} else None


def check_programs(folder):
    path = os.path.join(folder, "made.pickle")
    for name, leaks, program, extra, marked, more, *reason in share(PROGRAMS):
        for marks in marked:
            for stacks in BOTH:
                p = Program(marks, stacks)
                program(p, extra, **more)
                p.write(path)
                row, = results("leaks", "-q", path)
                yield leaks, f"{name}, {marks=}, {stacks=}", made_fault(
                    row, name, leaks, marks, stacks, *(reason or [None]))


# -- recordings --

GROUPS = ("dev", "causes", "h100", "multi", "batch")
# The lines of the program of the recordings named leak*: the input that the
# graph keeps, the loss, and the hidden layer.
LEAK_LINES = {162, 163, 164}


def fact(path):
    """Whether the program leaks, and the function that does, if known."""
    known = {}
    with contextlib.suppress(FileNotFoundError), open(
            path.replace(".pickle.xz", ".json").replace(".cpp", ""),
            encoding="utf-8") as file:
        known = json.load(file)
    return known.get("leak") is True or os.path.basename(path).startswith("leak"), \
        known.get("site") if known.get("leak") else None


def recorded_fault(row, leaks, site):
    """A leak that is not seen is a fault, if the verdict is unknown, too."""
    if leaks != (row["verdict"] == "leak"):
        return "missed" if leaks else \
            "false alarm" if row["verdict"] == "leak" else None
    lines = {leak["line"] for leak in row["leaks"]}
    wrong = row["leaks"][0]["function"] != site if leaks and site else leaks and \
        row["has_stacks"] and (lines - LEAK_LINES or row["num_steps"] and
                               lines != LEAK_LINES)
    return "wrong site" if wrong else None


def pickles(*folder):
    return sorted(glob.glob(os.path.join(*folder, "*.pickle.xz")))


def check_recordings():
    found = [path for group in GROUPS for path in pickles(SHARED, "recorded", group)]
    if os.environ.get("FRAG_LEAKS"):
        found += pickles(os.environ["FRAG_LEAKS"])
    for path in share(found or pickles(BUNDLED)):
        leaks, site = fact(path)
        for row in results("leaks", "-q", path):
            yield leaks, os.path.basename(path), recorded_fault(row, leaks, site)


def check_without_marks(folder):
    """Nothing but the marks is taken away, so the truth is the same."""
    path = os.path.join(folder, "unmarked.pickle")
    for name in ("leak_frames", "leak", "multistream", "gpt2_train",
                 "lstm_varlen__cap_below"):
        with lzma.open(os.path.join(BUNDLED, name + ".pickle.xz")) as file:
            snapshot = dict(pickle.load(file), external_annotations=[])
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=2)
        row, = results("leaks", "-q", path)
        assert row["num_steps"] == 0 and (row["verdict"] == "leak") == (name == "leak_frames"), row
        assert name != "leak" or row["leaks"] and row["reason"] == "no stacks", row
        assert recorded_fault(row, row["verdict"] == "leak", None) is None, row


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_without_marks(folder)
        rows = [*check_recordings(), *check_programs(folder)]
    faults = [row for row in rows if row[2]]
    for fault in faults:
        print(*fault)
    leaks = sum(row[0] for row in rows)
    print(f"{leaks} recordings that leak, {len(rows) - leaks} that do not: "
          f"{len(faults)} errors")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

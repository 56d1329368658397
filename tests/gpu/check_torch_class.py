#!/usr/bin/env python3
"""check_torch_class.py: runs programs of PyTorch under real/torch/allocator.cpp,
on the stand-ins for CUDA's driver and runtime.

  same.py      the policy `torch` reports what PyTorch's own allocator reports
  features.py  every function of torch.cuda.memory works
  calls.py     a program that has its memory calls the driver no more often
  peers.py     access between devices that was enabled before use() holds
  ipc.py       another process reads and writes tensors of the program
  faults.py    a call of the driver that fails leads to an exception, at most
  captures.py  a capture stays valid while other threads request memory
  unfinished.py  after captures that fail the policy serves again
  snapshot.py  each byte of memory is in a snapshot once; its replay under the
               same policy reserves what the program did
  corners.py   use() comes late, forks, streams that end, checkpoints of pools
  exits.py     the program may end with live blocks and running threads

The test is skipped where no PyTorch for CUDA 13 is found: FRAG_TORCH_PYTHON is
the path of a Python that has it. Environment: FRAG_BUILD_DIR,
FRAG_TORCH_FAULTS=1 for a fault at each call and not at a sample of them.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, ROOT

STANDINS = os.path.join(BUILD, "dry")
PYTHON = os.environ.get("FRAG_TORCH_PYTHON", sys.executable)
POLICIES = ["torch", "best_fit", "expandable", "remap",
            "torch:expandable_segments:True"]
FAULTS = ["remap", "torch", "expandable", "torch:expandable_segments:True"]
# Both sides of a tensor in mapped memory: maps of equal sizes, which PyTorch's
# own allocator accepts, and of several sizes
MAPPED = [("remap", "native"), ("torch:expandable_segments:True", "remap"),
          ("remap", "torch"), ("native", "remap"),
          ("expandable", "torch")]
PAGES = ("segment_map", "segment_unmap")
EXPANDABLE = "expandable_segments:True"
EQUAL = 122  # counters of torch.cuda.memory_stats()
failures = []


def fail(text):
    failures.append(text)
    print(text, flush=True)


def skip(text):
    print(f"skipped: {text}")
    sys.exit(77)


def run(folder, program, *arguments, timeout=200, **settings):
    env = dict(os.environ, LD_LIBRARY_PATH=STANDINS, FRAGSIM_DRY_LEAKS="1",
               LD_PRELOAD=os.path.join(STANDINS, "13", "libcudart.so.13"),
               FRAGSIM_TORCH_LIBRARY=os.path.join(BUILD, "libfragsim_torch.so"),
               FRAGSIM_TORCH_CACHE=folder,
               PYTHONPATH=os.path.join(ROOT, "real", "torch"),
               PYTHONDONTWRITEBYTECODE="1")
    env.update({key: str(value) for key, value in settings.items()})
    try:
        return subprocess.run(
            [PYTHON, os.path.join(ROOT, "tests", "gpu", "torch", program), *arguments],
            env=env, text=True, capture_output=True, check=False,
            timeout=timeout)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([program], 124, "", "it hangs")


def needs():
    if not os.path.exists(os.path.join(STANDINS, "13", "libcudart.so.13")):
        skip("the headers of CUDA 13 were not found when this was built")
    env = dict(os.environ, LD_LIBRARY_PATH=STANDINS,
               LD_PRELOAD=os.path.join(STANDINS, "13", "libcudart.so.13"))
    found = subprocess.run(
        [PYTHON, "-c", "import torch; print(torch.version.cuda, "
         "torch.__version__)"], env=env, text=True, capture_output=True,
        check=False).stdout.split()
    if not found or not found[0].startswith("13."):
        skip(f"{PYTHON} has no PyTorch for CUDA 13; set FRAG_TORCH_PYTHON")
    if not found[1].startswith("2.11"):
        skip(f"the class is for PyTorch 2.11, found {found[1]}")


def settled(entries):
    """Neighbouring completed frees in any order: PyTorch goes through the
    streams, fragsim through the frees. Neighbouring maps, and unmaps, as one:
    fragsim reports each page."""
    out, late = [], []
    for entry in [*entries, ["end", 0]]:
        if entry[0] == "free_completed":
            late.append(entry)
            continue
        out += sorted(late)
        late = []
        if entry[0] in PAGES and out and out[-1][0] == entry[0]:
            out[-1] = [entry[0], out[-1][1] + entry[1]]
        else:
            out.append(entry)
    return out


def plain(report):
    """PyTorch leaves the last requested size in a free block."""
    if isinstance(report, dict):
        return report
    return [row[:5] + [[[b[0], b[1] if b[2] != "inactive" else 0, b[2]]
                        for b in row[5]]] if len(row) == 6 and
            isinstance(row[5], list) else row for row in report]


def by_order(key):
    """Counters of the gaps that depend on which of several late frees completes
    first: PyTorch goes through the streams, fragsim through the frees."""
    return key.startswith("inactive_split") and not key.endswith("current")


def by_page(key):
    """Counters of calls, each of which has several pages in PyTorch."""
    return key in ("num_device_alloc", "num_device_free")


def same(folder, lazy, conf=""):
    """lazy: work ends only when the program waits, so all frees of blocks that
    other streams use are late, and a policy may release their segments before
    it reports them."""
    native = run(folder, "same.py", "native", FRAGSIM_DRY_LAZY=lazy,
                 PYTORCH_CUDA_ALLOC_CONF=conf)
    ours = run(folder, "same.py", "torch:" + conf if conf else "torch",
               FRAGSIM_DRY_LAZY=lazy)
    if native.returncode or ours.returncode:
        fail(f"same.py: {native.stderr[-500:]}{ours.stderr[-500:]}")
        return
    a, b = json.loads(native.stdout), json.loads(ours.stdout)
    counters = [r for r in a["reports"] if isinstance(r, dict)]
    if len(counters[0]) != EQUAL + 1 or len(a["history"]) < 1000:
        fail(f"same.py: {len(counters[0])} counters")
    differ = collections.Counter()
    for x, y in zip(a["reports"], b["reports"]):
        if isinstance(x, dict):
            differ.update(key for key in x if x[key] != y.get(key)
                          and not (lazy and by_order(key))
                          and not (conf and by_page(key)))
        elif sorted(plain(x)) != sorted(plain(y)):
            differ["segments and blocks, or a refusal"] += 1
    if not lazy and settled(a["history"]) != settled(b["history"]):
        differ["history"] += 1
    if a["seen"] != b["seen"] or len(a["seen"]) != 3:
        differ["what the observer saw"] += 1
    for key, times in differ.items():
        fail(f"same.py, lazy {lazy}, {conf}: {key} differs from PyTorch's {times} times")


def features(folder, policy):
    done = run(folder, "features.py", policy, FRAGSIM_DRY_DEVICES=2)
    if done.returncode or "OK" not in done.stderr:
        fail(f"features.py {policy}: exit {done.returncode}: "
             f"{done.stderr[-3000:]}")


def calls(folder):
    natives = [json.loads(run(folder, "calls.py", "native",
                              PYTORCH_CUDA_ALLOC_CONF=conf).stdout)
               for conf in ("", "expandable_segments:True")]
    if not natives[0]["several"]["cuEventRecord"]:
        fail(f"calls.py native: {natives[0]}")
    for policy in ("torch", "expandable", "torch:expandable_segments:True"):
        native = natives["expandable" in policy]
        ours = json.loads(run(folder, "calls.py", policy).stdout)
        for scene, names in native.items():
            more = {name: f"{ours[scene][name]}, native {count}"
                    for name, count in names.items()
                    if ours[scene][name] > count
                    # Its context is not the one of the runtime.
                    and (name != "cuCtxPushCurrent_v2" or scene == "one")
                    # It waits for the device, PyTorch for each of its events.
                    and (name != "cuCtxSynchronize" or scene != "refused")}
            if more:
                fail(f"calls.py {policy}, {scene}: {more}")


def peers(folder):
    for policy in ("torch", "remap"):
        done = run(folder, "peers.py", policy, FRAGSIM_DRY_DEVICES=3)
        if done.returncode or done.stdout != "True\n":
            fail(f"peers.py {policy}: exit {done.returncode}: "
                 f"{done.stderr[-800:]}")


def ipc(folder):
    native = run(folder, "ipc.py", "native").stdout
    if not native.startswith("0 66 "):
        fail(f"ipc.py native: {native}")
    for policy in ("torch", "best_fit"):
        text = run(folder, "ipc.py", policy).stdout
        if not text.startswith("0 66 ") or (policy == "torch" and
                                            text != native):
            fail(f"ipc.py {policy}: {text}, native {native}")
    done = run(folder, "ipc.py", "remap", FRAGSIM_DRY_SHARES=0)
    if "cannot be shared with another process: cuMemExp" not in done.stdout:
        fail(f"ipc.py without shareable memory: {done.stdout}{done.stderr}")
    for sides in MAPPED:
        done = run(folder, "ipc.py", *sides,
                   PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
                   if sides[0] == "native" else "")
        if done.returncode or "fragsim dry" in done.stderr:
            fail(f"ipc.py {sides}: exit {done.returncode}: "
                 f"{done.stderr[-1500:]}")


def faults(folder):
    calls = os.path.join(folder, "calls")
    every = os.environ.get("FRAG_TORCH_FAULTS")
    for policy in FAULTS if every else FAULTS[:3]:
        done = run(folder, "faults.py", policy, FRAGSIM_DRY_CALLS=calls)
        if done.returncode or done.stdout.strip() != "1":
            fail(f"faults.py {policy}: {done.stdout}{done.stderr[-500:]}")
            return
        with open(calls, encoding="ascii") as file:
            count = int(file.read())
        # Every call takes minutes; the sample has early and late ones.
        step = 1 if every else count // 12
        ats = range(1, count + 1, step)
        done = run(folder, "faults.py", policy,
                   *(f"{at}:{(2, 999)[at // step % 2]}" for at in ats),
                   timeout=10 * len(ats) + 100)
        if done.returncode or done.stdout:
            fail(f"faults.py {policy}: exit {done.returncode}: {done.stdout}"
                 f"{done.stderr[-800:]}")


def captures(folder):
    for policy in ("remap", "torch:expandable_segments:True"):
        done = run(folder, "captures.py", policy, FRAGSIM_DRY_WAIT_US=1000)
        if done.returncode or done.stdout != "none 0 0\n":
            fail(f"captures.py {policy}: {done.stdout}{done.stderr[-800:]}")
    done = run(folder, "unfinished.py", "remap")
    if done.returncode or done.stdout != "ok\n":
        fail(f"unfinished.py: {done.stdout}{done.stderr[-800:]}")


def snapshots(folder):
    path = os.path.join(folder, "snapshot.pickle")
    for policy, replayed in (("remap", "remap"), ("stitch", "stitch"),
                             ("torch", "torch"), (POLICIES[-1], POLICIES[-1])):
        done = run(folder, "snapshot.py", policy, path)
        if done.returncode:
            fail(f"snapshot.py {policy}: {done.stderr[-800:]}")
            continue
        tool = subprocess.run(
            [os.environ.get("FRAGSIM", os.path.join(BUILD, "fragsim")),
             "replay", "-q", "-p", replayed, "--json=-", path], text=True,
            capture_output=True, check=False)
        row = json.loads(tool.stdout or '{"results": [{}]}')["results"][0]
        found = [row.get(k) for k in ("peak_reserved_bytes",
                                      "end_reserved_bytes")]
        if found != [int(n) for n in done.stdout.split()]:
            fail(f"snapshot.py {policy}: {done.stdout}, replay {found} "
                 f"{tool.stderr[-300:]}")


def corners(folder):
    for policy in ("torch", "remap"):
        done = run(folder, "corners.py", policy, FRAGSIM_DRY_LAZY=1)
        if done.returncode or "OK" not in done.stderr:
            fail(f"corners.py {policy}: exit {done.returncode}: "
                 f"{done.stderr[-3000:]}")


def exits(folder):
    for output in ("", os.path.join(folder, "out.h5")):
        done = run(folder, "exits.py", "remap", FRAGSIM_OUTPUT=output)
        if done.returncode or done.stdout != "the end\n":
            fail(f"exits.py: exit {done.returncode}: {done.stderr[-800:]}")


def builds(folder):
    """A compiler whose code cannot be used is refused in words, and the next one
    is tried."""
    bad = os.path.join(folder, "c++")
    with open(bad, "w", encoding="utf-8") as file:  # its code fails the probe
        file.write("#!/bin/sh\nexec /usr/bin/g++ -Dfrag_torch_probe=x \"$@\"\n")
    os.chmod(bad, 0o755)
    done = run(os.path.join(folder, "empty"), "build.py", CXX=bad)
    if "ends a process that uses the code of" not in done.stdout:
        fail(f"a bad compiler: {done.stdout} {done.stderr}")
    done = run(os.path.join(folder, "empty"), "build.py", CXX="",
               PATH=f"{folder}:{os.environ['PATH']}")
    if "allocator-" not in done.stdout:
        fail(f"the next compiler: {done.stdout} {done.stderr}")


def main():
    needs()
    with tempfile.TemporaryDirectory() as folder:
        same(folder, 0)
        same(folder, 1)
        same(folder, 0, EXPANDABLE)
        same(folder, 1, EXPANDABLE)
        if failures: # most likely the class was not compiled
            sys.exit("check_torch_class: same.py failed; no other program ran")
        for policy in ["native", *POLICIES]:
            features(folder, policy)
        calls(folder)
        peers(folder)
        ipc(folder)
        captures(folder)
        snapshots(folder)
        corners(folder)
        exits(folder)
        faults(folder)
        builds(folder)
    if failures:
        sys.exit(f"check_torch_class: {len(failures)} wrong")


main()

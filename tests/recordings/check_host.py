#!/usr/bin/env python3
"""check_host.py: the policy torch_host against PyTorch's own allocator of pinned
memory, release by release, and against the waste that public reports measured.
The snapshots host_* in traces/bundled/releases were written by random scripts
on that allocator (tests/gpu/releases/host_scripts.py); each must be exact.

With FRAG_TORCH_RELEASES, a folder with an environment of Python for each
release (env-2.15.0, made by `fragsim dry --setup env-2.15.0 -- torch==2.15.0`),
the programs are run too: FRAG_TORCH_CHUNKS snapshots of each (default 1).
Environment: FRAGSIM, FRAG_BUILD_DIR.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import harness  # noqa: E402

KEPT = os.path.join(harness.BUNDLED, "releases")
sys.path.insert(0, os.path.join(harness.ROOT, "tests", "gpu", "releases"))
import host_scripts  # noqa: E402

HOST = 0xffffffff  # the number of the device
GIB = 1 << 30
# name: the sizes that were requested and the bytes that were pinned for them
REPORTS = {
    "vllm#53042, --kv-offloading-size": ([2053 * 1089536] * 24, 96 * GIB),
    "vllm-backport#67, an expert": ([9 * GIB // 4], 4 * GIB),
    "vllm-backport#67, half of one": ([9 * GIB // 8], 2 * GIB),
    "sglang#36562, routing replay": ([int(20.4 * GIB)], 1 << 35),
    "vllm#48436, 80 GiB for two": ([40 * GIB] * 2, 128 * GIB),
    "vllm#50094, three sizes": ([6 * GIB, 10 * GIB, 12 * GIB], 40 * GIB),
    "sglang-rtxpro6000#20, a table": ([int(47.7 * GIB)], 64 * GIB),
}


def check_reports(folder):
    """Each report's waste; and none with the threshold of 2.13."""
    path = os.path.join(folder, "report.csv")
    for name, (sizes, pinned) in REPORTS.items():
        with open(path, "w", encoding="ascii") as file:
            file.write("op,id,bytes\n" + "".join(
                f"alloc,{i},{size}\n" for i, size in enumerate(sizes)))
        rows = json.loads(harness.output(
            "replay", path, "-q", "--json", "-", "-p", "torch_host", "-p",
            "torch_host:pinned_max_round_threshold_mb:1"))["results"]
        peaks = [row["peak_reserved_bytes"] for row in rows]
        assert peaks == [pinned, sum(sizes)], (name, peaks)
        print(f"{name}: {sum(sizes) / GIB:.2f} GiB requested, "
              f"{pinned / GIB:.0f} GiB pinned, {pinned / sum(sizes):.2f} times")


def judged(paths):
    """Numbers of the host's devices: exact snapshots, segment events and
    addresses, each of those that were recorded."""
    rows = json.loads(harness.output("validate", *paths, "-q", "--json", "-",
                                     code=None))["results"]
    rows = [row for row in rows if row["device"] == HOST]
    faults = [(row["trace"], row["first_divergence"]) for row in rows
              if not row["exact"]]
    assert len(rows) == len(paths) and not faults, faults
    return [sum(row[key] for row in rows) for key in
            ("segment_events_matched", "segment_events", "addresses_matched",
             "allocs")]


def check_kept():
    paths = sorted(glob.glob(os.path.join(KEPT, "host_*.pickle.xz")))
    assert len(paths) >= 5, paths
    print(f"{len(paths)} kept snapshots are exact: segment events %d of %d, "
          "addresses %d of %d" % tuple(judged(paths)))


def check_answers():
    """Commands say that the memory is the host's, and which setting helps."""
    path = os.path.join(KEPT, "host_weights_2_15_0.pickle.xz")
    setting = "pinned_max_round_threshold_mb:1"
    for words, expected in {
            ("explain",): "pinned host memory, not memory of a GPU: 1.422 GiB "
            "is needed, 1.59 times the 917.38 MiB",
            ("summary",): "538.62 MiB by rounding to powers of two",
            ("fit",): "1526726656",
            ("tune",): f"export PYTORCH_CUDA_ALLOC_CONF='{setting}'",
            ("top", "--device", "host"): "host memory, event 24 (peak): 25 "
            "blocks hold 917.38 MiB",
            ("info",): "\nhost memory\n"}.items():
        out = harness.output(words[0], path, *words[1:], "-q")
        assert expected in out, (words, out)
    answer = json.loads(harness.output("explain", path, "-q", "--json", "-"))
    tried = {row["setting"]: row["peak_reserved_bytes"]
             for row in answer["results"][0]["tried"]}
    assert tried[setting] == answer["results"][0]["peak_requested_bytes"], tried
    harness.run("info", path, "--device", "0", code=2)


PROGRAM = """
import torch
kept = torch.empty(5000000, dtype=torch.uint8, pin_memory=True)
del kept
kept = [torch.empty(300000, dtype=torch.uint8, pin_memory=True).cuda()
        for _ in range(3)]
"""


def check_dry(python, release, folder):
    """The most that a process pins, and in the snapshot the host's requests."""
    path = os.path.join(folder, "dry.py")
    with open(path, "w", encoding="ascii") as file:
        file.write(PROGRAM)
    trace = os.path.join(folder, "dry.pickle")
    done = harness.run("dry", "-q", "--json", "-", "-o", trace, "--", python,
                       path)
    answer = json.loads(done.stdout)["results"][0]
    assert answer["pinned_bytes"] == (8 << 20) + (1 << 19), answer
    if int(release.split(".")[1]) >= 14:
        out = harness.output("replay", trace, "-q", "--device", "host", "--json",
                             "-")
        row = json.loads(out)["results"][0]
        assert row["peak_reserved_bytes"] == answer["pinned_bytes"], row


def run_programs(python, folder):
    release = python.split("/")[-3].split("-")[1]
    cuda = "12" if int(release.split(".")[1]) < 10 else "13"
    env = dict(os.environ, FRAGSIM_DRY_MEMORY="32768", LD_LIBRARY_PATH=":".join(
        os.path.join(harness.BUILD, "dry", name) for name in ("", cuda)))
    for kind in host_scripts.KINDS:
        subprocess.run([python, host_scripts.__file__, os.path.join(folder, kind),
                        kind, os.environ.get("FRAG_TORCH_CHUNKS", "1"), "400",
                        "1"], env=env, check=True, stderr=subprocess.DEVNULL)
    check_dry(python, release, folder)
    paths = glob.glob(os.path.join(folder, "*", "*.pickle"))
    kinds = {os.path.dirname(path) for path in paths}
    print(f"{release}: {len(paths)} snapshots of {len(kinds)} programs exact: "
          "segment events %d of %d, addresses %d of %d" % tuple(judged(paths)),
          flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_reports(folder)
    check_kept()
    check_answers()
    found = sorted(glob.glob(os.path.join(
        os.environ.get("FRAG_TORCH_RELEASES", "/nonexistent"), "env-*", "bin",
        "python")))
    if not found:
        print("FRAG_TORCH_RELEASES names no environments: no program was run")
    for python in found:
        with tempfile.TemporaryDirectory() as folder:
            run_programs(python, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

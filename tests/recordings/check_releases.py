#!/usr/bin/env python3
"""check_releases.py: the torch policy against PyTorch's own libraries, release by
release. The snapshots in traces/bundled/releases were written by random scripts
on those libraries (tests/gpu/releases/scripts.py), and each must be exact: ties_*
have requests for which free blocks of equal size compete, of which 2.11 takes
another one; expandable_32_* has pages of 32 MiB; private_* has a MemPool, whose
counters are compared; the others are named after a kind of scripts.py.

With FRAG_TORCH_RELEASES, a folder with an environment of Python for each
release (env-2.15.0, made by `fragsim dry --setup env-2.15.0 -- torch==2.15.0`),
new scripts are run too, of each kind: FRAG_TORCH_SCRIPTS of 200 calls for each
release (default 300). Two things are compared: the snapshot with a replay of its
own requests, to the last address and counter (validate), and the counters with a
replay of the requests of the scripts, refused ones included. A release before
2.12 does not record pools, so its pools are not judged.

Environment: FRAGSIM, FRAG_BUILD_DIR; FRAG_TORCH_ONLY, a release; FRAG_TORCH_KINDS,
kinds with commas; FRAG_TORCH_SEED.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "gpu",
                                "releases"))
import harness  # noqa: E402
import scripts  # noqa: E402

KEPT = os.path.join(harness.ROOT, "traces", "bundled", "releases")
# A request that another pool serves on OOM is recorded as one of that pool, so
# the attempts before it cannot be seen. Whether a retry, or empty_cache or the
# end of a pool, returned memory right before a request cannot always be seen,
# and a request that throw_on_cudamalloc_oom rejects is not recorded.
UNSEEN = {"use_on_oom": "num_sync_all_streams", "ended": "num_alloc_retries",
          "pools": "num_alloc_retries", "throw": "num_alloc_retries",
          "no_split": "num_alloc_retries",
          "ended_limit": "num_alloc_retries"}
# Before 2.10, a fraction of 1 is a limit, and whether the limit or the driver
# refused is not seen.
UNSEEN_BEFORE_10 = {"changes_full": "num_alloc_retries", **UNSEEN}
# The first release that records pools, and that chooses between free blocks of
# equal size without regard to their addresses in the recorded process.
FIRST_WITH_POOLS = FIRST_WITHOUT_ADDRESSES = 12
BATCH = 400  # processes whose snapshots are kept at a time


def differing(paths):
    """The snapshots that are not exact, with their first difference."""
    done = subprocess.run([harness.FRAGSIM, "validate", *paths], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    judged = re.findall(r"^.*, (?:device 0|host memory): ", done.stdout, re.M)
    assert len(judged) >= len(paths), f"{len(judged)} of {len(paths)} judged"
    faults = re.findall(r"^(.*?), device 0: DIFFERS.*\n(.*)\n *(.*)", done.stdout,
                        re.M)
    # Without an OOM or a limit, that a full device refused is not seen.
    return [(path, first) for path, sums, first in faults
            if "OOMs 0 of 0" not in sums or "num_alloc_retries" not in first]


def check_counters(path):
    """The counters that later releases added are compared."""
    with open(path.replace(".pickle.xz", ".json"), encoding="ascii") as file:
        recorded = json.load(file)["stats"]
    new = {name for name in recorded
           if name.startswith(("num_oom_rej", "reserved_bytes_by_private"))}
    row = harness.results("validate", path, "-q")[0]
    assert new <= {stat["name"] for stat in row["stats"]}, (path, new)
    return len(new)


def check_export(path):
    """A snapshot that fragsim writes is read by the rules of the release, if the
    memory of the device is known, which decides how much a segment reserves."""
    with open(path.replace(".pickle.xz", ".json"), encoding="ascii") as file:
        said = {"stats": {}, **{key: value for key, value in json.load(file).items()
                                if key in ("total_memory", "cap")}}
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.pickle")
        with open(os.path.join(folder, "copy.json"), "w", encoding="ascii") as file:
            json.dump(said, file)
        for policy in [], ["-p", "torch@recorded"]:
            harness.run("export", "-q", path, "--to", "snapshot", "-f", "-o", copy,
                        *policy)
            assert not differing([copy]), (path, policy)


def check_kept():
    paths = sorted(glob.glob(os.path.join(KEPT, "*.pickle.xz")))
    assert len(paths) >= 3, paths
    faults = differing(paths)
    assert not faults, faults
    of_gpus = [path for path in paths
               if not os.path.basename(path).startswith("host_")]
    assert max(map(check_counters, of_gpus)) >= 13
    for path in of_gpus:
        check_export(path)
    return len(paths)


def requests_differ(path, release):
    """Whether a replay of the requests has other counters; None: they were not
    written."""
    log = path.replace(".pickle", ".csv")
    if not os.path.exists(log):
        return None
    with open(path.replace(".pickle", ".json"), encoding="ascii") as file:
        said = json.load(file)
    stats, cap = said["stats"], said.get("cap", said["total_memory"])
    bound = [] if not cap else \
        ["--process-limit" if "cap" in said else "-c", f"{cap}"]
    done = subprocess.run(
        [harness.FRAGSIM, "replay", "-q", log, "--json", "-", "--total",
         f"{said['total_memory']}", *bound, "-p",
         f"torch@{release}:" + said["conf"]], check=True,
        stdout=subprocess.PIPE, text=True)
    row = json.loads(done.stdout)["results"][0]
    found = (row["peak_reserved_bytes"], row["num_ooms"])
    wanted = (stats["reserved_bytes.all.peak"],
              stats["num_ooms"] + stats.get("num_oom_rejections", 0))
    return found != wanted and (path, said["conf"], found, wanted)


def run_kind(python, release, kind, count):
    """Runs the scripts of a kind; returns the numbers of scripts, of requests
    replayed, and the differences."""
    chunks, each = min(13, max(1, count // 20)), 0
    if kind.startswith("changes"):  # of which a failed cudaFree ends a process
        chunks, each = -(-count // 10), 10
    each = each or -(-count // chunks)
    env = dict(os.environ,
               FRAGSIM_DRY_MEMORY="2048" if kind in scripts.SMALL else "32768",
               LD_LIBRARY_PATH=":".join(
                   os.path.join(harness.BUILD, "dry", name)
                   for name in ("", cuda_of(python))))
    ran, asked, faults = 0, 0, []
    for first in range(0, chunks, BATCH):
        with tempfile.TemporaryDirectory(suffix=release) as folder:
            subprocess.run([python, "-W", "ignore", scripts.__file__, folder, kind,
                            f"{first}", f"{min(BATCH, chunks - first)}", f"{each}",
                            "200", os.environ.get("FRAG_TORCH_SEED", "1")],
                           env=env, check=True, stderr=subprocess.DEVNULL)
            found = judge(glob.glob(os.path.join(folder, "*.pickle")), release,
                          kind)
        ran, asked, faults = ran + found[0], asked + found[1], faults + found[2]
    return ran, asked, faults


def judge(paths, release, kind):
    """The numbers of scripts and of requests replayed, and the differences."""
    assert paths, (release, kind)
    unseen = UNSEEN if int(release.split(".")[1]) >= 10 else UNSEEN_BEFORE_10
    faults = [fault for fault in differing(paths)
              if kind not in unseen or unseen[kind] not in fault[1]]
    asked = [requests_differ(path, release) for path in paths
             if int(release.split(".")[1]) >= FIRST_WITHOUT_ADDRESSES]
    return sum(map(scripts_of, paths)), sum(one is not None for one in asked), \
        faults + [one for one in asked if one]


def scripts_of(path):
    """The number of scripts in a snapshot."""
    with open(path.replace(".pickle", ".json"), encoding="ascii") as file:
        return json.load(file)["scripts"]


def cuda_of(python):
    """The first number of the CUDA that a PyTorch was built for."""
    pattern = os.path.join(os.path.dirname(python), "..", "lib", "python*",
                           "site-packages", "torch", "version.py")
    with open(glob.glob(pattern)[0], encoding="utf-8") as file:
        return re.search(r"^cuda\b[^=]*= *'(\d+)", file.read(), re.M).group(1)


def check_release(python, release):
    minor = int(release.split(".")[1])
    kinds = [kind for kind in scripts.KINDS
             if minor >= FIRST_WITH_POOLS or not scripts.KINDS[kind][4]]
    kinds = [kind for kind in kinds
             if minor >= scripts.SINCE.get(kind, 0) and
             kind in os.environ.get("FRAG_TORCH_KINDS", kind).split(",")]
    share = int(os.environ.get("FRAG_TORCH_SCRIPTS", "300")) / len(scripts.KINDS)
    failed = 0
    for kind in kinds:
        begin = time.time()
        ran, asked, faults = run_kind(python, release, kind, int(share) or 1)
        print(f"PyTorch {release}, {kind}: {ran} scripts, {asked} files of "
              f"requests, {len(faults)} differ, {time.time() - begin:.0f} s",
              *faults[:3], sep="\n  ", flush=True)
        failed += len(faults)
    return failed


def main():
    print(f"{check_kept()} kept snapshots are exact")
    pattern = os.path.join(os.environ.get("FRAG_TORCH_RELEASES", "/nonexistent"),
                           "env-*", "bin", "python")
    pythons = sorted(glob.glob(pattern))
    if not pythons:
        print("new scripts were not run: FRAG_TORCH_RELEASES names no folder "
              "with environments of PyTorch")
    failed = 0
    for python in pythons:
        release = python.split("/")[-3].replace("env-", "")
        if os.environ.get("FRAG_TORCH_ONLY", release) == release:
            failed += check_release(python, release)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

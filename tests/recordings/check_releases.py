#!/usr/bin/env python3
"""check_releases.py: the torch policy against PyTorch's own libraries, release by
release. The snapshots in traces/bundled/releases were written by random scripts
on those libraries (tests/gpu/releases/scripts.py), and each must be exact: ties_*
have requests for which free blocks of equal size compete, of which 2.11 takes
another one; expandable_32_* has pages of 32 MiB.

With FRAG_TORCH_RELEASES, a folder with an environment of Python for each
release (env-2.15.0, made by `fragsim dry --setup env-2.15.0 -- torch==2.15.0`),
new scripts are run too: FRAG_TORCH_CHUNKS snapshots of each kind (default 3).
Environment: FRAGSIM, FRAG_BUILD_DIR.
"""
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import harness  # noqa: E402

KEPT = os.path.join(harness.ROOT, "traces", "bundled", "releases")
SCRIPTS = os.path.join(harness.ROOT, "tests", "gpu", "releases", "scripts.py")
KINDS = ["plain", "expandable", "streams", "limit"]


def differing(paths):
    """The snapshots that are not exact, with the first words about them."""
    done = subprocess.run([harness.FRAGSIM, "validate", *paths], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    return [line for line in done.stdout.split("\n") if "DIFFERS" in line]


def check_kept():
    paths = sorted(glob.glob(os.path.join(KEPT, "*.pickle.xz")))
    assert len(paths) >= 3, paths
    faults = differing(paths)
    assert not faults, faults
    return len(paths)


def check_release(python, folder):
    env = dict(os.environ, FRAGSIM_DRY_MEMORY="32768", LD_LIBRARY_PATH=":".join(
        os.path.join(harness.BUILD, "dry", name) for name in ("", "13")))
    chunks = os.environ.get("FRAG_TORCH_CHUNKS", "3")
    for kind in KINDS:
        out = os.path.join(folder, kind)
        subprocess.run([python, SCRIPTS, out, kind, chunks, "20", "200", "1"],
                       env=env, check=True, stderr=subprocess.DEVNULL)
        paths = glob.glob(os.path.join(out, "*.pickle"))
        faults = differing(paths)
        assert len(paths) == int(chunks) and not faults, (python, kind, faults)
        print(f"{os.path.basename(folder)}, {kind}: {len(paths)} exact")


def main():
    print(f"{check_kept()} kept snapshots are exact")
    pattern = os.path.join(os.environ.get("FRAG_TORCH_RELEASES", "/nonexistent"),
                           "env-*", "bin", "python")
    for python in sorted(glob.glob(pattern)):
        release = python.split("/")[-3]
        with tempfile.TemporaryDirectory(suffix=release) as folder:
            check_release(python, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

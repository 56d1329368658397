#!/usr/bin/env python3
"""check_dry_cudnn.py: checks the stand-in for cuDNN of real/dry/cudnn/.

tests/gpu/dry/cudnn.py calls it above a small library that stands for the wheel's own
cuDNN (tests/gpu/dry/ask_cudnn.c), and compares its sizes with what a GPU said. With
FRAG_DRY_PYTHON, a Python that has PyTorch for CUDA 13, programs of the real
PyTorch run on the wheel's cuDNN too, and are compared with recordings on a GPU.
Environment: FRAGSIM, FRAG_BUILD_DIR, FRAG_SHARED_DIR, FRAG_DRY_PYTHON.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM, ROOT

SCENES = os.path.join(ROOT, "tests", "gpu", "dry", "cudnn.py")
BELOW = os.path.join(BUILD, "tests", "dry", "libcudnn_below.so")
RECORDED = ("lstm_varlen", "unet_multires", "resnet_varres", "llama_fixed")
PEAKS = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")


def scene(name, folder, below=BELOW, gpu="h200", version="91900"):
    """What it found, its lines on stderr, and the notes of the stand-in."""
    notes = os.path.join(folder, "notes")
    env = {**os.environ, "FRAG_BUILD_DIR": BUILD, "FRAGSIM_DRY_CUDNN": below,
           "DRY_CUDNN_VERSION": version, "FRAGSIM_DRY_GPU": gpu, "FRAGSIM_DRY_NOTES": notes,
           "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, SCENES, name], env=env, text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, (name, done.stdout, done.stderr)
    with open(notes, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    return json.loads(done.stdout), done.stderr, sorted(lines)


def check_sizes(folder):
    """All sizes are what the GPU said, and the plans change what the library
    said without a device where that was not it."""
    found, _, notes = scene("convolutions", folder)
    assert "guess" not in [note[0] for note in notes], notes
    wrong = [row for row in found if row[1] != row[2]]
    assert len(found) == 75 and not wrong, wrong
    assert sum(alone != gpu for alone, gpu, _ in found) == 48, found
    for name, rows in (("networks", 49), ("persistent", 5), ("parameters", 21),
                       ("normalizations", 16), ("losses", 5)):
        found, _, _ = scene(name, folder)
        assert len(found) == rows, (name, len(found))
        assert all(said == own for said, own in found), (name, found)


def check_notes(folder):
    """What is not known is named, and so is another GPU and a missing cuDNN."""
    code, said, notes = scene("unknown", folder)
    lacking = "cudnnGetConvolutionForwardWorkspaceSize"
    assert code == 3000 and lacking in said, (code, said)
    assert [(kind, count, name.split("(")[-1]) for kind, count, name in notes] \
        == [("guess", "3", "the fastest plan of cuDNN, which "
                           "torch.backends.cudnn.benchmark looks for"),
            ("lacks", "1", lacking),
            ("size", "1", "0 or 512 bytes)"),
            ("size", "2", "up to 17 MB more)")], notes
    _, _, notes = scene("handles", folder, gpu="t4")
    assert notes == [["size", "1", "cuDNN's workspaces: they are those of an "
                                   "H200"]], notes
    found, _, notes = scene("handles", folder, version="92001")
    assert found[1] == 92001 and notes == [
        ["size", "1", "cuDNN's workspaces: the formulas are those of 9.19"]], \
        notes
    missing = os.path.join(folder, "no-such-cudnn.so.9")
    codes, said, notes = scene("absent", folder, below=missing)
    assert codes == [1001] * 4 and missing in said, (codes, said)
    assert len(notes) == 1 and notes[0][:2] == ["lacks", "1"], notes


def check_recorded(python, shared, folder):
    """The peaks are those on a GPU, to the byte; of programs without 1x1
    convolutions and without all their tiles measured, the entries too."""
    for name in RECORDED:
        env = {k: v for k, v in os.environ.items() if k != "FRAGSIM_DRY_CUDNN"}
        done = subprocess.run(
            [FRAGSIM, "dry", "--gpu", "h200", "--", python,
             os.path.join(shared, "oracle", "record.py"), name, folder],
            env=env, text=True, capture_output=True, check=False, timeout=600)
        assert done.returncode == 0, (name, done.stdout, done.stderr)
        runs = []
        for at in (folder, os.path.join(shared, "recorded", "dev")):
            with open(os.path.join(at, name + ".json"), encoding="utf-8") as f:
                runs.append(json.load(f))
        dry, gpu = runs
        for peak in PEAKS:
            assert dry["stats"][peak] == gpu["stats"][peak], (name, peak, dry)
        if name != "resnet_varres":
            assert dry["actions"] == gpu["actions"], (name, dry["actions"])


def main():
    if not os.path.exists(BELOW):
        print(f"check_dry_cudnn: no stand-ins in {BUILD}; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        found, _, notes = scene("handles", folder)
        assert found == [4711, 91900] and not notes, (found, notes)
        check_sizes(folder)
        check_notes(folder)
        python = os.environ.get("FRAG_DRY_PYTHON")
        shared = os.environ.get("FRAG_SHARED_DIR",
                                os.path.join(ROOT, "..", "shared"))
        if python and os.path.isdir(os.path.join(shared, "recorded")):
            check_recorded(python, shared, folder)
            print("programs of the real PyTorch: peaks as on the GPU")
        else:
            print("the real PyTorch was not run: FRAG_DRY_PYTHON names no "
                  "Python, or there are no recordings")
    return 0


if __name__ == "__main__":
    sys.exit(main())

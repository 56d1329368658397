#!/usr/bin/env python3
"""check_dry_setup.py: checks that `fragsim dry --setup` has pip install PyTorch
without the libraries that stand-ins replace. A folder of small wheels takes the
place of the package index; the replaced ones are not in it.
Environment: FRAGSIM, FRAG_BUILD_DIR.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM

TORCH = ["filelock", 'opt; extra == "more"', "nvidia-cublas==13.1.0.3",
         'cuda-toolkit[cublas]==13.0.2; platform_system == "Linux"',
         'nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"',
         "triton==3.6.0"]


def wheel(folder, name, version, requires=(), cuda=None):
    """A wheel with one module, and with version.py for torch."""
    about = f"{name.replace('-', '_')}-{version}"
    files = {f"{name.replace('-', '_')}/__init__.py": "",
             f"{about}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
             "Root-Is-Purelib: true\nTag: py3-none-any\n",
             f"{about}.dist-info/METADATA": "Metadata-Version: 2.1\n"
             f"Name: {name}\nVersion: {version}\n"
             + "".join(f"Requires-Dist: {one}\n" for one in requires)
             + "\nRequires-Dist: this is text\n"}
    if name == "torch":
        files["torch/version.py"] = f"cuda: str | None = {cuda!r}\n"
    files[f"{about}.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    path = os.path.join(folder, f"{about}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for at, text in files.items():
            archive.writestr(at, text)


def setup(index, folder, *words, code=0):
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": index,
           "PIP_CONFIG_FILE": os.devnull}
    env.pop("PYTHONPATH", None)
    done = subprocess.run([FRAGSIM, "dry", "--setup", folder, *words], env=env,
                          capture_output=True, text=True, check=False,
                          timeout=200)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def installed(folder):
    """The packages by name, without pip's own."""
    done = subprocess.run([os.path.join(folder, "bin", "python"), "-m", "pip",
                           "list", "--format", "freeze",
                           "--disable-pip-version-check"],
                          capture_output=True, text=True, check=True)
    return {line.split("==")[0] for line in done.stdout.splitlines()} \
        - {"pip", "setuptools", "wheel"}


def main():
    try:
        __import__("ensurepip")
    except ImportError:
        print("check_dry_setup: python3 has no ensurepip; skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as top:
        index, place = os.path.join(top, "index"), os.path.join(top, "env")
        os.mkdir(index)
        wheel(index, "torch", "2.11.0", TORCH, "13.0")
        wheel(index, "torch", "2.10.0", TORCH)
        wheel(index, "nvidia-cudnn-cu13", "9.19.0.56", ["nvidia-cublas"])
        for name in ("filelock", "numpy"):
            wheel(index, name, "1.0")
        wheel(index, "trainer", "1.0", ["torch>=2.0"])
        done = setup(index, place)
        want = {"torch", "nvidia-cudnn-cu13", "filelock", "numpy"}
        assert installed(place) == want, installed(place)
        assert done.stdout.splitlines()[-1] == \
            f"fragsim dry -- {place}/bin/python train.py", done.stdout
        for words in ("installed: filelock==1.0, numpy==1.0, nvidia-cudnn-cu13=="
                      "9.19.0.56, torch==2.11.0\n", "`import torch' fails there"):
            assert words in done.stdout, done.stdout
        for words in ("1 of 3: PyTorch (torch==2.11.0)", "2 of 3: nvidia-cudnn-cu13",
                      "3 of 3: numpy, with PyTorch 2.11.0", "Successfully installed"):
            assert words in done.stderr, (words, done.stderr)
        # A package whose newest release requires another PyTorch is taken in the
        # release for the one that was asked for, or refused.
        wheel(index, "torch", "2.15.0", TORCH, "13.2")
        wheel(index, "vision", "1.0", ["torch==2.11.0"])
        wheel(index, "vision", "2.0", ["torch==2.15.0"])
        done = setup(index, place + "5", "--", "torch==2.11.0", "vision")
        assert "torch==2.11.0, vision==1.0\n" in done.stdout, done.stdout
        assert "newer than" not in done.stdout, done.stdout
        done = setup(index, place + "6", "--", "torch==2.11.0", "vision==2.0", code=4)
        assert "torch==2.11.0" in done.stderr, done.stderr
        done = setup(index, place + "7", "--", "torch==2.15.0", "vision")
        assert "torch==2.15.0, vision==2.0\n" in done.stdout and \
            "PyTorch 2.15.0 is newer than 2.11" in done.stdout and \
            "the functions that it calls are there" in done.stdout, done.stdout
        # A cuDNN that plans nothing without a device is replaced.
        wheel(index, "torch", "2.6.0", [
            'nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"'], "12.4")
        for version in ("9.1.0.70", "9.8.0.87"):
            wheel(index, "nvidia-cudnn-cu12", version)
        done = setup(index, place + "8", "--", "torch==2.6.0")
        assert "nvidia-cudnn-cu12==9.8.0.87, torch==2.6.0\n" in done.stdout and \
            "cuDNN is 9.8 in place of the older one that PyTorch 2.6.0 requires" \
            in done.stderr, (done.stdout, done.stderr)
        # Packages that require torch are installed without what is replaced.
        pip = [os.path.join(place, "bin", "python"), "-m", "pip", "install",
               "--no-index", "--find-links", index, "-q", "trainer"]
        subprocess.run(pip, check=True, timeout=200)
        assert installed(place) == want | {"trainer"}, installed(place)
        done = setup(index, place, code=4)
        assert "expected a folder that is empty" in done.stderr, done.stderr
        done = setup(index, place + "2", "--", "torch==2.10.0", code=4)
        assert "a PyTorch without CUDA" in done.stderr, done.stderr
        wheel(index, "triton", "3.6.0", ["nvidia-cublas"])
        wheel(index, "triton", "4.0")
        setup(index, place + "4", "--", "triton", "torch==2.11.0")
        assert installed(place + "4") == want | {"triton"}
        assert glob.glob(place + "4/lib/*/site-packages/triton-3.6.0*")
        done = setup(index, place + "3", "--", "missing", code=4)
        assert "pip install" in done.stderr, done.stderr
    print("the environment has what the stand-ins do not replace")


main()

#!/usr/bin/env python3
"""check_dry_python.py: checks the ways from Python to `fragsim dry`: the command
`python -m fragsim.dry`, the words of fragsim.dry(), and the plugin of pytest.
tests/gpu/dry/torch stands for PyTorch. A Python without pytest leaves the plugin
out, and the output says so.
Environment: FRAGSIM, FRAG_BUILD_DIR, FRAG_PYTEST_PYTHON (a Python with pytest).
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM, ROOT

ENV = {**os.environ, "FRAGSIM": FRAGSIM, "PYTHONDONTWRITEBYTECODE": "1",
       "PYTHONPATH": os.path.join(ROOT, "sim", "python") + ":"
       + os.path.join(ROOT, "tests", "gpu", "dry")}
PROGRAM = "import sys, torch\ntorch.empty(20 << 30)\nprint(sys.argv[1:])\n"
TESTS = """
import pytest, torch

@pytest.fixture(scope="module")
def held():
    assert torch.cuda.emptied == 1  # the cache of the test before
    torch.empty(8 << 30)  # no part of the test's peak
    return torch.empty(1 << 30)


@pytest.mark.fragsim("peak_reserved <= 2GiB", "need <= 2.01GiB", "leaks <= 0",
                     "fragmentation <= 0%", "steps >= 0", "ooms <= 0")
def test_small():
    torch.empty(2 << 30)


def test_held(held):
    torch.empty(2 << 30)

@pytest.mark.fragsim("peak_allocated <= 1GiB", "need <= 1.5GiB", "retries <= 0",
                     "peak_reserved <= 3", "peak <= 3GiB")
def test_marked():
    torch.empty(2 << 30)


def test_large():
    torch.empty(20 << 30)


def test_host():
    pass
"""


def run(*words, code=0, python=sys.executable, env=None, **options):
    done = subprocess.run([python, *words], env={**ENV, **(env or {})},
                          text=True, capture_output=True, check=False,
                          timeout=100, **options)
    assert done.returncode == code, (words, done.returncode, done.stdout,
                                     done.stderr)
    return done


def check_module(folder):
    """The options end where the program begins; its exit code is kept."""
    program = os.path.join(folder, "train.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    for options, words, code in ((["--gpu", "t4"], [program, "--gpu", "x"], 1),
                                 (["--gpu=l4", "--busy"], [program, "-f"], 0),
                                 (["--gpu", "l4"], ["-m", "train"], 0)):
        done = run("-m", "fragsim.dry", *options, *words, code=code, cwd=folder,
                   env={"PYTHONPATH": ENV["PYTHONPATH"] + ":" + folder})
        given = words[1:] if words[0] == program else []
        assert done.stdout.splitlines()[:1] == [str(given)], done.stdout
        assert "needs 20 GiB of the GPU" in done.stdout, done.stdout
    done = run("-m", "fragsim.dry", "--", "sh", "-c", "exit 9", code=9)
    done = run("-m", "fragsim.dry", "--gpu", "h300", program, code=2)
    assert "b200, h200" in done.stderr, done.stderr


def check_words():
    """A program that has begun is told how to run."""
    done = run("-c", "import torch, fragsim\nwith fragsim.dry('h100'):\n    pass",
               code=1)
    assert "python -m fragsim.dry train.py" in done.stderr, done.stderr
    done = run("-c", "import fragsim.dry", code=1)
    assert "python -m fragsim.dry train.py" in done.stderr, done.stderr


def outcomes(path):
    """{test: (whether it passed, its properties)} of a JUnit file."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        properties = {one.get("name"): int(one.get("value"))
                      for one in case.iter("property")}
        found[case.get("name")] = (case.find("failure") is None, properties)
    return found


def check_plugin(python, folder):
    with open(os.path.join(folder, "test_memory.py"), "w",
              encoding="utf-8") as file:
        file.write(TESTS)
    junit = os.path.join(folder, "j.xml")
    pytest = ("-m", "pytest", "-p", "fragsim.pytest_plugin", "-p",
              "no:cacheprovider", "--junit-xml", junit, "-q")
    done = run(*pytest, "--fragsim-dry=t4", code=1,
               python=python, cwd=folder)
    found = outcomes(junit)
    assert {name: passed for name, (passed, _) in found.items()} == {
        "test_small": True, "test_held": True, "test_marked": False,
        "test_large": True, "test_host": True}, done.stdout
    assert [found[name][1].get("peak_allocated_0", 0) >> 30 for name in
            ("test_small", "test_held", "test_marked", "test_large",
             "test_host")] == [2, 3, 3, 21, 0], found
    for said in ("peak_allocated <= 1GiB: found 3221225472 on device 0",
                 "need <= 1.5GiB: found 2147483648 on device 0",
                 "retries <= 0: found nan on device 0",
                 "peak_reserved <= 3: expected a size with a unit, such as 3MiB",
                 "peak <= 3GiB: expected one of peak_requested, "):
        assert said in done.stdout, (said, done.stdout)
    assert "test_memory.py::test_held, device 0: peak allocated 3.000 GiB" \
        in done.stdout, done.stdout
    # Without rules nothing is judged but the marks.
    done = run(*pytest, "--fragsim-dry", "-k", "large", python=python, cwd=folder)
    assert "memory as on h200, without a GPU" in done.stdout, done.stdout
    done = run(*pytest, "--fragsim-dry=h300", code=4, python=python, cwd=folder)
    assert "b200, h200" in done.stderr, done.stderr


def main():
    if not os.path.exists(os.path.join(BUILD, "dry", "libcuda.so.1")):
        print(f"check_dry_python: no stand-ins in {BUILD}; skipped")
        sys.exit(77)
    check_words()
    with tempfile.TemporaryDirectory() as folder:
        check_module(folder)
    python = os.environ.get("FRAG_PYTEST_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import pytest"], check=False,
                      capture_output=True).returncode:
        print("no pytest: the plugin was not checked (FRAG_PYTEST_PYTHON)")
    else:
        with tempfile.TemporaryDirectory() as folder:
            check_plugin(python, folder)
    print("Python reaches fragsim dry")


main()

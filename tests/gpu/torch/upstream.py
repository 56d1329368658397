"""Runs PyTorch's own tests of CUDA memory under a policy.

  upstream.py FILE native|POLICY [TEST...]
    prints one line a test: its outcome, its name, the seconds it took, and for
    a failure the error
  upstream.py rows FILE OUT.jsonl SECONDS SIDE...
    adds the outcomes of each side to OUT.jsonl, one object a test. A side is
    PyTorch or a policy, which child processes of the tests have too. A test that fails is run once more, alone,
    unless it failed so with PyTorch's own allocator

FILE is test/test_cuda.py of PyTorch's sources. Some tests use half of the
device or more, so nothing else may use it.
"""
import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
START = os.path.join(HERE, "..", "..", "real", "torch", "start")
NATIVE = {"native", "PyTorch"}
MODULE = "upstream_tests"
STATES = {"pass": "ok", "fail": "failed", "skip": "skipped",
          "xfail": "expected failure"}


# ---- one run ----

class Outcomes(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        print(f"begin\t{test.id()}", flush=True)

    def note(self, test, word, why=""):
        took = time.monotonic() - self.began
        print(f"{word}\t{test.id()}\t{took:.2f}\t{why}", flush=True)

    def addSuccess(self, test):
        self.note(test, "pass")

    def addError(self, test, err):
        self.addFailure(test, err)

    def addFailure(self, test, err):
        text = " ".join(str(err[1]).partition("To execute this")[0].split())
        self.note(test, "fail", f"{err[0].__name__}: {text[:400]}")

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(test, err)

    def addSkip(self, test, reason):
        self.note(test, "skip", reason)

    def addExpectedFailure(self, test, err):
        self.note(test, "xfail")


def compile_once():
    """Lets the tests compile each of their libraries once, and not in each run.
    Every call loads a copy: the tests read variables of the library."""
    from torch.utils import cpp_extension
    load = cpp_extension.load_inline

    def load_inline(name, cpp_sources, is_python_module=True, **more):
        if is_python_module:
            return load(name, cpp_sources, **more)
        name += "_" + hashlib.sha256(cpp_sources.encode()).hexdigest()[:8]
        path = load(name, cpp_sources, is_python_module=False, **more)
        return shutil.copy(path, os.path.join(tempfile.mkdtemp(), name + ".so"))

    cpp_extension.load_inline = load_inline


def one_run(path, policy, wanted):
    sys.argv = [path]
    if policy not in NATIVE:
        import fragsim_torch
        assert fragsim_torch.use(policy) == "class"
    compile_once()
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    tests = (loader.loadTestsFromNames(wanted, module) if wanted
             else loader.loadTestsFromModule(module))
    print(f"tests\t{tests.countTestCases()}", flush=True)
    torch.cuda.init()
    tests.run(Outcomes())


# ---- rows ----

def environment(side):
    if side in NATIVE:
        return dict(os.environ)
    return dict(os.environ, FRAGSIM_POLICY=side, PYTHONPATH=os.pathsep.join(
        [START, os.environ.get("PYTHONPATH", "")]))


def about():
    """What the rows were measured on."""
    with contextlib.suppress(OSError):
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            text=True, capture_output=True, check=False).stdout.split()
        return {"kind": "about",
                "torch": f"{torch.__version__} on {torch.cuda.get_device_name()}",
                "driver": "".join(driver[:1]), "cores": os.cpu_count(),
                "date": time.strftime("%F"),
                "part": "tests/gpu/torch/upstream.py rows"}
    return {"kind": "about", "torch": torch.__version__, "driver": "none"}


class Rows:
    def __init__(self, path, out, seconds):
        self.path, self.out = path, out
        self.end = time.monotonic() + seconds
        self.failed = set()  # with PyTorch's own allocator

    def write(self, side, test, state, words, **more):
        with open(self.out, "a", encoding="utf-8") as rows:
            rows.write(json.dumps({"kind": "upstream", "side": side,
                                   "test": test, "state": state, "words": words,
                                   **more}) + "\n")

    def lines(self, side, tests):
        """The lines of one run. Ends all its processes."""
        with tempfile.TemporaryFile("w+", errors="replace") as errors, \
                subprocess.Popen(
                    [sys.executable, os.path.abspath(__file__), self.path, side,
                     *tests], env=environment(side), text=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=errors, start_new_session=True) as process:
            try:
                text, _ = process.communicate(
                    timeout=max(self.end - time.monotonic(), 1))
                why = f"the process ended with {process.returncode}"
            except subprocess.TimeoutExpired as late:
                text, why = (late.stdout or b"").decode(), "no time left"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            errors.seek(0)
            why += ": " + " ".join(errors.read()[-300:].split())
        return [l.split("\t") for l in text.splitlines() if "\t" in l], why

    def run(self, side, tests, **more):
        """Runs the tests, or all; returns name -> state. A test that ends its
        process has failed; the caller runs the tests after it."""
        states, current = {}, None
        lines, why = self.lines(side, tests)
        for word, name, *rest in lines:
            name = name.removeprefix(MODULE + ".")
            if word == "tests" and not more:
                self.write(side, "load", "ok", "", tests=int(name))
            elif word == "begin":
                current = name
            elif word in STATES:
                states[name] = STATES[word]
                self.write(side, name, STATES[word], rest[1],
                           seconds=float(rest[0]), **more)
                current = None
        if current:
            states[current] = "failed"
            self.write(side, current, "failed", why, **more)
        elif not lines:
            self.write(side, "load", "failed", why)
        return states

    def names(self):
        """All tests, by their names in the order of a run."""
        code = ("import sys, unittest; sys.path.insert(0, sys.argv[1]); "
                "import test_cuda as m\n"
                "def each(s):\n"
                "    for t in s:\n"
                "        if isinstance(t, unittest.TestSuite): each(t)\n"
                "        else: print('\\t' + t.id().partition('.')[2])\n"
                "each(unittest.TestLoader().loadTestsFromModule(m))")
        text = subprocess.run(
            [sys.executable, "-c", code, os.path.dirname(self.path)],
            text=True, capture_output=True, check=True).stdout
        return [l[1:] for l in text.splitlines() if l.startswith("\t")]

    def side(self, side, names):
        states, left = {}, names
        while left and time.monotonic() < self.end:
            found = self.run(side, [] if left is names else left,
                             **({} if left is names else {"after": len(states)}))
            if not found:
                return
            states.update(found)
            left = [n for n in names if n not in states]
        for name in [n for n, s in states.items() if s == "failed" and
                     n not in self.failed]:
            if time.monotonic() < self.end:
                states.update(self.run(side, [name], alone=True))
        if side in NATIVE:
            self.failed = {n for n, s in states.items() if s == "failed"}
        count = sum(s in ("ok", "expected failure") for s in states.values())
        print(f"{side}: {count} of {len(states)} passed; failed:",
              *sorted(n for n, s in states.items() if s == "failed"), flush=True)


def main():
    if sys.argv[1] != "rows":
        return one_run(sys.argv[1], sys.argv[2], sys.argv[3:])
    rows = Rows(os.path.abspath(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
    names = rows.names()
    with open(rows.out, "a", encoding="utf-8") as file:
        file.write(json.dumps(about()) + "\n")
    for side in sys.argv[5:]:
        rows.side(side, names)


if __name__ == "__main__":
    main()

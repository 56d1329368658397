"""Runs PyTorch's own tests of CUDA memory under a policy. usage: upstream.py FILE
native|POLICY [TEST...]

FILE is test/test_cuda.py of PyTorch's sources; `native` runs it with PyTorch's
own allocator, so that the two can be compared. Prints one line a test: its
outcome and its name, and for a failure the last line of the error.
"""
import importlib.util
import os
import sys
import unittest

import torch


class Outcomes(unittest.TestResult):
    def note(self, test, word, why=""):
        print(f"{word}\t{test.id()}\t{why}", flush=True)

    def addSuccess(self, test):
        self.note(test, "pass")

    def addError(self, test, err):
        self.addFailure(test, err)

    def addFailure(self, test, err):
        lines = str(err[1]).strip().splitlines() or [""]
        self.note(test, "fail", f"{err[0].__name__}: {lines[0][:160]}")

    def addSkip(self, test, reason):
        self.note(test, "skip", reason)

    def addExpectedFailure(self, test, err):
        self.note(test, "pass")


def main():
    path, policy, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    sys.argv = [path]
    if policy != "native":
        import fragsim_torch
        assert fragsim_torch.use(policy) == "class"
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("upstream_tests", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["upstream_tests"] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    tests = (loader.loadTestsFromNames(wanted, module) if wanted
             else loader.loadTestsFromModule(module))
    torch.cuda.init()
    tests.run(Outcomes())


if __name__ == "__main__":
    main()

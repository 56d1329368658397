"""Runs tests of PyTorch programs without a GPU, and judges the memory that each
of them needs: a plugin of pytest.

    pytest --fragsim-dry=h200

runs all tests on the stand-ins of `fragsim dry`. Each test that used a device
and has a mark is judged by the rules of the mark, on each device:

    @pytest.mark.fragsim("peak_reserved <= 9GiB", "leaks <= 0")
    def test_step(): ...

A rule is a measure of MEASURES, <= or >=, and a size such as 9GiB, a share such
as 25%, or a number. A rule that does not hold fails the test. A trace begins with
the call of the test, so blocks that fixtures hold are part of its peak. The peaks
of all tests are listed at the end, and are properties of the tests in the JUnit
file.
"""
from __future__ import annotations

import gc
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from . import _tool
from ._tool import tool_path

DEFAULT_GPU = "h200"
RULE = re.compile(r"(\w+) *(<=|>=) *([\d.]+) ?(%|[KMGT]iB|)")
UNITS = {"": 1.0, "%": 0.01, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
         "TiB": 2.0**40}
SIZES = {f"peak_{what}": ("", f"{what}_bytes.all.peak")
         for what in ("requested", "allocated", "reserved")}
SIZES.update(end_reserved=("", "reserved_bytes.all.current"),
             need=("fit", "need_bytes"),
             growth_per_step=("leaks", "growth_bytes_per_step"))
# Each measure, and where it stands: in torch.cuda.memory_stats of the test, or in
# the answer of a command about the trace of the test.
MEASURES = {
    **SIZES,
    "fragmentation": ("", "allocated_bytes.all.peak reserved_bytes.all.peak"),
    "retries": ("", "num_alloc_retries"),
    "ooms": ("", "num_ooms"),
    "leaks": ("leaks", "leaks"),
    "steps": ("leaks", "num_steps"),
}
_peaks: list[tuple[str, int, int, int]] = []  # test, device, allocated, reserved


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("fragsim", "memory of GPUs, without a GPU")
    group.addoption("--fragsim-dry", metavar="GPU", nargs="?", const=DEFAULT_GPU,
                    help="run PyTorch without a GPU, as on this one; "
                         "`fragsim help dry' lists them")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers", "fragsim(rule, ...): rules such as \"peak_reserved <= 9GiB\" "
                   "for the memory of this test, with --fragsim-dry")


# ---- the process ----

def _folder(*places: str) -> str:
    """The first of the places, relative to the tool or absolute, that exists."""
    tool = os.path.dirname(os.path.realpath(tool_path()))
    for place in places:
        path = os.path.join(tool, place)
        if os.path.isdir(path):
            return os.path.realpath(path)
    raise pytest.UsageError("--fragsim-dry: expected the stand-ins of fragsim in "
                            "%s, found none: install fragsim again"
                            % os.path.join(tool, places[-1]))


def _environment(gpu: str) -> dict[str, str]:
    """The environment in which Python loads the stand-ins: real/dry/driver.c,
    real/dry/fragsim_dry.py."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(here, "start"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ,
            "FRAGSIM_DRY_GPU": gpu, "FRAGSIM_DRY_ENDLESS": "1",
            "FRAGSIM_DRY_LIBRARIES": _folder("dry", "../lib/fragsim/dry",
                                             "../lib64/fragsim/dry"),
            "FRAGSIM_DRY_MODULE": os.path.join(here, "fragsim_dry.py"),
            "FRAGSIM_DRY_FOLDER": "",
            "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _check_gpu(gpu: str) -> None:
    """The tool knows the GPUs."""
    done = subprocess.run([tool_path(), "dry", "--gpu", gpu, "--", "true"],
                          capture_output=True, text=True, check=False)
    if "--gpu" in done.stderr:
        raise pytest.UsageError(done.stderr.strip())


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Starts pytest again in the environment of the stand-ins, which Python
    loads before it imports torch."""
    gpu = early_config.known_args_namespace.fragsim_dry
    if not gpu or os.environ.get("FRAGSIM_DRY_MODULE"):
        return
    _check_gpu(gpu)
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    words = getattr(sys, "orig_argv", None) or \
        [sys.executable, "-m", "pytest", *args]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *words[1:]], _environment(gpu))


# ---- a test ----

def _dry() -> Any:
    """The module that loaded the stand-ins; None without them."""
    return sys.modules.get("fragsim_dry")


def _is_used() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _begin() -> None:
    gc.collect()
    if _is_used():
        _dry().begin_trace()


def _note_peaks(item: Any) -> None:
    torch = sys.modules["torch"]
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        allocated, reserved = (stats.get(f"{what}_bytes.all.peak", 0)
                               for what in ("allocated", "reserved"))
        if reserved:
            _peaks.append((item.nodeid, device, allocated, reserved))
            item.user_properties.append((f"peak_allocated_{device}", allocated))
            item.user_properties.append((f"peak_reserved_{device}", reserved))


def _answer(command: str, trace: str) -> dict[int, Any]:
    """By device: what the command says about the trace; "": its counters."""
    torch = sys.modules["torch"]
    if command:
        found = json.loads(_tool.run(command, "-q", "--json=-", trace))["results"]
        return {row["device"]: row for row in found}
    return {device: torch.cuda.memory_stats(device)
            for device in range(torch.cuda.device_count())}


def _value(row: dict[str, Any], names: str) -> float:
    """A number of the answer, or the number of its entries; 1 - the quotient if
    there are two names. NaN, which keeps no rule, if it has none."""
    found = [row.get(name) for name in names.split()]
    values = [len(one) if isinstance(one, list) else math.nan if one is None else one
              for one in found]
    return 1 - values[0] / (values[1] or 1) if values[1:] else values[0]


def _breaches(rule: str, trace: str) -> Generator[str, None, None]:
    """What is wrong with the rule, or does not keep it."""
    m = RULE.fullmatch(rule)
    if not m or m[1] not in MEASURES:
        yield f"expected one of {', '.join(MEASURES)}, <= or >=, and a size or number"
        return
    command, names = MEASURES[m[1]]
    limit = float(m[3]) * UNITS[m[4]]
    if m[1] in SIZES and limit and m[4] in ("", "%"):
        yield f"expected a size with a unit, such as {m[3]}MiB"
        return
    for device, row in sorted(_answer(command, trace).items()):
        value = _value(row, names)
        if not (value <= limit if m[2] == "<=" else value >= limit):
            yield f"found {value:.10g} on device {device}"


def _judge(rules: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "test.pickle")
        if rules:
            _dry().write_trace(trace)
        wrong = [f"{rule}: {breach}" for rule in rules
                 for breach in _breaches(rule, trace)]
    if wrong:
        pytest.fail("the memory of this test, as on a GPU of --fragsim-dry:\n"
                    + "\n".join(wrong), pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, None]:
    if _dry() is None and not os.environ.get("FRAGSIM_DRY_MODULE"):
        yield
        return
    _begin()
    outcome = yield
    if outcome.excinfo is None and _is_used() and _dry().has_trace():
        try:
            _note_peaks(item)
            mark = item.get_closest_marker("fragsim")
            _judge(mark.args if mark else ())
        except pytest.fail.Exception as error:
            outcome.force_exception(error)
    _begin()  # the cache of this test is no part of the next one's memory


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """The peaks; with xdist they are in the JUnit file only."""
    if not config.getoption("fragsim_dry"):
        return
    terminalreporter.section("memory as on %s, without a GPU"
                             % config.getoption("fragsim_dry"))
    for test, device, allocated, reserved in _peaks:
        terminalreporter.write_line(
            "%s, device %d: peak allocated %.3f GiB, peak reserved %.3f GiB"
            % (test, device, allocated / 2**30, reserved / 2**30))
    if not _peaks:
        terminalreporter.write_line("no test used a device")

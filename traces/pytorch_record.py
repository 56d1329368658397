#!/usr/bin/env python3
"""pytorch_record.py SCRIPT [ARGUMENT...]: runs a PyTorch script and records the
requests to its CUDA allocator and the results, in files that every fragsim
command reads.

The recorder writes PREFIX.rankR.oom.pickle each time the allocator runs out of
memory (a later file replaces an earlier one), and PREFIX.rankR.exit.pickle when
the script ends. Beside each of them lies a file of the same name that ends in
.json: the counters of the allocator, its settings and its limit, which fragsim
reads too. A snapshot also has the calls that changed the settings or the limit of
the allocator (class Changes). PREFIX is $FRAGSIM_RECORD, or "snapshot" if it is not set. R is the
rank of the process: that of torch.distributed, or $RANK as torchrun sets it, or
0. A program can also import this file and use Recording, or call start(). The
recorder needs PyTorch 2.1 or later and no other part of fragsim.
"""
from __future__ import annotations

import atexit
import json
import os
import runpy
import re
import sys
import threading
import time
from typing import Any

import torch

_observed = False  # PyTorch cannot detach an observer: one serves the process
_active: Recording | None = None  # PyTorch records one history a process


def _on_oom(device: int, _request: int, limit: int, _free: int) -> None:
    """PyTorch passes bytes. `limit` is the memory limit of the process, or the
    memory of the device if there is no limit."""
    if _active:
        _active._on_oom(device, limit)


def _rank() -> str:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return str(distributed.get_rank())
    return os.environ.get("RANK", "0")


def _total(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).total_memory)


def _limit(device: int) -> int:
    """The limit in bytes that set_per_process_memory_fraction set; the memory
    of the device without one, and where this PyTorch cannot tell."""
    fraction = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    return int((fraction(device) if fraction else 1.0) * _total(device))


def _stats() -> dict[str, dict[str, int]]:
    return {str(number): dict(torch.cuda.memory_stats(number))
            for number in range(torch.cuda.device_count())}


class Changes:
    """Sees the calls that change the settings or the limit of the allocator, and
    adds them to each snapshot that this process takes: its key
    "fragsim_settings" has a list of dictionaries, and "fragsim_start" the
    settings when the history began (traces/import/torch/snapshot_changes.c
    describes both). A snapshot of a process without such calls has neither."""

    SETTERS = ("_accelerator_setAllocatorSettings",
               "_cuda_cudaCachingAllocator_set_allocator_settings")
    FRAMES = 64  # of a stack

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.hears: list[Any] = []  # functions that are told of each call
        self.begin_settings: dict[str, Any] = {}
        self.fractions: dict[int, float] = {}
        self.begin_limits: dict[int, int] = {}
        self._reset: dict[int, int] = {}  # calls that a reset took away
        self._snapshot = getattr(torch.cuda.memory, "_snapshot", dict)
        torch.cuda.memory._snapshot = self.snapshot
        for name in self.SETTERS:
            self._watch(name, lambda text: {"settings": text})
        self._watch("_cuda_setMemoryFraction", self._fraction)
        self._watch("_cuda_resetAccumulatedMemoryStats", self._forget)

    @classmethod
    def of_process(cls) -> Changes:
        """The one object of the process, also under `fragsim dry`."""
        memory = torch.cuda.memory
        if not hasattr(memory, "_fragsim_changes"):
            memory._fragsim_changes = cls()
        return memory._fragsim_changes

    def begin(self) -> None:
        """The history begins."""
        self.calls.clear()
        self.begin_settings = self._snapshot().get("allocator_settings", {})
        get = getattr(torch._C, "_cuda_getMemoryFraction", lambda _device: 1.0)
        self.begin_limits = {
            at: self._limit(at, self.fractions.get(at, get(at)))
            if at in self.fractions or get(at) < 1 else -1
            for at in range(torch.cuda.device_count())}

    def _watch(self, name: str, describe: Any) -> None:
        call = getattr(torch._C, name, None)

        def watched(*args: Any) -> Any:
            made = {"time_us": time.time_ns() // 1000, "counts": self._counts(),
                    "frames": self._frames()}
            described = describe(*args)
            try:
                return call(*args)
            finally:  # a text with an error has an effect up to the error
                if described:
                    self.calls.append({**made, **described})
                    for hear in self.hears:
                        hear(self.calls[-1])

        if call:
            setattr(torch._C, name, watched)

    def _fraction(self, fraction: float, device: int) -> dict[str, Any]:
        self.fractions[device] = fraction
        return {"device": device, "limit": self._limit(device, fraction)}

    def _forget(self, device: int) -> None:
        self._reset[device] = self._counts()[device]

    @staticmethod
    def _limit(device: int, fraction: float) -> int:
        """In bytes, as PyTorch rounds it; -1: none. Before 2.10, a fraction of 1
        is a limit."""
        found = re.match(r"(\d+)\.(\d+)", torch.__version__)
        release = tuple(map(int, found.groups())) if found else (9, 9)
        if fraction >= 1 and release >= (2, 10):
            return -1
        return int(fraction * _total(device) + (0 if release < (2, 13) else 0.5))

    def _counts(self) -> list[int]:
        """The requests and frees so far, by device."""
        if not torch.cuda.is_initialized():
            return []
        stats = map(torch._C._cuda_memoryStats, range(torch.cuda.device_count()))
        return [self._reset.get(at, 0) + one["num_ooms"]
                + one["allocation"]["all"]["allocated"]
                + one["allocation"]["all"]["freed"]
                for at, one in enumerate(stats)]

    def _frames(self) -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = []
        frame = sys._getframe(2)
        while frame and len(frames) < self.FRAMES:
            code = frame.f_code
            frames.append({"filename": code.co_filename, "name": code.co_name,
                           "line": frame.f_lineno})
            frame = frame.f_back  # type: ignore[assignment]
        return frames

    def _rows(self, made: dict[str, Any], used: list[int],
              now: list[int]) -> list[dict[str, Any]]:
        """The rows of a call: of one device, or of all that were used."""
        shown = {key: made[key] for key in ("settings", "limit", "time_us",
                                            "frames") if key in made}
        counts = made["counts"] or [0] * len(now)
        return [{"device": at, "calls_after":
                 -1 if at < 0 else now[at] - counts[at], **shown}
                for at in used if made.get("device", at) == at]

    def snapshot(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """torch.cuda.memory._snapshot with the changes."""
        taken: dict[str, Any] = self._snapshot(*args, **kwargs)
        calls = list(self.calls)
        if not calls or not self.begin_settings:
            return taken
        now = self._counts()
        used = [at for at, trace in enumerate(taken["device_traces"]) if trace]
        rows: list[dict[str, Any]] = [
            {"device": at, "time_us": 0, "limit": self.begin_limits[at]}
            for at in used]
        if taken.get("host_traces"):
            used.append(-1)
        taken["fragsim_start"] = self.begin_settings
        taken["fragsim_settings"] = rows + [
            row for made in calls for row in self._rows(made, used, now)]
        return taken


class Recording:
    """Records the requests to PyTorch's CUDA allocator, in this process.

        with Recording("run"):
            train()

    `prefix` is the beginning of the files' names. `history` are arguments of
    torch.cuda.memory._record_memory_history, such as stacks="python" or
    max_entries=100000 (a number of events; all are kept by default, at some kB
    of host memory each). `files` lists the snapshots that were written. Only
    one recording can be active at a time. OSError if a snapshot cannot be
    written at the end; the program's own exceptions go first.
    """

    def __init__(self, prefix: str | os.PathLike[str] = "snapshot",
                 **history: Any) -> None:
        self.prefix = os.fspath(prefix)
        self.history = history
        self.files: list[str] = []
        self._process = 0
        self._limits: dict[int, int] = {}  # bytes, by device: seen at an OOM
        self._late: list[str] = []  # devices that were in use at the start

    def start(self) -> Recording:
        """Starts the recording. RuntimeError if another one is active; errors
        of PyTorch, for example where there is no GPU."""
        global _active, _observed  # pylint: disable=global-statement
        if _active:
            raise RuntimeError("expected no active recording, found that of "
                               f"{_active.prefix!r}: stop it first")
        torch.cuda.init()  # without a GPU, this error is clearer than later ones
        if not _observed:
            torch._C._cuda_attach_out_of_memory_observer(_on_oom)
            _observed = True
        self._late = [number for number, counters in _stats().items()
                      if counters["allocation.all.allocated"]]
        torch.cuda.memory._record_memory_history(**self.history)
        Changes.of_process().begin()
        self._process = os.getpid()
        atexit.register(self._at_exit)
        _active = self
        return self

    def stop(self) -> None:
        """Writes the snapshot of the end and ends the recording. A recording
        that is not active is left as it is."""
        if self._end():
            try:
                self._dump("exit", torch.cuda.current_device())
            finally:
                torch.cuda.memory._record_memory_history(enabled=None)

    def __enter__(self) -> Recording:
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind:
            self._quietly(self.stop)
        else:
            self.stop()

    def _end(self) -> bool:
        global _active  # pylint: disable=global-statement
        if _active is not self or self._process != os.getpid():
            return False  # a forked process has the object, but no GPU
        _active = None
        return True

    def _at_exit(self) -> None:
        self._quietly(self.stop)

    def _on_oom(self, device: int, limit: int) -> None:
        self._limits[device] = limit
        self._quietly(self._dump, "oom", device)

    @staticmethod
    def _quietly(action: Any, *arguments: Any) -> None:
        """PyTorch's own error must reach the program, not one of the recorder."""
        try:
            action(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            print(f"fragsim: a snapshot was not written: {error}",
                  file=sys.stderr)

    def _dump(self, why: str, device: int) -> None:
        name = f"{self.prefix}.rank{_rank()}.{why}"
        new = f"{name}.{os.getpid()}-{threading.get_ident()}.new"
        try:
            # A killed process leaves no half-written file: the renames are last.
            torch.cuda.memory._dump_snapshot(new)
            with open(f"{new}.json", "w", encoding="utf-8") as file:
                json.dump(self._counters(device), file, indent=1)
            os.replace(f"{new}.json", f"{name}.json")
            os.replace(new, f"{name}.pickle")
        finally:
            for path in (new, f"{new}.json"):
                if os.path.exists(path):
                    os.remove(path)
        if f"{name}.pickle" not in self.files:
            self.files.append(f"{name}.pickle")

    def _counters(self, device: int) -> dict[str, Any]:
        """What sim/validate/stats_file.h reads (stats, cap, total_memory; the
        last two in bytes and of this device), and where it comes from. Totals
        and peaks count from the start of the process: of a device that was in
        use before the recording, they are left out."""
        total = _total(device)
        limit = self._limits.get(device, _limit(device))
        return {
            "torch": str(torch.__version__),
            "rank": _rank(),
            "conf": os.environ.get("PYTORCH_ALLOC_CONF") or
                    os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
            "device": torch.cuda.get_device_name(device),
            "cap": limit if limit < total else None,
            "total_memory": total,
            "late": self._late,
            "stats": {number: {
                name: value for name, value in counters.items()
                if number not in self._late or name.endswith(".current")}
                for number, counters in _stats().items()
                if counters["reserved_bytes.all.peak"]},
        }


def start(prefix: str = os.environ.get("FRAGSIM_RECORD", "snapshot"),
          **history: Any) -> Recording:
    """Starts a recording that lasts until the process ends."""
    return Recording(prefix, **history).start()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    start()
    runpy.run_path(sys.argv[0], run_name="__main__")

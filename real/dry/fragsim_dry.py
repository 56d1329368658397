"""Runs the PyTorch of this process on the stand-ins for CUDA's libraries.

`fragsim dry` names this file in FRAGSIM_DRY_MODULE, and the start folder of
`fragsim run` loads it: before() when the program begins to import torch, after()
when the import is complete. At its end each process that used a device writes
into the folder FRAGSIM_DRY_FOLDER:

  PID.pickle  the snapshot, by PyTorch's own torch.cuda.memory._dump_snapshot
  PID.notes   lines of kind, number and name with a tab between them: those of
              real/dry/notes.h; `rank`; and `allocated` and `reserved`, the peaks
              that PyTorch counted, whose name is the device

This file avoids syntax that an older Python lacks.
"""
import atexit
import ctypes
import glob
import os
import re
import sys

MOST_ENTRIES = 10000000  # of the memory history
LIBRARIES = os.environ.get("FRAGSIM_DRY_LIBRARIES", "")
FOLDER = os.environ.get("FRAGSIM_DRY_FOLDER", "")
_loaded = []  # the stand-ins, libcuda.so.1 first
_written = set()  # numbers of processes


class Unusable(RuntimeError):
    """The PyTorch of this process cannot run on the stand-ins."""


def _cuda_of(spec):
    """The release of CUDA that PyTorch was built for, such as "13.0"."""
    path = os.path.join(os.path.dirname(spec.origin or ""), "version.py")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Unusable("%s: %s" % (path, error.strerror))
    found = re.search(r"^cuda\b[^=]*= *'(\d+)\.(\d+)", text, re.M)
    if not found:
        raise Unusable(
            "this PyTorch (%s) was built without CUDA, so it has no allocator "
            "for a GPU: install the build for CUDA, or let `fragsim dry "
            "--setup' make an environment" % os.path.dirname(path))
    return int(found.group(1)), int(found.group(2))


def before(spec):
    """Loads the stand-ins: a library of the same SONAME is not loaded again
    when PyTorch's own libraries need it."""
    major, minor = _cuda_of(spec)
    own = os.path.join(LIBRARIES, str(major))
    if not os.path.isdir(own):
        raise Unusable("this PyTorch was built for CUDA %d.%d; expected CUDA 12 "
                       "or 13" % (major, minor))
    os.environ["FRAGSIM_DRY_CUDA"] = str(1000 * major + 10 * minor)
    first = os.path.join(LIBRARIES, "libcuda.so.1")
    rest = sorted(glob.glob(os.path.join(own, "*.so.*"))
                  + glob.glob(os.path.join(LIBRARIES, "*.so.*")))
    rest.remove(first)
    for path in [first] + rest:
        _loaded.append(ctypes.CDLL(path, ctypes.RTLD_GLOBAL))


def after():
    """Starts the memory history as soon as the program uses a device."""
    import torch
    memory = torch.cuda.memory
    record = memory._record_memory_history

    def keep_recording(*args, **kwargs):
        """The program's own call; a history that it ends is written first."""
        if (args[0] if args else kwargs.get("enabled", "all")) is None:
            _write(again=True)
        elif kwargs.get("max_entries", 0) < MOST_ENTRIES:
            kwargs["max_entries"] = MOST_ENTRIES
        return record(*args, **kwargs)

    memory._record_memory_history = keep_recording
    torch.cuda._lazy_call(lambda: record(
        enabled="all", context="all", stacks="python", max_entries=MOST_ENTRIES))
    atexit.register(_write)
    leave = os._exit

    def leave_after(code):
        try:
            _write()
        finally:
            leave(code)

    os._exit = leave_after


def _peaks(torch):
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        for what in ("allocated", "reserved"):
            yield what, stats.get("%s_bytes.all.peak" % what, 0), device


def _write(again=False):
    """Writes the files of this process, once."""
    torch = sys.modules.get("torch")
    if os.getpid() in _written or torch is None \
            or not torch.cuda.is_initialized():
        return
    if not again:
        _written.add(os.getpid())
    base = os.path.join(FOLDER, str(os.getpid()))
    ended = again or not os.path.exists(base + ".pickle")
    if ended or any(torch.cuda.memory._snapshot()["device_traces"]):
        torch.cuda.memory._dump_snapshot(base + ".pickle")
    _loaded[0].frag_dry_notes_write(os.fsencode(base + ".notes"))
    with open(base + ".notes", "a", encoding="utf-8") as file:
        for what, count, device in _peaks(torch):
            file.write("%s\t%d\t%d\n" % (what, count, device))
        if os.environ.get("RANK", "").isdigit():
            file.write("rank\t%s\t\n" % os.environ["RANK"])

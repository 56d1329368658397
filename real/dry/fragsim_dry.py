"""Runs the PyTorch of this process on the stand-ins for CUDA's libraries.

`fragsim dry` names this file in FRAGSIM_DRY_MODULE, and the start folder of
`fragsim run` loads it: before() when the program begins to import torch, after()
when the import is complete. Each process that used a device writes
into the folder FRAGSIM_DRY_FOLDER, if that is set, at its end, now and then before,
and when a fault ends it (real/dry/dry_live.h):

  PID.pickle  the snapshot, by PyTorch's own torch.cuda.memory._dump_snapshot
  PID.notes   lines of kind, number and name with a tab between them: those of
              real/dry/dry_notes.h; `torch`, whose name is the release; `newer`, whose
              name is the newest that is known, if it is newer, and `tried`, if
              it ran without a GPU at least; `rank`; for
              a device, which is the name, `allocated` and `reserved`, the peaks
              that PyTorch counted, and `requested`, that of the bytes that
              the program asked for; `outside`, the bytes that others than the
              allocator hold, and `gpu`, its number without
              CUDA_VISIBLE_DEVICES; `host`, the most bytes of host memory that
              the process had; and `exact`, `drawn`, `assumed` and `read`, the
              reads of values of the device, whose name has the operator, the
              line of the program, and what was read; and `room`, whose name is a
              line that asks how much memory is free

and, each of them, into the one file `said` what inference servers log of their start
(sim/answers/startup.h).

A read yields what FRAGSIM_DRY_ASSUME says, KIND=VALUE with a comma between them (the
kinds are those of ASSUMED below, and a value is a number, or, for a count, a part of the
elements of the input such as 25%); or what fragsim_values.py computes, unless
FRAGSIM_DRY_VALUES, the share of the time that this may take, is off; or zeros.
FRAGSIM_DRY_SEED and FRAGSIM_DRY_ALIKE select what is drawn.

This file avoids syntax that an older Python lacks.
"""
import atexit
import contextlib
import ctypes
import glob
import importlib.util
import inspect
import linecache
import logging
import os
import re
import resource
import signal
import sys
import threading
import time
import warnings

MOST_ENTRIES = 10000000  # of the memory history
NEWEST = (2, 11)  # release on which the stand-ins were compared with a GPU
TRIED = (2, 15)  # release of which the functions are all there, and programs ran
LIBRARIES = os.environ.get("FRAGSIM_DRY_LIBRARIES", "")
FOLDER = os.environ.get("FRAGSIM_DRY_FOLDER", "")
SHARE = os.environ.get("FRAGSIM_DRY_VALUES", "20%")
# The operators of PyTorch that read a value, by kind; "bool" is an item that is
# true or false.
ASSUMED = {"item": ("_local_scalar_dense",), "bool": (), "nonzero": ("nonzero",),
           "unique": ("_unique2", "unique_consecutive", "unique_dim")}
_assumed = {}  # kind: text of the value
_now = threading.local()  # value: what the reads of this thread yield
_reads = {}  # kind and text: count
_kept = []  # objects that must not be collected
_loaded = []  # the stand-ins, libcuda.so.1 first
_written = set()  # numbers of processes
_computed = None  # the function that computes what is read
_ends = threading.Event()
_writing = threading.Lock()
_history = None  # torch.cuda.memory._record_memory_history with its effect


class Unusable(RuntimeError):
    """The PyTorch of this process cannot run on the stand-ins."""


def release_of(version):
    """2.11.0+cu130 as (2, 11); () of a version of another form."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else ()


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
            "--setup FOLDER' make an environment" % os.path.dirname(path))
    return int(found.group(1)), int(found.group(2))


def before(spec):
    """Loads the stand-ins: a library of the same SONAME is not loaded again
    when PyTorch's own libraries need it."""
    major, minor = _cuda_of(spec)
    read_assumed(os.environ.get("FRAGSIM_DRY_ASSUME", ""))
    if not re.match(r"(\d+(\.\d+)?%|off)$", SHARE):
        raise Unusable("--values %s: expected a share such as 20%%, or off" % SHARE)
    own = os.path.join(LIBRARIES, str(major))
    if not os.path.isdir(own):
        raise Unusable("this PyTorch was built for CUDA %d.%d; expected CUDA 12 "
                       "or 13" % (major, minor))
    os.environ["FRAGSIM_DRY_CUDA"] = str(1000 * major + 10 * minor)
    # Triton links its launchers with the driver.
    os.environ["TRITON_LIBCUDA_PATH"] = LIBRARIES
    first = os.path.join(LIBRARIES, "libcuda.so.1")
    rest = sorted(glob.glob(os.path.join(own, "*.so.*"))
                  + glob.glob(os.path.join(LIBRARIES, "*.so.*")))
    rest.remove(first)
    for path in [first] + rest:
        _loaded.append(ctypes.CDLL(path, ctypes.RTLD_GLOBAL))
    _replace_copies(glob.glob(os.path.join(own, "libcudart.so.*"))[0])


def _replace_copies(runtime):
    """Packages bring copies of the runtime under other names. Their own libraries find
    the functions of the stand-in first, and a program that opens a copy by its path, as
    vLLM does, gets the stand-in."""
    load = ctypes.CDLL.__init__

    def load_stand_in(library, name, *args, **kwargs):
        if re.match(r"libcudart[.-].*so", os.path.basename(os.fsdecode(name or ""))):
            name = runtime
        load(library, name, *args, **kwargs)

    ctypes.CDLL.__init__ = load_stand_in


def after():
    """Starts the memory history as soon as the program uses a device."""
    global _history
    import torch
    _watch_reads(torch)
    _watch_room()
    _watch_servers()
    _compute_values()
    _assume(torch)
    changes = _load("pytorch_record").Changes.of_process()
    _history = _history_of_all(torch, changes)
    torch.cuda._lazy_call(_history)
    _write_at_end()


def _history_of_all(torch, changes):
    """The history has the whole run: the program's own calls, by which name
    they come, neither end it nor begin it. Returns what does."""
    memory = torch.cuda.memory
    record = memory._record_memory_history
    calls = {name: getattr(torch._C, name) for name in
             ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy")
             if hasattr(torch._C, name)}
    wanted = {"enabled": "all", "context": "all", "stacks": "python",
              "max_entries": MOST_ENTRIES}
    known = getattr(memory, "_record_memory_history_impl", record)
    options = inspect.signature(known).parameters
    if "record_pinned_host_memory" in options:
        wanted["record_pinned_host_memory"] = True
    if "skip_actions" in options:  # those of _write_now_and_then
        wanted["skip_actions"] = ["snapshot"]

    def no_effect(*args, **kwargs):
        del args, kwargs

    def switch(on=True):
        _check_backend(memory)
        for name, call in calls.items():
            setattr(torch._C, name, call)
        record(**(wanted if on else {"enabled": None}))
        if on:
            changes.begin()
        for name in calls:
            setattr(torch._C, name, no_effect)

    for name in calls:
        setattr(torch._C, name, no_effect)
    return switch


def _check_backend(memory):
    """PyTorch records the blocks of its own allocator alone."""
    backend = getattr(memory, "get_allocator_backend", lambda: "native")()
    if backend != "native":
        sys.stderr.write("fragsim dry: this process cannot run without a GPU: "
                         "PyTorch's allocator is %s; expected its own, of which "
                         "PyTorch records the blocks: leave out "
                         "backend:cudaMallocAsync and other allocators\n" % backend)
        raise SystemExit(5)


def _compute_values():
    """Values are computed when they are read, where PyTorch can be told of every
    operator (since 1.13)."""
    global _computed
    try:
        import torch.utils._python_dispatch
    except ImportError:
        return
    if SHARE == "off":
        return
    for name in ("fragsim_draws", "fragsim_notes"):
        _load(name)
    _computed = _load("fragsim_values").start(
        _native, _sent, _loaded[0].frag_dry_own_modes,
        int(os.environ.get("FRAGSIM_DRY_SEED", "0")),
        os.environ.get("FRAGSIM_DRY_ALIKE", ""), float(SHARE.rstrip("%")) / 100)


def _load(name):
    """A module beside this one."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the next one may import it
    spec.loader.exec_module(module)
    return module


def _write_at_end():
    """At the end of the interpreter, by os._exit, by the signal with which
    torchrun ends the other ranks after the death of one, and before a process of the
    program kills this one."""
    atexit.register(_write_last)
    leave = os._exit

    def leave_after(code):
        try:
            _write()
        finally:
            leave(code)

    def end(number, frame):
        del frame
        _write()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    on_death = ctypes.CFUNCTYPE(None)(_write)
    _kept.append(on_death)
    _loaded[0].frag_dry_on_death(on_death)
    if FOLDER:
        _start_writer()
        os.register_at_fork(after_in_child=_start_writer)
        kill = os.kill
        os.kill = lambda process, number: (_ask(process, number),
                                           kill(process, number))[1]
    os._exit = leave_after
    if threading.current_thread() is threading.main_thread() \
            and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


# ---- values ----

def read_assumed(text):
    """The values of FRAGSIM_DRY_ASSUME, by kind."""
    for part in filter(None, text.split(",")):
        kind, _, value = part.partition("=")
        if kind not in ASSUMED or not re.match(
                r"\d+(\.\d+)?%$" if value.endswith("%")
                else r"-?\d+(\.\d+)?$", value):
            raise Unusable("--assume %s: expected KIND=NUMBER or KIND=NUMBER%%, "
                           "KIND one of %s" % (part, ", ".join(sorted(ASSUMED))))
        _assumed[kind] = value


def _count(kind, tensor):
    value = _assumed[kind]
    if value.endswith("%"):
        return int(tensor.numel() * float(value[:-1]) / 100)
    return int(float(value))


def _bytes_of(value, torch, size):
    """The value as the device would have it: a count has any size."""
    value, dtype = value
    if dtype is None:
        return int(value).to_bytes(size, sys.byteorder)
    return bytes(torch.tensor(value).to(dtype).reshape(1)
                 .view(torch.uint8).tolist())


def _override(torch, library, kind, name):
    """Puts a function before the operator that says what its reads yield."""
    kernel = torch.library.get_kernel("aten::" + name, "CUDA")

    def before_kernel(keys, tensor, *args, **kwargs):
        outer = getattr(_now, "value", None)
        if kind != "item":
            value = (_count(kind, tensor), None)
        else:
            which = "bool" if tensor.dtype == torch.bool else "item"
            value = (float(_assumed[which]), tensor.dtype) \
                if which in _assumed else None
        _now.value = value if outer is None else outer
        try:
            return kernel.call_boxed(keys, tensor, *args, **kwargs)
        finally:
            _now.value = outer

    library.impl(name, before_kernel, "CUDA", with_keyset=True,
                 allow_override=True)


def _line(frame):
    """The innermost line outside of PyTorch and of this module."""
    torch = os.path.dirname(sys.modules["torch"].__file__)
    own = os.path.splitext(__file__)[0].rpartition("_")[0]
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((torch, own, "<frozen")):
            return "%s:%d %s" % (
                os.path.basename(path), frame.f_lineno,
                linecache.getline(path, frame.f_lineno).strip()[:80])
        frame = frame.f_back
    return "a thread of PyTorch, such as the backward pass"


def _operators():
    """The operator that runs, and the one of the program that contains it."""
    names = [ctypes.create_string_buffer(128) for _ in range(2)]
    _loaded[0].frag_dry_operators(names[0], names[1], ctypes.c_size_t(128))
    return [name.value.decode() for name in names]


def _operation():
    """The operators that read, as text."""
    inner, outer = _operators()
    kind = "item" if inner == "_local_scalar_dense" else inner or "copy"
    if outer in ("", inner, "item", "is_nonzero") or outer.startswith("to"):
        return kind
    return "%s in %s" % (kind, outer)


def _native(address, size):
    """The bytes of device memory if the stand-ins know them, or None."""
    data = ctypes.create_string_buffer(size)
    known = _loaded[0].frag_dry_known
    known.restype = ctypes.c_bool
    return data.raw if known(data, ctypes.c_uint64(address),
                             ctypes.c_size_t(size)) else None


def _sent(address, size):
    """A function that returns the bytes that a call of torch.distributed wrote there,
    for which it may wait for another rank, or None if nobody knows them; None if that
    is certain now."""
    take, fetch = _loaded[0].frag_dry_awaited, _loaded[0].frag_dry_fetched
    take.restype, fetch.restype = ctypes.c_void_p, ctypes.c_bool
    awaited = take(ctypes.c_uint64(address), ctypes.c_size_t(size))
    if not awaited:
        known = _native(address, size)
        return known and (lambda: known)
    data = ctypes.create_string_buffer(size)
    return lambda: data.raw if fetch(ctypes.c_void_p(awaited), data) else None


def _watch_reads(torch):
    """Counts the reads of unknown bytes, and says what they yield."""
    @ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64,
                      ctypes.c_size_t, ctypes.c_bool)
    def on_read(to, at, size, is_sent):
        if is_sent:
            data, kind = (_computed and _computed(at, size)) or (None, None)
            if kind != "exact":
                return False
            ctypes.memmove(to, data, size)
            return True
        kind, data = "read", None
        value = getattr(_now, "value", None)
        if value is not None:
            kind, data = "assumed", _bytes_of(value, torch, size)
        elif _computed:
            data, kind = _computed(at, size) or (data, kind)
        if data is not None:
            ctypes.memmove(to, data, min(size, len(data)))
        text = "%s of %d bytes, %s" % (_operation(), size,
                                       _line(sys._getframe().f_back))
        _reads[kind, text] = _reads.get((kind, text), 0) + 1
        return data is not None

    _kept.append(on_read)
    _loaded[0].frag_dry_on_read(on_read)


def _watch_room():
    """Counts where the program asks how much memory is free. PyTorch asks, too, when
    an operator gets no memory."""
    @ctypes.CFUNCTYPE(None)
    def on_room():
        if any(_operators()):
            return
        text = _line(sys._getframe().f_back)
        _reads["room", text] = _reads.get(("room", text), 0) + 1

    _kept.append(on_room)
    _loaded[0].frag_dry_on_room(on_room)


def _watch_servers():
    """Keeps what vLLM and SGLang log, each line as it comes: their processes need not
    use a device."""
    handle = logging.Logger.handle

    def keep(logger, record):
        if record.name.startswith(("vllm", "sglang")) and FOLDER:
            with open(os.path.join(FOLDER, "said"), "a", encoding="utf-8",
                      errors="replace") as file:
                file.write(record.getMessage().replace("\n", " ") + "\n")
        return handle(logger, record)

    logging.Logger.handle = keep


def _assume(torch):
    if not _assumed:
        return
    library = torch.library.Library("aten", "IMPL")
    _kept.append(library)
    with warnings.catch_warnings():  # PyTorch warns of an override
        warnings.simplefilter("ignore")
        for kind, names in sorted(ASSUMED.items()):
            if kind in _assumed or (kind == "item" and "bool" in _assumed):
                for name in names:
                    _override(torch, library, kind, name)


# ---- for fragsim.pytest_plugin, which calls write_trace too ----

def begin_trace():
    """The trace and the peaks begin now, with the blocks that are live."""
    import torch
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    for device in range(torch.cuda.device_count()):
        torch.cuda.reset_peak_memory_stats(device)
        torch.cuda.reset_accumulated_memory_stats(device)
    _history(False)
    _history()


def has_trace():
    """Whether a device was used since then."""
    import torch
    return any(torch.cuda.memory._snapshot()["device_traces"])


# ---- the end ----

def _facts(torch):
    """Notes about the process and its devices: kind, number, name."""
    yield "torch", 0, torch.__version__
    if release_of(torch.__version__) > NEWEST:
        yield "newer", 0, "%d.%d" % NEWEST
        if release_of(torch.__version__) <= TRIED:
            yield "tried", 0, "%d.%d" % TRIED
    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    used = _loaded[0].frag_dry_used
    dropped = _loaded[0].frag_dry_dropped
    used.restype = dropped.restype = ctypes.c_uint64
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        for what in ("allocated", "reserved", "requested"):
            yield what, stats.get("%s_bytes.all.peak" % what, 0), device
        now = stats.get("reserved_bytes.all.current", 0)
        yield "outside", max(0, used(device) - now + dropped(device)), device
        yield "gpu", int(shown[device]) if len(shown) > device \
            and shown[device].isdigit() else device, device
    pinned = _loaded[0].frag_dry_pinned_most
    pinned.restype = ctypes.c_uint64
    yield "pinned", pinned(), 0
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    yield "host", resident + pinned(), 0
    if os.environ.get("RANK", "").isdigit():
        yield "rank", int(os.environ["RANK"]), ""


def _write_last():
    """Python ends by the signal of Ctrl-C if nothing that it evaluates after the
    exception ends otherwise."""
    _write()
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        try:
            exec("raise KeyboardInterrupt")  # pylint: disable=exec-used
        except KeyboardInterrupt:
            pass


def _start_writer():
    """A fork has none of the threads, but the locks as they were."""
    global _ends, _writing
    _ends, _writing = threading.Event(), threading.Lock()
    threading.Thread(target=_write_now_and_then, daemon=True).start()


def _write_now_and_then():
    """What a process that is killed leaves; a twentieth of the time at most, and at
    once if _ask asks for it."""
    asked, took, end = _asked(os.getpid()), 0.25, time.time()
    while not _ends.wait(0.25):
        if os.path.exists(asked):
            _write()
        elif time.time() - end > 20 * took:
            begin = time.time()
            with _writing:
                if _is_used() and not _ends.is_set():
                    _write_files()
            end = time.time()
            took = max(0.25, end - begin)


def _asked(process):
    return os.path.join(FOLDER, "%d.asked" % process)


def _ask(process, number):
    """A process of the program kills another one, as servers end their workers: that
    one writes its files first, within a minute."""
    lives = os.path.join(FOLDER, "%d.live" % process)
    if number != signal.SIGKILL or process == os.getpid() \
            or not os.path.exists(lives):
        return
    open(_asked(process), "w", encoding="utf-8").close()
    end = time.time() + 60
    while time.time() < end and os.path.exists("/proc/%d/exe" % process):
        with open(lives, encoding="utf-8") as file:
            if re.search("^(ended|fault)", file.read(), re.M):
                return
        time.sleep(0.25)


def _write():
    """Writes the files of this process, once."""
    if not _is_used():
        return
    _ends.set()
    if _writing.acquire(timeout=60):
        if os.getpid() not in _written:
            _written.add(os.getpid())
            _write_files()
            _loaded[0].frag_dry_live_end()
        _writing.release()


def _is_used():
    torch = sys.modules.get("torch")
    return FOLDER and torch is not None and torch.cuda.is_initialized()


@contextlib.contextmanager
def _nothing_imported(torch):
    """A snapshot looks for torch._inductor, whose import would meet that of the
    program in another thread: in this thread, what was not imported is not
    there."""
    imports, here = torch.__getattr__, threading.get_ident()

    def find(name):
        if threading.get_ident() == here:
            raise AttributeError(name)
        return imports(name)

    torch.__getattr__ = find
    try:
        yield
    finally:
        torch.__getattr__ = imports


def write_trace(path):
    import torch
    with _nothing_imported(torch):
        torch.cuda.memory._dump_snapshot(path)


def _write_files():
    import torch
    base = os.path.join(FOLDER, str(os.getpid()))
    write_trace(base + ".part")
    notes = base + ".notes-part"
    _loaded[0].frag_dry_notes_write(os.fsencode(notes))
    with open(notes, "a", encoding="utf-8") as file:
        for fact in _facts(torch):
            file.write("%s\t%d\t%s\n" % fact)
        for (kind, text), count in sorted(_reads.items()):
            file.write("%s\t%d\t%s\n" % (kind, count, text.replace("\t", " ")))
    os.replace(notes, base + ".notes")
    os.replace(base + ".part", base + ".pickle")

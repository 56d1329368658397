"""A stand-in for PyTorch: the parts that traces/pytorch_record.py and
real/torch/fragsim_torch.py call, with
the signatures of PyTorch 2.1 or, without STANDIN_TORCH=2.1, of 2.11, and their
refusals. STANDIN_CUDA is the release of CUDA that PyTorch was built for, empty
for none. empty() allocates through the allocator in use. A dumped snapshot is a copy of the file $STANDIN_SNAPSHOT, and the
counters are those in the JSON file $STANDIN_STATS. Without STANDIN_GPUS=N there
is one GPU. run_out() is a request that fails."""
import collections
import ctypes
import json
import os
import shutil
import sys
import types

OLD = os.environ.get("STANDIN_TORCH") == "2.1"
GPUS = int(os.environ.get("STANDIN_GPUS", "1"))
TOTAL = 150109880320  # bytes, the memory of each GPU
LIMIT = None  # bytes, if a test sets it
__version__ = "2.1.2+cu121" if OLD else "2.11.0+cu130"

calls = []  # the arguments of each _cuda_record_memory_history
_observers = []
_state = {"ready": False, "history": False, "used": False, "process": None,
          "complete": False, "allocator": None}


class OutOfMemoryError(RuntimeError):
    pass


def _init():
    if GPUS == 0:
        raise RuntimeError("No CUDA GPUs are available")
    if _state["process"] not in (None, os.getpid()):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To "
                           "use CUDA with multiprocessing, you must use the "
                           "'spawn' start method")
    _state["ready"] = True
    _state["process"] = os.getpid()


def _index(device):
    if device is not None and not 0 <= device < GPUS:
        raise AssertionError("Invalid device id")
    return device or 0


def _started(enabled, **arguments):
    assert enabled in (None, "state", "all"), enabled
    calls.append({"enabled": enabled, **arguments})
    _state["history"] = enabled is not None


def _impl_2_1(enabled="all", context="all", stacks="all",
              max_entries=sys.maxsize, device=None):
    _started(enabled, context=context, stacks=stacks, max_entries=max_entries)


def _impl_2_11(enabled="all", context="all", stacks="all",
               max_entries=sys.maxsize, device=None, clear_history=False,
               compile_context=False, global_record_annotations=False,
               skip_actions=None):
    _started(enabled, context=context, stacks=stacks, max_entries=max_entries)


def _record_memory_history(enabled="all", *args, **kwargs):
    assert not isinstance(enabled, bool), "the form of PyTorch 2.0"
    return (_impl_2_1 if OLD else _impl_2_11)(enabled, *args, **kwargs)


def _dump(filename):
    assert _state["history"], "a snapshot without history"
    with open(filename, "wb") as file, \
            open(os.environ["STANDIN_SNAPSHOT"], "rb") as source:
        shutil.copyfileobj(source, file)


def _dump_2_1(filename="dump_snapshot.pickle"):
    _dump(filename)


def _dump_2_11(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    _dump(filename)


def _memory_stats(device=None):
    number = _index(device)
    if not _state["ready"]:
        return collections.OrderedDict()
    with open(os.environ["STANDIN_STATS"], encoding="utf-8") as file:
        stats = json.load(file)["stats"]
    return collections.OrderedDict(
        (name, value if number == 0 and _state["used"] else 0) for name, value in stats.items())


def _properties(device):
    _init()
    _index(device)
    return types.SimpleNamespace(total_memory=TOTAL)


def _attach(observer, /):
    _init()
    _observers.append(observer)


def work():
    _init()
    _state["used"] = True


def run_out(device=0):
    work()
    for observer in list(_observers):
        observer(device, 1 << 30, LIMIT or TOTAL, 1 << 20)
    raise OutOfMemoryError("CUDA out of memory.")


class _Allocator:
    """What CUDAPluggableAllocator.allocator() returns; the hooks are addresses
    of functions."""

    def __init__(self, library, allocate, free):
        self.allocate = getattr(library, allocate)
        self.allocate.restype = ctypes.c_void_p
        self.allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        getattr(library, free)

    def set_record_stream_fn(self, address):
        assert isinstance(address, int)

    def set_reset_fn(self, address):
        assert isinstance(address, int)


class CUDAPluggableAllocator:
    def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name):
        assert _state["complete"], "the import of torch is not complete"
        self._allocator = _Allocator(ctypes.CDLL(path_to_so_file), alloc_fn_name,
                                     free_fn_name)

    def allocator(self):
        return self._allocator


def _change_current_allocator(allocator):
    if _state["ready"]:
        raise RuntimeError("Can't swap an already initialized allocator")
    _state["allocator"] = allocator.allocator()


def empty(size):
    """Allocates on device 0; returns the address, None without a policy."""
    _init()
    if _state["allocator"] is None:
        return None
    return _state["allocator"].allocate(size, 0, None)


def compiled_with_cxx11_abi():
    return True


version = types.SimpleNamespace(
    cuda=os.environ.get("STANDIN_CUDA", "13.0") or None)
cuda = types.SimpleNamespace(
    init=_init, device_count=lambda: GPUS, current_device=lambda: 0,
    memory_stats=_memory_stats, get_device_properties=_properties,
    get_device_name=lambda device=None: "NVIDIA H200",
    is_initialized=lambda: _state["ready"],
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=CUDAPluggableAllocator,
        change_current_allocator=_change_current_allocator,
        _record_memory_history=_record_memory_history,
        _dump_snapshot=_dump_2_1 if OLD else _dump_2_11))
if not OLD:
    cuda.get_per_process_memory_fraction = \
        lambda device=None: (LIMIT or TOTAL) / TOTAL
distributed = types.SimpleNamespace(
    is_available=lambda: True, is_initialized=lambda: False,
    get_rank=lambda: 1 // 0)
_C = types.SimpleNamespace(
    _cuda_attach_out_of_memory_observer=_attach,
    _cuda_memoryStats=lambda device: {
        "num_ooms": 0, "allocation": {"all": {"allocated": 0, "freed": 0}}},
    _cuda_setMemoryFraction=lambda fraction, device: None,
    _accelerator_setAllocatorSettings=lambda text: None)
_state["complete"] = True

"""A stand-in for PyTorch under `fragsim dry`: a caching allocator that never
keeps a segment, on the CUDA runtime, with the functions of torch.cuda that
real/dry/fragsim_dry.py calls, by the signatures of PyTorch 2.11."""
import ctypes

from . import cuda
from .version import cuda as _release

# Found because `fragsim dry` loaded it: no path is known here.
__version__ = "2.11.0+cu130"
_C = cuda.native
_runtime = ctypes.CDLL("libcudart.so." + _release.split(".", maxsplit=1)[0])
cuda.start(_runtime)


def __getattr__(name):
    """As PyTorch's, which imports a module of its own at the first use."""
    if name == "_inductor":
        raise ImportError("expected a dry run to import nothing")
    raise AttributeError(name)


class OutOfMemoryError(RuntimeError):
    pass


class empty:
    """Memory of the device, until the object is deleted."""

    def __init__(self, size):
        cuda.init()
        at = ctypes.c_uint64()
        code = _runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size))
        if code:
            cuda.memory.note("oom", size, 0)
            raise OutOfMemoryError(f"CUDA out of memory, {size} bytes")
        self.at, self.size = at.value, size
        cuda.memory.note("segment_alloc", size, self.at)
        cuda.memory.note("alloc", size, self.at)

    def __del__(self):
        if hasattr(self, "at"):
            _runtime.cudaFree(ctypes.c_void_p(self.at))
            cuda.memory.note("free_requested", self.size, self.at)
            cuda.memory.note("free_completed", self.size, self.at)


def backward(size):
    """A block of a thread of PyTorch, which has no stack of Python."""
    cuda.memory.is_inside = True
    block = empty(size)
    cuda.memory.is_inside = False
    return block


def library(size):
    """Memory that a library takes from the device itself."""
    at = ctypes.c_uint64()
    _runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size))
    return ctypes.c_void_p(at.value)


def room():
    """Bytes of the device that are free."""
    cuda.init()
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    _runtime.cudaMemGetInfo(ctypes.byref(left), ctypes.byref(total))
    return left.value


def read(size):
    """Reads values that a kernel computed."""
    block, text = empty(2 << 20), ctypes.create_string_buffer(size)
    _runtime.cudaMemcpy(text, ctypes.c_void_p(block.at), ctypes.c_size_t(size), 2)
    return text.raw


def workspace():
    size = ctypes.c_int()
    ctypes.CDLL("libcusolver.so.12").cusolverDnSpotrf_bufferSize(
        None, 0, 8, None, 8, ctypes.byref(size))

"""cupy_log.py SCRIPTS SEED: random scripts on the memory pool of the CuPy that is
installed, as lines for log.cpp. Its functions that ask the CUDA runtime for the
device are replaced before the pool is imported, and its allocator is a device of
this script.

Of holes of equal size CuPy takes one by the address of a Python object. So that
few holes are equal, no two requests of a script have the same size.
"""
import ctypes
import random
import sys

import cupy_backends.cuda.api.runtime as runtime

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
api.PyCapsule_GetName.restype = ctypes.c_void_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]

kept = []  # functions that C calls
for word, value in ("getDevice", 0), ("getDeviceCount", 1):
    kept.append(ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(
        lambda _, value=value: value))
    runtime.__pyx_capi__[word] = api.PyCapsule_New(
        ctypes.cast(kept[-1], ctypes.c_void_p),
        api.PyCapsule_GetName(runtime.__pyx_capi__[word]), None)

import cupy  # noqa: E402  pylint: disable=wrong-import-position
from cupy.cuda import memory  # noqa: E402  pylint: disable=wrong-import-position

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
CAPACITY = 1 << 30


class Device:
    def __init__(self):
        self.used, self.next, self.sizes = 0, 1 << 32, {}

    def malloc(self, size, _):
        if size > CAPACITY - self.used:
            raise runtime.CUDARuntimeError(OUT_OF_MEMORY)
        addr = self.next
        self.next += size
        self.used += size
        self.sizes[addr] = size
        return addr

    def free(self, addr, _):
        self.used -= self.sizes.pop(addr)


def play(seed, out):
    dice = random.Random(seed)
    device = Device()
    pool = memory.SingleDeviceMemoryPool(
        memory.PythonFunctionAllocator(device.malloc, device.free).malloc)
    params = ""
    if dice.random() < 0.4:
        limit = dice.randrange(512, CAPACITY)
        pool.set_limit(limit)
        params = f":limit={limit}"
    out(f"s cupy{params} {CAPACITY}")
    streams = [cupy.cuda.ExternalStream(16 + i)
               for i in range(dice.randint(1, 3))]
    most = CAPACITY >> dice.randint(2, 8)
    live, sizes, count, fill = [], set(), 0, 0.5
    for step in range(300):
        if step % 50 == 0:
            fill = dice.uniform(0.2, 0.95)
        if dice.random() < 0.01:
            pool.free_all_blocks()
            out(f"! {device.used}")
        elif not live or dice.random() < fill:
            size = dice.randrange(1, int(most ** dice.uniform(0.5, 1)) + 600)
            if -(-size // 512) in sizes:
                continue
            sizes.add(-(-size // 512))
            stream = dice.randrange(len(streams))
            try:
                with streams[stream]:
                    block = pool.malloc(size)
                live.append((count, block))
                addr = block.ptr
                del block
            except memory.OutOfMemoryError:
                addr = 0
            out(f"a {size} {stream} {addr} {device.used}")
            count += 1
        else:
            number, block = live.pop(dice.randrange(len(live)))
            del block
            out(f"f {number} {device.used}")
    live.clear()


def main():
    count, first = map(int, sys.argv[1:])
    if first == 1:
        print(f"# CuPy {cupy.__version__}")
    for seed in range(first, first + count):
        lines = []
        play(seed, lines.append)
        print("\n".join(lines))


main()

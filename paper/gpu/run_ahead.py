#!/usr/bin/env python3
"""run_ahead.py OUT.csv EVENTS... [--kinds A,B,...]: what the pool of
cudaMallocAsync holds on a GPU, by how far the host runs ahead of the device.

EVENTS are files that ../shared/oracle/events.py makes of recordings (.events, or
.events.xz). Each is replayed with cudaMallocAsync and cudaFreeAsync in a process
of its own, once for each kind:

  sync          the device is synchronized after every free
  idle          no synchronization, nothing runs on the device
  keep          as idle, with an unlimited release threshold
  work8         as idle; a memset of 8 MiB follows every request on its stream
  work64        as work8, with 64 MiB: the host runs far ahead
  every100      as idle; the device is synchronized after every 100 requests

Needs a GPU and cuda.bindings. Rows: trace,kind,reserved_high_bytes,
used_high_bytes,requests,seconds.
"""
import argparse
import lzma
import multiprocessing
import os
import struct
import subprocess
import sys
import time

KINDS = ("sync", "idle", "keep", "work8", "work64", "every100")
ALLOC, FREE = 0, 1


def events_of(path):
    opened = lzma.open if path.endswith(".xz") else open
    with opened(path, "rb") as file:
        return list(struct.iter_unpack("<IIQQ", file.read()))


class Pool:
    """The default pool of device 0."""

    def __init__(self, kind):
        from cuda.bindings import driver, runtime
        self.runtime, self.kind = runtime, kind
        self.attributes = runtime.cudaMemPoolAttr
        self.get(runtime.cudaFree(0))
        self.pool = self.get(runtime.cudaDeviceGetDefaultMemPool(0))
        if kind == "keep":
            self.get(runtime.cudaMemPoolSetAttribute(
                self.pool, self.attributes.cudaMemPoolAttrReleaseThreshold,
                driver.cuuint64_t((1 << 64) - 1)))
        self.work = int(kind[4:]) << 20 if kind.startswith("work") else 0
        self.every = int(kind[5:]) if kind.startswith("every") else 0
        self.buffer = self.get(runtime.cudaMalloc(self.work)) if self.work else 0
        self.streams, self.live, self.requests = {0: 0}, {}, 0

    def get(self, answer):
        if int(answer[0]):
            raise MemoryError(str(answer[0]))
        return answer[1] if len(answer) > 1 else None

    def synchronize(self):
        self.get(self.runtime.cudaDeviceSynchronize())

    def stream(self, number):
        if number not in self.streams:
            self.streams[number] = self.get(
                self.runtime.cudaStreamCreateWithFlags(1))
        return self.streams[number]

    def alloc(self, name, size, number):
        stream = self.stream(number)
        self.live[name] = (
            self.get(self.runtime.cudaMallocAsync(size, stream)), stream)
        if self.work:
            self.get(self.runtime.cudaMemsetAsync(self.buffer, 0, self.work,
                                                  stream))
        self.requests += 1
        if self.every and self.requests % self.every == 0:
            self.synchronize()

    def free(self, name):
        self.get(self.runtime.cudaFreeAsync(*self.live.pop(name)))
        if self.kind == "sync":
            self.synchronize()

    def high(self, what):
        attribute = getattr(self.attributes, f"cudaMemPoolAttr{what}MemHigh")
        return int(self.get(self.runtime.cudaMemPoolGetAttribute(
            self.pool, attribute)))


def replay(path, kind, out):
    events, pool = events_of(path), Pool(kind)
    begin = time.time()
    for op, number, name, size in events:
        if op == ALLOC and size:
            pool.alloc(name, size, number)
        elif op == FREE and name in pool.live:
            pool.free(name)
        elif op not in (ALLOC, FREE):
            pool.synchronize()
    trace = os.path.basename(path).split(".")[0]
    print(trace, kind, pool.high("Reserved"), pool.high("Used"), pool.requests,
          f"{time.time() - begin:.3f}", sep=",", file=out, flush=True)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("events", nargs="+")
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    device = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=True).stdout.strip()
    with open(given.out, "w", encoding="utf-8") as out:
        print(f"# {device}, {time.strftime('%F')}; paper/gpu/run_ahead.py", file=out)
        print("trace,kind,reserved_high_bytes,used_high_bytes,requests,seconds",
              file=out, flush=True)
        for kind in given.kinds.split(","):
            for path in sorted(given.events):
                one = multiprocessing.get_context("fork").Process(
                    target=replay, args=(path, kind, out))
                one.start()
                one.join()
                if one.exitcode:
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

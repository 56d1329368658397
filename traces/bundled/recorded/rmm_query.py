"""rmm_query.py LOG: the memory requests of a query of three streams, logged by RMM's
LoggingResourceAdaptor. A reader loads chunks of columns, a worker filters them
and frees them, and a joiner joins them with a table."""
import json
import random
import sys

import rmm
from rmm.pylibrmm.stream import Stream


# Without a GPU: the blocks are addresses that this script makes up.
rmm.pylibrmm.memory_resource._memory_resource.getDevice = lambda: 0


class Handle:
    """A stream of another library: RMM reads its handle and calls nothing."""

    def __init__(self, number):
        self.number = number

    def __cuda_stream__(self):
        return (0, self.number)


LIMIT = 760 << 20
used, free, top = 0, {}, 0x7F1200000000


def allocate(size, stream):
    global used, top
    if used + size > LIMIT:
        raise MemoryError("no room")
    used += size
    if free.get(size):
        return free[size].pop()
    address, top = top, top + (size + 255) // 256 * 256
    return address


def deallocate(address, size, stream):
    global used
    used -= size
    free.setdefault(size, []).append(address)


statistics = rmm.mr.StatisticsResourceAdaptor(
    rmm.mr.CallbackMemoryResource(allocate, deallocate))
memory = rmm.mr.LoggingResourceAdaptor(statistics, log_file_name=sys.argv[1])
reader, worker, joiner = (Stream(Handle(n)) for n in
                          (0x55D0C8A1B2C0, 0x55D0C8A1C400, 0x55D0C8A1D540))
draw = random.Random(26)


def get(size, stream):
    try:
        return memory.allocate(size, stream), size, stream
    except MemoryError:
        return None


def put(block, stream=None):
    if block:
        memory.deallocate(block[0], block[1], stream or block[2])


table, kept = get(96 << 20, joiner), []
for chunk in range(60):
    columns = [get(draw.randrange(1 << 18, 12 << 20), reader)
               for _ in range(draw.randrange(3, 8))]
    mask = get(draw.randrange(1 << 16, 1 << 19), worker)
    filtered = [get(max(1, c[1] * draw.randrange(10, 90) // 100), worker)
                for c in columns]
    for column in columns:
        put(column, worker)
    put(mask)
    hashes = get(draw.randrange(1 << 20, 24 << 20), joiner)
    kept.append(get(draw.randrange(1 << 16, 6 << 20), joiner))
    for block in filtered:
        put(block, joiner if chunk % 3 else worker)
    put(hashes)
    if len(kept) > 12:
        put(kept.pop(draw.randrange(len(kept))), reader if chunk % 2 else joiner)
put(get(700 << 20, joiner), worker)
put(get(300 << 20, joiner), worker)
for block in kept:
    put(block)
put(table)
memory.flush()
counts = statistics.allocation_counts
if not isinstance(counts, dict):  # a class in older versions
    counts = vars(counts)
print(json.dumps(counts, indent=1))

#!/usr/bin/env python3
"""large_snapshot.py SNAPSHOT.pickle.xz BYTES OUT.pickle: writes a snapshot of about
BYTES bytes, which repeats the history of a bundled one, for measurements.

Each repetition has addresses of its own, and ends with the frees of its live blocks
and of its segments, so that the next one begins with an empty device and `fragsim
validate` finds the whole file exact. The pickle is written as Python's pickler writes
it: each text once, then by its number. It is not built in memory."""
import lzma
import pickle
import struct
import sys

STRIDE = 1 << 38  # bytes between the addresses of two repetitions
PLACES = 64       # so many repetitions have addresses of their own
SMALL = 2 << 20   # bytes of a segment of small blocks


class Writer:
    def __init__(self, out):
        self.out = out
        self.memo = {}   # the number of each text
        self.numbers = 0
        self.out.write(b"\x80\x04")

    def memoize(self):
        self.numbers += 1
        return b"\x94"

    def text(self, value):
        if value in self.memo:
            number = self.memo[value]
            return b"h%c" % number if number < 256 else b"j" + struct.pack("<I", number)
        data = value.encode()
        self.memo[value] = self.numbers
        return b"X" + struct.pack("<I", len(data)) + data + self.memoize()

    def value(self, value):
        """The bytes of a value. A dict or list takes a number, as the pickler's."""
        if isinstance(value, str):
            return self.text(value)
        if value is None:
            return b"N"
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, dict):
            return b"}" + self.memoize() + b"(" + b"".join(
                self.value(k) + self.value(v) for k, v in value.items()) + b"u"
        if isinstance(value, list):
            return b"]" + self.memoize() + b"(" + b"".join(map(self.value, value)) + b"e"
        if isinstance(value, tuple):
            return b"(" + b"".join(map(self.value, value)) + b"t" + self.memoize()
        return pickle.dumps(value, 4)[2:-1] if abs(value) < 1 << 31 else long(value)


def long(value):
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a%c" % len(data) + data


def closing(entries):
    """The entries that free what is live at the end, and then every segment."""
    live, segments = {}, {}
    for e in entries:
        if e["action"] == "alloc":
            live[e["addr"]] = e
        elif e["action"] == "free_completed":
            live.pop(e["addr"], None)
        elif e["action"] == "segment_alloc":
            segments[e["addr"]] = e
        elif e["action"] == "segment_free":
            segments.pop(e["addr"], None)
    frees = [dict(e, action=action) for e in live.values()
             for action in ("free_requested", "free_completed")]
    # PyTorch's order: the pool of large blocks first, and in a pool by size.
    order = sorted(segments.values(),
                   key=lambda e: (e["size"] == SMALL, e["size"], e["addr"]))
    return frees + [dict(e, action="segment_free") for e in order]


def append(out, parts, offset):
    out.write(b"(" + b"".join(before + long(addr + offset) + after
                              for addr, before, after in parts) + b"e")


def main():
    source, size, path = sys.argv[1], int(float(sys.argv[2])), sys.argv[3]
    with lzma.open(source) as file:
        snapshot = pickle.load(file)
    entries = snapshot["device_traces"][0]
    whole = entries + closing(entries)
    with open(path, "wb") as out:
        writer = Writer(out)
        out.write(b"}(")
        for key, value in snapshot.items():
            if key != "device_traces":
                out.write(writer.text(key) + writer.value(value))
        out.write(writer.text("device_traces") + b"](]")
        for e in whole:  # each text gets its number
            for text in (*e, *(v for v in e.values() if isinstance(v, str))):
                if text not in writer.memo:
                    out.write(writer.text(text) + b"0")
        # The bytes before, and after, the address of each entry. Dicts keep order.
        parts = [(e["addr"],) + tuple(writer.value(e).split(long(e["addr"]), 1))
                 for e in whole]
        place = 0
        while out.tell() < size:
            place = place % PLACES + 1
            append(out, parts, place * STRIDE)
        append(out, parts[:len(entries)], 0)
        out.write(b"eu.")


if __name__ == "__main__":
    main()

"""long_logs.py: logs of any length in each input format, for the checks of
memory and signals and for bench/import.sh. An event pair is an allocation and
its free. usage: long_logs.py FORMAT PAIRS [OTHERS]   writes a log to stdout
"""
import json
import pickle
import pickletools
import struct
import sys

RECORD_ALLOC, RECORD_FREE = 1, 4
RMM_TIME = "05:50:42.600038"


def bare_pickle(value):
    """The opcodes of a value, without the header, the memo and the end."""
    return pickletools.optimize(pickle.dumps(value, 2))[2:-1]


def kineto_event(bytes_, time):
    return json.dumps({"ph": "i", "cat": "cpu_instant_event", "s": "t",
                       "name": "[memory]", "pid": 1, "tid": 1, "ts": time,
                       "args": {"Total Reserved": 4096, "Device Type": 1,
                                "Total Allocated": max(bytes_, 0),
                                "Device Id": 0, "Addr": 4096,
                                "Bytes": bytes_, "Ev Idx": 1}}) + ",\n"


def record_call(kind, number, time):
    return struct.pack("<IiiI4QQQ", kind, 0, 0, 0, 4096, number, 0, 0, time, 0)


def torch_event(action):
    return bare_pickle({"action": action, "addr": 4096, "size": 512,
                        "stream": 0, "time_us": 7, "frames": []})


# A kineto event that no importer keeps.
OTHER = json.dumps({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": 1,
                    "pid": 1, "tid": 1, "dur": 2,
                    "args": {"External id": 4, "Sequence number": 7}}) + ",\n"

# Of each format: what begins the log, a pair of events (of a number), the end.
FORMATS = {
    "csv": (b"op,id,bytes,stream\n",
            lambda n: f"alloc,{n},4096,0\nfree,{n},,0\n".encode(), b""),
    "static": (b"id,lower,upper,size\n",
               lambda n: f"{n},{n},{n + 1},512\n".encode(), b""),
    "rmm": (b"Thread,Time,Action,Pointer,Size,Stream\n",
            lambda n: (f"7,{RMM_TIME},allocate,0x7f0000b6ca00,256,0x1\n"
                       f"7,{RMM_TIME},free,0x7f0000b6ca00,256,0x1\n").encode(),
            b""),
    "kineto": (b'{"schemaVersion": 1, "traceEvents": [\n',
               lambda n: (kineto_event(512, n) +
                          kineto_event(-512, n + .5)).encode(),
               b'{"ph": "M", "name": "end"}]}\n'),
    "torch": (b"\x80\x02}(" + bare_pickle("segments") + b"]"
              + bare_pickle("device_traces") + b"](](",
              lambda n: torch_event("alloc") + torch_event("free_requested")
              + torch_event("free_completed"), b"eeu."),
    "record": (struct.pack("<8sIIQQQ64s", b"fragrec\n", 2, 64, 7, 1, 0,
                           b"program").ljust(4096, b"\0"),
               lambda n: record_call(RECORD_ALLOC, 64, 2 * n + 2)
               + record_call(RECORD_FREE, 0, 2 * n + 3), b""),
}
PAIRS_AT_ONCE = 1000


def parts(form, pairs=None, others=0, whole=True):
    """The bytes of a log of so many pairs (None: without an end), a part at a
    time; if not whole, without the text that ends a log. For kineto: `others`
    events of other kinds with each pair."""
    head, pair, tail = FORMATS[form]
    yield head
    extra = OTHER.encode() * others if form == "kineto" else b""
    done = 0
    while pairs is None or done < pairs:
        count = PAIRS_AT_ONCE if pairs is None else min(PAIRS_AT_ONCE,
                                                        pairs - done)
        yield b"".join(pair(n) + extra for n in range(done, done + count))
        done += count
    if whole:
        yield tail


def main():
    for part in parts(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:])):
        sys.stdout.buffer.write(part)
    return 0


if __name__ == "__main__":
    sys.exit(main())

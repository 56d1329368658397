#!/usr/bin/env python3
"""check_dry_causes.py: the causes that paper/tables/dry_causes.py names.

Two histories are made of one program, of which one lacks or changes a part; the cause
must be that part.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "paper", "tables"))
import dry_causes  # noqa: E402  pylint: disable=wrong-import-position

KIB, MIB = 1 << 10, 1 << 20
AUTOCAST = {"frames": [{"filename": "torch/amp/autocast_mode.py", "name": "__exit__"}]}
NOTHING = {"threads": False, "reads": False}


def entry(action, size, addr, **more):
    return {"action": action, "size": size, "addr": addr, "stream": 0, **more}


def freed(size, addr, **more):
    return [entry("free_requested", size, addr, **more), entry("free_completed", size, addr)]


def program(order=(0, 1, 2), workspace=0, count=3 * MIB, late=False, base=256 * MIB,
            **more):
    """Blocks of which three are freed in an order, a workspace, a block of a size that
    may be read, and one that another stream used."""
    trace = [entry("segment_alloc", 64 * MIB, base), entry("segment_alloc", MIB, 2 * base)]
    sizes = [MIB + 512 * n for n in range(3)]
    trace += [entry("alloc", size, base + 4 * MIB * n) for n, size in enumerate(sizes)]
    for n in order:
        trace += freed(sizes[n], base + 4 * MIB * n, **more)
    for _ in range(60):
        trace += [entry("alloc", KIB, 2 * base), *freed(KIB, 2 * base)]
    if workspace:
        trace += [entry("alloc", workspace, base), *freed(workspace, base)]
    trace += [entry("alloc", KIB, 2 * base + KIB * n) for n in range(60)]
    trace += [entry("alloc", count, base), entry("alloc", MIB, base + 16 * MIB)]
    trace += [entry("free_requested", MIB, base + 16 * MIB)]
    last = [entry("free_completed", MIB, base + 16 * MIB),
            entry("alloc", KIB, 2 * base + 80 * KIB)]
    return trace + (last[::-1] if late else last) + [
        entry("alloc", KIB, 2 * base + KIB * n) for n in range(90, 150)] + freed(count, base)


def tied(first, size):
    """Two free blocks of the same size; the next request takes the first or the second,
    and needs `size` more from the driver."""
    a, b = 256 * MIB, 512 * MIB
    trace = [entry("segment_alloc", 20 * MIB, a), entry("segment_alloc", 20 * MIB, b),
             entry("alloc", 2 * MIB, a), entry("alloc", 2 * MIB, b)]
    trace += [entry("alloc", MIB, (a, b)[first] + 2 * MIB)]
    return trace + [entry("segment_alloc", size, 1 << 30)]


def cause(dry, recorded, **facts):
    found = dry_causes.compare([dry], [recorded], NOTHING | facts)
    return found.get("cause"), found.get("differences")


def main():
    plain = program()
    assert cause(plain, program(base=1 << 30)) == (None, None)
    assert cause(program(**AUTOCAST), program((2, 0, 1))) == ("autocast", "autocast:1")
    assert cause(plain, program((2, 0, 1))) == ("frees", "frees:1")
    assert cause(plain, program(workspace=4096)) == ("workspace", "workspace:1")
    assert cause(program(workspace=512), program(workspace=4096)) == (
        "workspace", "workspace:1")
    other = program(count=4 * MIB)
    assert cause(plain, other)[0] == "unexplained", cause(plain, other)
    assert cause(plain, other, reads=True)[0] == "values"
    assert cause(plain, other, threads=True)[0] == "threads"
    assert cause(plain, program(late=True))[0] == "streams"
    assert cause(tied(0, MIB), tied(1, 2 * MIB)) == ("tie", "tie:1")
    both = cause(program(**AUTOCAST), program((2, 0, 1), workspace=4096))
    assert both == ("autocast", "autocast:1 workspace:1"), both
    print("check_dry_causes: 11 pairs of histories")
    return 0


if __name__ == "__main__":
    sys.exit(main())

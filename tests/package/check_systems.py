#!/usr/bin/python3
"""check_systems.py: systems other than those of 64 bits with little-endian numbers.
CMake refuses a compiler for 32 bits, in words. A trace file whose columns are
big-endian, as a program on such a system writes them with h5py, gives the answers of the
little-endian one. (A recorder's log of the other byte order: test_import_record.)
"""
import json
import os
import platform
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, ROOT, output, run

TRACES = ["gpt2_train.pickle.xz", "multistream.pickle.xz"]


def check_32_bits(folder):
    if platform.machine() != "x86_64":
        return "32 bits: not tried, which needs a compiler with -m32"
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_C_FLAGS=-m32",
         # no program is linked, which would need libraries of 32 bits
         "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"],
        capture_output=True, text=True, check=False)
    words = " ".join(done.stderr.split())
    assert done.returncode == 1 and "expected a 64-bit system" in words \
        and "makes programs of 32 bits" in words, done
    return "32 bits: refused"


def turn_around(source, target):
    """Copies an HDF5 file; the numbers of its datasets become big-endian. The number of
    datasets that changed."""
    import h5py
    changed = 0
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        new.attrs.update(old.attrs)

        def copy(name, item):
            nonlocal changed
            if isinstance(item, h5py.Group):
                made = new.require_group(name)
            else:
                made = new.create_dataset(name, data=item[()].astype(
                    item.dtype.newbyteorder(">")))
                kinds = made.dtype.descr if made.dtype.names else [("", made.dtype.str)]
                changed += any(kind.startswith(">") for _, kind in kinds)
            made.attrs.update(item.attrs)

        old.visititems(copy)
    return changed


def answers(folder, name):
    rows = json.loads(output("replay", name, "-p", "torch", "-p", "best_fit", "-c",
                             "inf,1.05x", "-q", "--json", "-", cwd=folder))["results"]
    for row in rows:
        del row["ns_per_event"], row["trace"]
    return [rows, output("validate", name, cwd=folder).replace(name, ""),
            output("export", name, "--to", "csv", cwd=folder)]


def check_big_endian(folder):
    try:
        import h5py # noqa: F401
    except ImportError:
        return "big-endian: not tried, because h5py is absent"
    for trace in TRACES:
        run("import", os.path.join(BUNDLED, trace), "-q", "-f", "-o", "little.h5",
            cwd=folder)
        changed = turn_around(os.path.join(folder, "little.h5"),
                              os.path.join(folder, "big.h5"))
        assert changed > 8, changed
        assert answers(folder, "big.h5") == answers(folder, "little.h5"), trace
    return "big-endian: same answers"


def main():
    with tempfile.TemporaryDirectory() as folder:
        print(check_32_bits(folder))
        print(check_big_endian(folder))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_portable.py: the wheels of sim/python/wheel.sh.

portable.py refuses a wheel for each thing that it must not ask of a system; that is
tried on small wheels, without those of fragsim. Then for each wheel in build-wheel/:
portable.py accepts it; its tool answers as the tool of this build does, byte for byte,
also under qemu for another processor, and in each system in build-wheel/roots/ (as root;
sim/libraries/README.md), where pip installs it if it is there; and its libraries live in
one process with h5py's HDF5, whichever is loaded first. check_wheel.sh tries the
installed package. The tool for musl, if it was built, answers the same. What is absent
is named. A wheel of another commit is not tried; FRAG_WHEEL_BUILD=1 builds the wheels
first, which takes minutes.
"""
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, SANITIZED

FOLDER = os.path.join(ROOT, "build-wheel")
PORTABLE = os.path.join(ROOT, "sim", "python", "portable.py")
DEBIANS = "/usr/bin/python3"  # has python3-h5py
MACHINE = platform.machine()
TRACES = sorted(map(os.path.basename, glob.glob(os.path.join(BUNDLED, "*.pickle.xz"))))
LIBRARY = "fragsim/lib/libfragsim.so"

# A name in a wheel, a source, options of cc, and what portable.py must say of it.
FAULTS = [
    (LIBRARY, "int frag_x;", "", None),
    (LIBRARY, "int frag_x, H5open, gsl_y;", "",
     "exports 2 symbols that are not its own: ['H5open', 'gsl_y']"),
    (LIBRARY, "int frag_x;", "-Wl,--no-as-needed -lz", "needs libz.so.1"),
    (LIBRARY, "int frag_x;", "-Wl,--no-as-needed -lm", None),
    (LIBRARY, "int memfd_create(const char *, unsigned);"
              "int frag_x(void) { return memfd_create(0, 0); }", "",
     "asks for glibc 2.27"),
    ("fragsim/lib/libother.so", "int frag_x;", "", "has no row"),
    ("fragsim/text", None, "", "no library or program"),
]


def judge(wheel):
    return subprocess.run([sys.executable, PORTABLE, wheel], capture_output=True,
                          text=True, check=False)


def expect(wheel, words):
    done = judge(wheel)
    assert done.returncode == (1 if words else 0), (wheel, words, done)
    assert (words or "") in done.stderr, (words, done.stderr)


def check_judge(folder):
    """portable.py on wheels with one fault each."""
    if MACHINE not in ("x86_64", "aarch64"):
        return "portable.py knows no wheel of this processor"
    for program in ("gcc", "readelf"):
        if not shutil.which(program):
            return f"{program} is absent"
    wheel = os.path.join(folder, f"a-1-py3-none-manylinux_2_17_{MACHINE}.whl")
    for name, source, options, words in FAULTS:
        library = os.path.join(folder, "a.so")
        if source:
            subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library,
                            *options.split()], input=source, text=True, check=True)
        with zipfile.ZipFile(wheel, "w") as made:
            if source:
                made.write(library, name)
            else:
                made.writestr(name, "a text")
        expect(wheel, words)
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("fragsim/data", os.urandom(4_000_001))
    expect(wheel, "more than 4000000")
    subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library],
                   input="int frag_x;", text=True, check=True)
    other = "aarch64" if MACHINE == "x86_64" else "x86_64"
    for tag, words in ((f"manylinux_2_17_{other}", f"expected code for {other}"),
                       (f"linux_{MACHINE}", "expected manylinux_X_Y_PROCESSOR")):
        wheel = os.path.join(folder, f"a-1-py3-none-{tag}.whl")
        with zipfile.ZipFile(wheel, "w") as made:
            made.write(library, LIBRARY)
        expect(wheel, words)
    return None


def told(start, *arguments):
    done = subprocess.run([*start, *arguments], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, (start, arguments, done.stderr)
    return done.stdout


def answers(start):
    """What a tool prints and writes. `start` is its command line without arguments, in a
    folder with the traces; the tool writes there."""
    found = {trace: told(start, "validate", trace) for trace in TRACES}
    told(start, "import", TRACES[0], "-f", "-q", "-o", "made.h5")
    found["a trace that it wrote"] = told(start, "validate", "made.h5")
    rows = json.loads(told(start, "replay", "made.h5", "-p", "torch", "-p", "best_fit",
                           "-c", "inf,1.05x", "-q", "--json", "-", "-f", "-o",
                           "results.h5"))["results"]
    for row in rows:
        del row["ns_per_event"]
    found["rows"] = rows
    found["results that it wrote"] = told(start, "diff", "results.h5", "results.h5")
    return found


def same(found, expected, who):
    for key, value in expected.items():
        assert found[key] == value, f"{who}: {key}: {found[key]}, not {value}"


def in_folder(folder, *start):
    return ["sh", "-c", 'cd "$0" && exec "$@"', folder, *start]


def unpack(wheel, folder):
    """Unpacks a wheel as pip does, which makes the programs executable."""
    with zipfile.ZipFile(wheel) as zipped:
        for info in zipped.infolist():
            path = zipped.extract(info, folder)
            if info.external_attr >> 16 & 0o100:
                os.chmod(path, 0o755)


# Reads and writes a trace file by the library while h5py has files open.
BESIDE = """
import ctypes, sys
library, torch_library, trace, made, first = sys.argv[1:]

def ours():
    global lib
    lib = ctypes.CDLL(library)
    ctypes.CDLL(torch_library)

def theirs():
    global h5py
    import h5py

(ours(), theirs()) if first == "ours" else (theirs(), ours())
words = ctypes.create_string_buffer(512)
with h5py.File(trace) as file, h5py.File(made + ".theirs", "w") as other:
    count = len(file["devices/0/events/op"])
    other["x"] = [1, 2, 3]
    kept = ctypes.c_void_p()
    assert lib.frag_trace_open(trace.encode(), None, ctypes.byref(kept), words) == 0, \\
        words.value
    assert lib.frag_trace_write(kept, made.encode(), words) == 0, \\
        words.value
    lib.frag_trace_close(kept)
    other["y"] = file["devices/0/events/op"][:]
with h5py.File(made) as file, h5py.File(made + ".theirs") as other:
    assert (file["devices/0/events/op"][:] == other["y"][:]).all()
    assert len(other["y"]) == count > 100 and list(other["x"]) == [1, 2, 3]
print(h5py.version.hdf5_version)
"""


def check_beside(site, trace, folder):
    """The libraries of the wheel in one process with h5py."""
    versions = set()
    for python in {DEBIANS, sys.executable}:
        if subprocess.run([python, "-c", "import h5py"], capture_output=True,
                          check=False).returncode:
            continue
        for first in ("ours", "theirs"):
            done = subprocess.run(
                [python, "-c", BESIDE, os.path.join(site, LIBRARY),
                 os.path.join(site, "fragsim/lib/fragsim/libfragsim_torch.so"), trace,
                 os.path.join(folder, f"beside_{first}.h5"), first],
                capture_output=True, text=True, check=False)
            assert done.returncode == 0, (python, first, done)
            versions.add(done.stdout.strip())
            for name in glob.glob(os.path.join(folder, "beside_*")):
                os.remove(name)
    return versions


def check_libraries(site, folder, start):
    """Every library of the wheel finds all its symbols: in itself, in the C library, or in
    the stand-ins of one release of CUDA; how many there are. The recorder, which takes
    the place of other libraries' functions, is alone."""
    libraries = glob.glob(os.path.join(site, "**", "*.so*"), recursive=True)
    recorder = [name for name in libraries if name.endswith("_record.so")]
    assert len(recorder) == 1 and len(libraries) > 20, libraries
    sets = [recorder] + [
        [name for name in libraries if f"/dry/{other}/" not in name and name not in recorder]
        for other in (12, 13)]
    for together in sets:
        done = subprocess.run(
            in_folder(folder, "env", "LD_BIND_NOW=1", f"LD_PRELOAD={':'.join(together)}",
                      *start, "--version"), capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, (together, done.stderr)
    return len(libraries)


def check_root(root, wheel, expected):
    """The wheel in the system of another folder; why not, if it is not tried."""
    place = tempfile.mkdtemp(dir=os.path.join(root, "tmp"))
    inside = place[len(root):]
    try:
        for trace in TRACES:
            shutil.copy(os.path.join(BUNDLED, trace), place)
        shutil.copy(wheel, place)
        start = ["chroot", root, *in_folder(inside, "env", "-u", "FRAGSIM",
                                            "PYTHONPATH=site", "python3", "-m")]
        installed = subprocess.run([*start, "pip", "install", "-q", "--no-index",
                                    "--target", "site", os.path.basename(wheel)],
                                   capture_output=True, text=True, check=False)
        how = "pip"
        if "No module named pip" in installed.stderr:
            how = "unpacked"
            unpack(wheel, os.path.join(place, "site"))
        else:
            assert installed.returncode == 0, installed.stderr
        same(answers([*start, "fragsim"]), expected, root)
        libc = told(["chroot", root, "ldd", "--version"]).splitlines()[0]
        return f"{os.path.basename(root)} ({how}; {libc})"
    finally:
        shutil.rmtree(place)


def check_wheel(wheel, folder, expected):
    """One wheel; returns what was tried, and what was not."""
    machine = re.search(r"manylinux_\d+_\d+_(\w+)\.", wheel + ".").group(1)
    site = os.path.join(folder, "site_" + machine)
    unpack(wheel, site)
    program = os.path.join(site, "fragsim", "bin", "fragsim")
    runner = []
    if machine != MACHINE:
        qemu = f"qemu-{machine}-static"
        if not shutil.which(qemu) or not os.path.isdir(f"/usr/{machine}-linux-gnu"):
            return f"not run, because {qemu} or its C library is absent"
        runner = [qemu, "-L", f"/usr/{machine}-linux-gnu"]
    start = in_folder(folder, *runner, program)
    own, wheels = (told(one, "--version").splitlines()[0]
                   for one in (in_folder(folder, FRAGSIM), start))
    if own != wheels:
        return f"not run: it is {wheels}, and this build is {own}"
    expect(wheel, None)
    same(answers(start), expected, wheel)
    tried = ["same answers" + (" under qemu" if runner else ""),
             f"{check_libraries(site, folder, [*runner, program])} libraries load"]
    if runner:
        return ", ".join(tried)
    versions = check_beside(site, os.path.join(folder, "made.h5"), folder)
    tried += [f"beside h5py with HDF5 {versions or '(absent)'}"]
    for root in sorted(glob.glob(os.path.join(FOLDER, "roots", "*"))):
        tried.append(check_root(root, wheel, expected) if os.geteuid() == 0
                     else f"{root} not tried, which needs root")
    done = subprocess.run([os.path.join(ROOT, "tests", "package", "check_wheel.sh"), wheel],
                          capture_output=True, text=True, check=False)
    assert done.returncode in (0, 77), done
    return ", ".join([*tried, done.stdout.splitlines()[-1]])


def check_static(program, folder, expected):
    """The tool of sim/libraries/tool.sh for musl."""
    start = in_folder(folder, program)
    own, its = (told(one, "--version") for one in (in_folder(folder, FRAGSIM), start))
    if own != its:
        return f"not run: it is {its.splitlines()[0]}"
    assert "NEEDED" not in told(["readelf", "-d", program]), program
    same(answers(start), expected, program)
    return "same answers, and no library"


def main():
    with tempfile.TemporaryDirectory() as folder:
        lacking = check_judge(folder)
        print("portable.py:", lacking or "refuses what it must")
        if SANITIZED:
            return
        if os.environ.get("FRAG_WHEEL_BUILD"):
            subprocess.run([os.path.join(ROOT, "sim", "python", "wheel.sh")], check=True)
        wheels = glob.glob(os.path.join(FOLDER, "*.whl"))
        programs = glob.glob(os.path.join(FOLDER, f"{MACHINE}-linux-musl", "fragsim"))
        if not wheels and not programs:
            print("no wheel is tried; sim/python/wheel.sh makes those in build-wheel/")
            return
        for trace in TRACES:
            shutil.copy(os.path.join(BUNDLED, trace), folder)
        expected = answers(in_folder(folder, FRAGSIM))
        for wheel in wheels:
            print(f"{os.path.basename(wheel)}: {check_wheel(wheel, folder, expected)}")
        for program in programs:
            print(f"for musl: {check_static(program, folder, expected)}")


if __name__ == "__main__":
    main()

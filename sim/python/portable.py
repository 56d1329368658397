"""portable.py WHEEL...: judges whether wheels run where their names say. Each library
and program of a wheel
  - is for the processor of the tag manylinux_X_Y_PROCESSOR, and asks for no symbol of
    a glibc after X.Y;
  - needs no library but glibc's, and those of the wheel;
  - exports its own symbols only, so that no other library of a process, such as
    another HDF5, finds symbols of those that are linked into it.
The wheel is no larger than LARGEST bytes. Exit code 1 if a wheel does not comply.
Needs readelf, which reads files of any processor."""
import os
import re
import subprocess
import sys
import tempfile
import zipfile

LARGEST = 4_000_000
GLIBC = r"(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux[-\w]*\.so\.\d)$"
MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64"}
# The recorder and the stand-ins have names of CUDA's libraries, because a program calls
# them by these; the recorder also has those by which a program finds them.
OWN = [
    (r"fragsim/bin/fragsim$", r"$^"),
    (r"fragsim/lib/libfragsim\.so", r"frag_\w+$"),
    (r"fragsim/lib/fragsim/libfragsim_torch\.so$", r"frag_torch_\w+$"),
    (r"fragsim/lib/fragsim/libfragsim_record\.so$",
     r"(frag_\w+|cu[A-Z]\w+|cuda[A-Z]\w+|dlsym|dlvsym|dlopen|dlmopen|dlclose)$"),
    (r"fragsim/lib/fragsim/dry/", r"(frag_dry_|p?nccl|cu|nv|__cuda|__nvrtc|_ZN3c10)\w+$"),
]


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, text=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C"}).stdout


def exported(path):
    """The symbols that a library has for others; one without a type is the name of a
    version."""
    found = set()
    for line in readelf(path, "--dyn-syms").splitlines():
        words = line.split()
        if (len(words) == 8 and words[4] in ("GLOBAL", "WEAK", "UNIQUE")
                and words[6] not in ("UND", "ABS")):
            found.add(words[7].split("@")[0])
    return found


def newest_glibc(path):
    versions = re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", readelf(path, "--version-info"))
    return max((tuple(map(int, one.split("."))) for one in versions), default=(0,))


def judge_library(path, name, inside, tag):
    """The reasons why one library or program of a wheel does not comply."""
    machine = re.search(r"Machine:\s+(.*)", readelf(path, "-h")).group(1)
    if MACHINES[tag["machine"]] not in machine:
        yield f"expected code for {tag['machine']}, found {machine}"
    newest = newest_glibc(path)
    allowed = (int(tag["major"]), int(tag["minor"]))
    if newest > allowed:
        yield (f"asks for glibc {'.'.join(map(str, newest))}, the wheel's tag promises "
               f"{'.'.join(map(str, allowed))}")
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "--dynamic")):
        if not re.match(GLIBC, needed) and needed not in inside:
            yield f"needs {needed}, which is not of glibc and not in the wheel"
    own = next((own for where, own in OWN if re.match(where, name)), None)
    if own is None:
        yield "portable.py has no row that says which symbols are its own"
        return
    foreign = sorted(one for one in exported(path) if not re.match(own, one))
    if foreign:
        yield f"exports {len(foreign)} symbols that are not its own: {foreign[:5]}"


def judge(wheel):
    """The reasons why a wheel does not comply, and a line of what was found."""
    tag = re.search(r"manylinux_(?P<major>\d+)_(?P<minor>\d+)_(?P<machine>x86_64|aarch64)\b",
                    os.path.basename(wheel))
    if not tag:
        return [f"{wheel}: expected manylinux_X_Y_PROCESSOR in the name"], ""
    size = os.path.getsize(wheel)
    wrong = [f"{size} bytes, more than {LARGEST}"] if size > LARGEST else []
    libraries, newest = 0, (0,)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as zipped:
        inside = {os.path.basename(name) for name in zipped.namelist()}
        for name in zipped.namelist():
            path = zipped.extract(name, folder)
            if os.path.isdir(path):
                continue
            with open(path, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            wrong += [f"{name}: {why}" for why in judge_library(path, name, inside, tag)]
            libraries += 1
            newest = max(newest, newest_glibc(path))
    if not libraries:
        wrong.append("there is no library or program in it")
    return wrong, (f"{size} bytes, {libraries} libraries and programs, glibc "
                   f"{'.'.join(map(str, newest))}")


def main():
    code = 0
    for wheel in sys.argv[1:]:
        wrong, found = judge(wheel)
        for why in wrong:
            print(f"{os.path.basename(wheel)}: {why}", file=sys.stderr)
        code = 1 if wrong else code
        print(f"{os.path.basename(wheel)}: {found}")
    sys.exit(code)


if __name__ == "__main__":
    main()

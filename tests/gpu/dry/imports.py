#!/usr/bin/env python3
"""imports.py PLACE...: writes imports.csv anew: the functions of CUDA's libraries that
PyTorch and packages beside it import. A place is an environment that `fragsim dry
--setup` made, for a release of PyTorch with torchvision, triton and cuDNN, or a wheel.
Rows of the table for packages that are not among the places stay.

Columns: `function`; `how`: linked (an undefined symbol of a library, or of what Triton
compiles) or name (found by its name at run time); `torch`: the first and the last of
the releases whose libraries have it; `others`: the wheels.

Names are whole strings in a library; those of the driver count if Triton's copy of
cuda.h has them. Python calls NVML by pynvml, of which vLLM has a copy, and has names in
ctypes. A library that asks the driver by cuGetProcAddress, as cuDNN and whatever has
CUDA's runtime inside of it do for about 400 names, gets a function for each: its names
are left out. The table has the first and the last release alone, so name all of them.
"""
import csv
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "imports.csv")
PACKAGES = ["torch", "torchvision", "triton", "nvidia/cudnn"]  # of an environment
COLUMNS = ["function", "how", "torch", "others"]
PREFIXES = r"(?:__cuda|cuda|cu|nvml|nccl|cublas|cublasLt|cudnn|nvrtc|__nvrtc|cufft|" \
    r"cusolver(?:Dn)?|cusparse(?:Lt)?|curand|cupti|cuFile|nvshmemx?_|nvshmemid_)"
LINKED = re.compile(PREFIXES + r"(?:[A-Z]|(?<=_)[a-z])\w*$")
# Strings: of libraries that are not linked with what they look up.
NAMED = re.compile(rb"\0((?:cu|nvml|nvrtc|cublasLt|cublas|cupti)[A-Z][a-z][A-Za-z0-9]+"
                   rb"(?:_v\d)?)(?=\0)")
# Such strings that are no functions: types, and words of messages.
NO_FUNCTIONS = {"cublasContext", "cublasLtContext", "cublasLtMatmulScaleMode",
                "cublasOpFromChar", "cublasHeuristicsQueryFailed", "cuptiLibPath",
                "cuptiStallName"}
QUOTED = re.compile(r"""(?:Function\(\s*["']|\b(?:libcuda|libnvrtc|nvrtc|lib)\.)"""
                    r"""((?:cu|cuda|nccl|nvrtc)[A-Z]\w+)""")
PYNVML = re.compile(r"\bpynvml\.(nvml[A-Z]\w+)")


def symbols(path, which):
    done = subprocess.run(["nm", "-D", which, path], text=True, capture_output=True,
                          check=False)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def strings(path):
    with open(path, "rb") as file:
        found = {one.decode() for one in NAMED.findall(file.read())}
    if found & {"cuGetProcAddress", "cuGetProcAddress_v2"}:
        found = {one for one in found if not re.match("cu[A-Z]", one)}
    return {one for one in found if one not in NO_FUNCTIONS
            and not one.endswith(("_t", "_st"))}


class Names:
    """What turns names into functions: cuda.h and pynvml, of any place."""

    def __init__(self):
        self.driver = set()
        self.nvml = {}  # function of pynvml: what its body calls or looks up

    def read(self, root):
        for path in glob.glob(root + "/triton/backends/nvidia/include/cuda.h"):
            with open(path, encoding="utf-8", errors="replace") as file:
                self.driver |= set(re.findall(r"CUDAAPI\s+(cu\w+)\(", file.read()))
        for path in glob.glob(root + "/**/pynvml.py", recursive=True):
            with open(path, encoding="utf-8") as file:
                parts = re.split(r"^def (\w+)\(", file.read(), flags=re.M)
            for name, body in zip(parts[1::2], parts[2::2]):
                self.nvml[name] = set(re.findall(
                    r'_nvmlGetFunctionPointer\("(\w+)"|\b(nvml[A-Z]\w+)\(', body))

    def of_pynvml(self, name, seen=()):
        """The functions of NVML that the function of pynvml looks up."""
        if name in seen:
            return set()
        found = set()
        for looked_up, called in self.nvml.get(name, ()):
            found |= {looked_up} if looked_up else \
                self.of_pynvml(called, (*seen, name))
        return found


def is_function(name, names):
    if not re.match("cu[A-Z]", name):
        return True
    return re.sub(r"_v\d$", "", name) in names.driver


def files(root, packages, ending):
    """The files of the packages below a folder; of a wheel, of all."""
    places = [root + "/" + one for one in packages] or [root]
    return sorted(path for place in places
                  for path in glob.glob(place + "/**/*" + ending, recursive=True)
                  if os.path.isfile(path) and not os.path.islink(path))


def imports_of(root, names, packages):
    """The functions that what lies below a folder imports, as (function, how)."""
    found = set()
    for path in files(root, packages, ".so*"):
        short = os.path.relpath(path, root)
        if short.startswith("nvidia/cudnn/"):
            found |= {(one, "name") for one in strings(path)
                      if re.match("cublas|nvrtc", one)}
            continue
        linked = {one for one in symbols(path, "--undefined-only")
                  if LINKED.match(one)}
        found |= {(one, "linked") for one in linked}
        if linked or short.startswith("triton/_C/"):
            own = symbols(path, "--defined-only") | linked
            found |= {(one, "name") for one in strings(path) - own
                      if is_function(one, names)}
    for path in glob.glob(root + "/triton/backends/nvidia/driver.c"):
        with open(path, encoding="utf-8") as file:
            found |= {(one, "linked") for one in
                      names.driver & set(re.findall(r"\w+", file.read()))}
    for path in files(root, packages, ".py"):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if "CDLL" in text or "libcuda" in text:
            found |= {(one, "name") for one in QUOTED.findall(text)
                      if not re.search(r"_t$|Error|Enum|UniqueId$", one)
                      or one == "ncclGetUniqueId"}
        for one in PYNVML.findall(text):
            found |= {(name, "name") for name in names.of_pynvml(one)}
    return found


def unpacked(wheel, folder):
    with zipfile.ZipFile(wheel) as file:
        for name in file.namelist():
            if re.search(r"\.(so|py)(\.\d+)*$", name):
                file.extract(name, folder)
    return folder


def release_of(root):
    found, = glob.glob(root + "/torch-*.dist-info")
    return ".".join(re.search(r"torch-(\d+)\.(\d+)", found).groups())


def order(release):
    return tuple(map(int, release.split(".")))


def read_table():
    """The rows by (function, how): the set of releases, and that of packages."""
    rows = {}
    if os.path.exists(TABLE):
        with open(TABLE, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                rows[row["function"], row["how"]] = (
                    set(filter(None, row["torch"].split("-"))),
                    set(filter(None, row["others"].split(" "))))
    return rows


def write_table(rows):
    with open(TABLE, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for (function, how), (releases, others) in sorted(rows.items()):
            ends = sorted(releases, key=order)
            table.writerow([function, how, "-".join(dict.fromkeys(ends[:1] + ends[-1:])),
                            " ".join(sorted(others))])


def main():
    rows, names = read_table(), Names()
    with tempfile.TemporaryDirectory() as folder:
        roots = {}
        for place in sys.argv[1:]:
            if place.endswith(".whl"):
                name = "==".join(os.path.basename(place).split("-")[:2])
                roots[name] = unpacked(place, os.path.join(folder, name))
            else:
                root, = glob.glob(place + "/lib/python3*/site-packages")
                roots[release_of(root)] = root
        for root in roots.values():
            names.read(root)
        for label, root in roots.items():
            which = "==" in label
            for releases in rows.values():
                releases[which].discard(label)
            found = imports_of(root, names, [] if which else PACKAGES)
            for one in found:
                rows.setdefault(one, (set(), set()))[which].add(label)
            print(label, len(found))
    write_table({key: row for key, row in rows.items() if any(row)})


if __name__ == "__main__":
    main()

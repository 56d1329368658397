"""Runs PyTorch's memory on a policy of fragsim.

    import fragsim_torch
    fragsim_torch.use("remap")     # from here on; at any time
    ...
    torch.cuda.max_memory_reserved()

`fragsim run -p remap -- python train.py` does the same without a change of the
program. use() compiles the class of allocator.cpp against the installed PyTorch
at its first call, which takes half a minute, and keeps the result (`python -m
fragsim_torch build` does so beforehand). With it, every function of
torch.cuda.memory works. Without a compiler, PyTorch's pluggable allocator is
used, which has no statistics, snapshots, graphs or memory pools of its own.

PYTORCH_CUDA_ALLOC_CONF and torch.cuda.memory._set_allocator_settings() are for
PyTorch's own allocator, which serves memory pools and CUDA graphs; of them the
policy follows the limit (per_process_memory_fraction). Its options are in its
text, as in "torch:expandable_segments:True". The results note such calls.

The environment has all other settings: FRAGSIM_POLICY, FRAGSIM_CAPACITY,
FRAGSIM_OUTPUT (see adaptor.h), FRAGSIM_TORCH_CACHE for the folder of the
compiled class, CXX for the compiler, and FRAGSIM_TORCH_LIBRARY for
libfragsim_torch.so, which is otherwise searched beside this file and where an
installation puts it.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing import util
from typing import Any

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "libfragsim_torch.so"
PLACES = [os.environ.get("FRAGSIM_TORCH_LIBRARY", ""), os.path.join(HERE, NAME),
          os.path.join(HERE, "..", "..", "lib", "fragsim", NAME),
          os.path.join(HERE, "lib", "fragsim", NAME)]  # in the Python package
SOURCES = [HERE, os.path.join(HERE, "share", "fragsim")]  # of allocator.cpp
TESTED = ("2.11",)  # releases of PyTorch whose interface allocator.cpp follows


def _path() -> str:
    for place in PLACES:
        if os.path.isfile(place):
            return os.path.realpath(place)
    raise FileNotFoundError(f"{NAME} is in none of {PLACES}; set "
                            "FRAGSIM_TORCH_LIBRARY to its path")


# The class finds the functions of the library in the global scope.
_library = ctypes.CDLL(_path(), ctypes.RTLD_GLOBAL)
_made: list[Any] = []  # PyTorch does not keep a reference
# The way that use() selected. This module may be loaded under two names, but
# torch is there once.
_used: list[str] = vars(torch).setdefault("_fragsim_used", [])


class Unavailable(RuntimeError):
    """The class cannot be compiled here; the message has the reason."""


# ---- the class over PyTorch's whole interface ----

def _headers() -> list[str]:
    """The folders of the headers of PyTorch and of the CUDA runtime."""
    root = os.path.dirname(torch.__file__)
    major = (torch.version.cuda or "0").split(".", maxsplit=1)[0]
    packages = os.path.join(os.path.dirname(root), "nvidia")
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME", ""),
             os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc
             else "", "/usr/local/cuda", "/usr"]
    places = [os.path.join(packages, f"cu{major}", "include"),
              os.path.join(packages, "cuda_runtime", "include")]
    places += [os.path.join(home, "include") for home in homes if home]
    # Some packages of the runtime lack the second header.
    needed = ("cuda_runtime_api.h", os.path.join("crt", "host_config.h"))
    for place in places:
        if all(os.path.isfile(os.path.join(place, name)) for name in needed):
            return [os.path.join(root, "include"), place]
    raise Unavailable(f"expected {' and '.join(needed)} in one of {places}, "
                      f"found none: install the headers of CUDA "
                      f"{torch.version.cuda} or set CUDA_HOME")


def _sources() -> str:
    for folder in SOURCES:
        if os.path.isfile(os.path.join(folder, "allocator.cpp")):
            return folder
    raise Unavailable(f"allocator.cpp is in none of {SOURCES}: install fragsim "
                      "again")


def _runtime() -> str:
    """The C++ library that this process uses.

    A compiler may link its own copy into the class. Then an exception of
    PyTorch that passes through the class ends the process.
    """
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            path = line.split(maxsplit=5)[-1].strip()
            if os.path.basename(path).startswith("libstdc++.so"):
                return path
    raise Unavailable("PyTorch does not use libstdc++")


def _compilers() -> list[str]:
    """CXX, or else the compilers of this machine, the preferred one first."""
    if os.environ.get("CXX"):
        return [os.environ["CXX"]]
    found = [shutil.which("c++"), shutil.which("g++"),
             shutil.which("c++", path="/usr/bin"),
             shutil.which("g++", path="/usr/bin")]
    compilers = list(dict.fromkeys(path for path in found if path))
    if not compilers:
        raise Unavailable("there is no C++ compiler: install g++ or set CXX")
    return compilers


def _release() -> str:
    return ".".join(torch.__version__.split(".")[:2])


def _command(compiler: str) -> list[str]:
    release = _release()
    if release not in TESTED:
        raise Unavailable(f"the class was tested with PyTorch {TESTED[0]}, not "
                          f"with {release}")
    command = [*compiler.split(), "-std=c++17", "-O2", "-fPIC", "-shared",
               f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    command += [f"-I{folder}" for folder in (_sources(), *_headers())]
    libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
    return command + [os.path.join(_sources(), "allocator.cpp"), f"-L{libraries}",
                      "-lc10", "-lc10_cuda", "-nodefaultlibs", _runtime(),
                      "-lgcc_s", "-lc"]


def _folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("FRAGSIM_TORCH_CACHE") or os.path.join(cache, "fragsim")


PROBE = """
import ctypes, sys, torch
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
sys.exit(ctypes.CDLL(sys.argv[2]).frag_torch_probe() != 1)
"""


def _compile(command: list[str], path: str) -> None:
    """Writes the class to the path if a process can use it."""
    with tempfile.TemporaryDirectory(dir=_folder()) as beside:
        made = os.path.join(beside, "allocator.so")
        done = subprocess.run([*command, "-o", made], text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")
        done = subprocess.run([sys.executable, "-c", PROBE, _path(), made],
                              text=True, capture_output=True, check=False,
                              env=dict(os.environ, FRAGSIM_TORCH_PROBE="1"))
        if done.returncode:
            raise Unavailable(
                f"an exception of PyTorch ends a process that uses the code of "
                f"{command[0]} (exit code {done.returncode}); set CXX to "
                f"another compiler: {done.stderr.strip()[-500:]}")
        os.replace(made, path)  # several processes may do this at once


def _build_with(compiler: str) -> str:
    command = _command(compiler)
    digest = hashlib.sha256("\0".join(command).encode())
    for name in ("allocator.cpp", "service.h"):
        with open(os.path.join(_sources(), name), "rb") as file:
            digest.update(file.read())
    path = os.path.join(_folder(), f"allocator-{torch.__version__}-"
                        f"{digest.hexdigest()[:16]}.so")
    if not os.path.isfile(path):
        try:
            os.makedirs(_folder(), exist_ok=True)
            _compile(command, path)
        except OSError as error:
            raise Unavailable(f"{error}; FRAGSIM_TORCH_CACHE names the folder "
                              "of the compiled class") from error
    return path


def build() -> str:
    """Compiles the class unless that was done before; returns its path.

    Raises Unavailable with the reasons if no compiler can do it.
    """
    reasons = []
    for compiler in _compilers():
        try:
            return _build_with(compiler)
        except Unavailable as reason:
            reasons.append(str(reason))
    raise Unavailable("; ".join(dict.fromkeys(reasons)))


def _install() -> None:
    install = ctypes.CDLL(build()).frag_torch_install
    install.restype = ctypes.c_char_p
    words = install().decode()
    if words:
        raise RuntimeError(words)


# ---- the pluggable allocator ----

def _allocator() -> Any:
    if not _made:
        made = torch.cuda.memory.CUDAPluggableAllocator(
            _path(), "frag_torch_alloc", "frag_torch_free")
        for hook, function in (("set_record_stream_fn",
                                _library.frag_torch_record_stream),
                               ("set_reset_fn",
                                _library.frag_torch_empty_cache)):
            getattr(made.allocator(), hook)(
                ctypes.cast(function, ctypes.c_void_p).value)
        _made.append(made)
    return _made[0]


def _use_pluggable() -> None:
    try:
        torch.cuda.memory.change_current_allocator(_allocator())
    except RuntimeError as error:
        raise RuntimeError(
            "fragsim_torch.use() comes too late: this program has used the GPU "
            "already. Call it before the first use, or run the program by "
            "`fragsim run`") from error


# ---- what a program calls ----

def _select(policy: str | None) -> None:
    """Makes the library read its settings, and compares the policy."""
    before = os.environ.get("FRAGSIM_POLICY")
    os.environ["FRAGSIM_TORCH_RELEASE"] = _release()
    if policy is not None:
        os.environ["FRAGSIM_POLICY"] = policy
        # The library reads the environment of the C runtime, as os.environ
        # does when it is written.
    words = ctypes.create_string_buffer(1024)  # FRAG_TORCH_WORDS
    _library.frag_torch_policy.restype = ctypes.c_char_p
    running = _library.frag_torch_policy(words)
    if running is None:
        raise RuntimeError(os.fsdecode(words.value))
    running = os.fsdecode(running)
    if policy is None or running == policy:
        return
    if before is None:
        del os.environ["FRAGSIM_POLICY"]
    else:
        os.environ["FRAGSIM_POLICY"] = before
    raise RuntimeError(f"fragsim_torch.use({policy!r}) comes too late: this "
                       f"process runs on the policy {running!r} already")


def _finish_forked(_library: Any) -> None:
    """A child that multiprocessing forks ends without the exit functions of C,
    which write the results. It calls finalizers instead."""
    util.Finalize(None, _library.frag_torch_finish, exitpriority=0)


def _hear_changes() -> None:
    """Tells the library which texts the program passes to the settings."""
    spec = spec_from_file_location("pytorch_record",
                                   os.path.join(HERE, "pytorch_record.py"))
    module = module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    module.Changes.of_process().hears.append(
        lambda call: "settings" in call and
        _library.frag_torch_changed(call["settings"].encode("utf-8", "replace")))


def use(policy: str | None = None, pluggable: bool = False) -> str:
    """Serves all of the program's requests by the policy from here on.

    policy: as FRAGSIM_POLICY; None leaves the environment as it is. Blocks that
    PyTorch allocated before stay where they are. Returns "class" or
    "pluggable": the way that is used. A second call changes nothing, and
    raises RuntimeError if it names another policy.
    """
    if not torch.version.cuda:
        raise RuntimeError(f"PyTorch {torch.__version__} was built without "
                           "CUDA, so it has no GPU memory that a policy could "
                           "serve")
    _select(policy)
    if _used:
        return _used[0]
    way = "pluggable"
    if not pluggable:
        try:
            _install()
            way = "class"
        except Unavailable as reason:
            warnings.warn(
                "fragsim: statistics, snapshots, graphs and memory pools of "
                f"PyTorch are missing, since {reason}", stacklevel=2)
    if way == "pluggable":
        _use_pluggable()
    _hear_changes()
    util.register_after_fork(_library, _finish_forked)
    _used.append(way)
    return way


def pool() -> Any:
    """Returns a memory pool whose segments come from the policy."""
    return torch.cuda.MemPool(_allocator().allocator())


def _read(name: str, *device: int) -> int:
    function = getattr(_library, name)
    function.restype = ctypes.c_size_t
    return int(function(*device))


def reserved(device=0):
    """Bytes that the policy holds on the device."""
    return _read("frag_torch_reserved", device)


def peak_reserved(device=0):
    """The most bytes that the policy held on the device."""
    return _read("frag_torch_peak_reserved", device)


def peak_allocated(device=0):
    """The most bytes that blocks of the policy had on the device."""
    return _read("frag_torch_peak_allocated", device)


def driver_calls(device=0):
    """Number of the driver's memory calls."""
    return _read("frag_torch_driver_calls", device)


def driver_ns(device=0):
    """Time spent in the driver's calls, in ns."""
    return _read("frag_torch_driver_ns", device)


def main() -> None:
    """Compiles the class: python -m fragsim_torch build"""
    if sys.argv[1:] != ["build"]:
        sys.exit("usage: python -m fragsim_torch build")
    try:
        print(build())
    except Unavailable as reason:
        sys.exit(f"fragsim: {reason}")


if __name__ == "__main__":
    main()

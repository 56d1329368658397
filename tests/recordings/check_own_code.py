#!/usr/bin/env python3
"""check_own_code.py: policies against the own code of the allocators that they
model. A program of own_code/ is compiled with that code and libfrag_policies;
it runs random scripts on both and compares each address, each size, each refusal
and each call to the device. A line says how many scripts and requests were
compared, and how many scripts differ: none may.

FRAG_OWN_CODE is a folder with any of:
  - Mooncake, a clone (github.com/kvcache-ai): OffsetAllocator against tlsf;
  - rmm, a clone (github.com/rapidsai), with librmm and rapids_logger, the
    folders of the wheels librmm-cu12 and rapids-logger, which have CCCL and a
    library that RMM needs: against rmm_pool, rmm_arena and rmm_binning. It also
    needs the headers of CUDA 12 or later in CUDA_HOME (/usr/local/cuda);
  - cupy, an environment of Python with the wheel of CuPy, which writes a log of
    its scripts: SingleDeviceMemoryPool against cupy.
Without the folder, the script is skipped.

Environment: FRAG_BUILD_DIR, FRAG_OWN_CODE; FRAG_SCRIPTS, scripts for each
allocator (default 2000); FRAG_OWN_CODE_ONLY, a name such as rmm.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import harness  # noqa: E402

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own_code")

# Headers that Mooncake's allocator includes and that need other projects.
MOONCAKE = {
    "glog/logging.h": """#pragma once
#include <cstdint>
#include <limits>
#include <sstream>
#define LOG(level) std::ostringstream()
#define VLOG(level) std::ostringstream()
#define VLOG_IS_ON(level) false
""",
    "utils.h": """#pragma once
#include <cstdint>
#include <string>
namespace mooncake {
inline std::string byte_size_to_string(uint64_t) { return ""; }
}
""",
    "serialize/serializer.h": """#pragma once
namespace mooncake {
template <typename T> class Serializer;
namespace offset_allocator {
class OffsetAllocationHandle;
}
}
"""}


def write(folder, texts):
    for name, text in texts.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def mooncake(own, folder):
    """What the compiler needs: its arguments; None: the code is absent."""
    store = os.path.join(own, "Mooncake", "mooncake-store")
    if not os.path.exists(store):
        return None
    write(folder, MOONCAKE)
    return [f"-I{store}/include", f"{store}/src/offset_allocator.cpp"]


def rmm(own, folder):
    cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    if not all(map(os.path.exists, (f"{own}/rmm/cpp", f"{own}/librmm/include",
                                    f"{own}/rapids_logger", cuda))):
        return None
    with open(f"{own}/rmm/VERSION", encoding="ascii") as file:
        reclaims = file.read().split(".")[:2] >= ["26", "10"]
    folders = [f"{own}/rmm/cpp/include", f"{own}/librmm/include/rapids",
               f"{own}/librmm/include", f"{own}/rapids_logger/include", cuda]
    source = f"{own}/rmm/cpp/src"
    kinds = ("arena", "binning", "callback", "fixed_size", "pool")
    files = [f"{source}/mr/{kind}_memory_resource.cpp" for kind in kinds]
    files += [f"{source}/mr/detail/{kind}_memory_resource_impl.cpp"
              for kind in kinds]
    files += [f"{source}/{name}.cpp" for name in
              ("aligned", "cuda_device", "cuda_stream_view", "error", "logger",
               "runtime_shutdown")]
    logger = f"{own}/rapids_logger/lib64"
    return [f"-DRMM_RECLAIMS={reclaims:d}",
            "-DRMM_LOG_ACTIVE_LEVEL=RAPIDS_LOGGER_LOG_LEVEL_OFF",
            *(f"-I{one}" for one in folders), *files, f"-L{logger}",
            f"-Wl,-rpath,{logger}", "-lrapids_logger"]


def cupy(own, _):
    return [] if os.path.exists(f"{own}/cupy/bin/python") else None


ALLOCATORS = {"mooncake": mooncake, "rmm": rmm, "cupy": cupy}


def replay_log(program, own, scripts):
    """Runs 500 scripts in a process: CuPy becomes slower with their number."""
    with subprocess.Popen([program], stdin=subprocess.PIPE) as replay:
        for first in range(1, scripts + 1, 500):
            count = min(500, scripts + 1 - first)
            subprocess.run([f"{own}/cupy/bin/python", "-W", "ignore",
                            f"{PROGRAMS}/cupy_log.py", f"{count}", f"{first}"],
                           stdout=replay.stdin, check=True)
    return replay.returncode == 0


def compare(name, own, scripts):
    """Compiles and runs one program; returns whether all scripts agree."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ALLOCATORS[name](own, folder)
        if arguments is None:
            print(f"{name}: its code is absent, not compared", flush=True)
            return True
        program = os.path.join(folder, name)
        libraries = [os.path.join(harness.BUILD, f"libfrag_{room}.a")
                     for room in ("policies", "traces")]
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-w",
                        f"-I{harness.ROOT}", f"-I{folder}",
                        f"{PROGRAMS}/{'log' if name == 'cupy' else name}.cpp",
                        *arguments,
                        *libraries, "-o", program], check=True)
        if name == "cupy":
            return replay_log(program, own, int(scripts))
        return subprocess.run([program, scripts], check=False).returncode == 0


def main():
    own = os.environ.get("FRAG_OWN_CODE")
    if not own:
        harness.skip("FRAG_OWN_CODE is not set: a folder of clones")
    if harness.SANITIZED:
        harness.skip("the build has sanitizers; the other builds compare")
    harness.need(own, os.path.join(harness.BUILD, "libfrag_policies.a"))
    only = os.environ.get("FRAG_OWN_CODE_ONLY")
    agree = [compare(name, own, os.environ.get("FRAG_SCRIPTS", "2000"))
             for name in ALLOCATORS if only in (None, name)]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())

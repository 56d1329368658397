#!/usr/bin/env python3
"""check_pool_programs.py: checks paper/gpu/pool_log.c on a stand-in for the CUDA runtime,
and the digest of paper/gpu/pool_programs.py on the log that it writes.

Environment: FRAGSIM (default build/fragsim), CC (default cc; without a compiler
the check is skipped).
"""
import csv
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT

CC = os.environ.get("CC", "cc")
PAPER = os.path.join(ROOT, "paper")
MIB = 1 << 20

RUNTIME = """
#include <stdint.h>
static uintptr_t next = 0x1000;
static uint64_t reserved;
int cudaMallocAsync(void **p, unsigned long n, void *s)
{
    (void)s;
    if (n > 1 << 30)
        return 2;
    *p = (void *)next;
    next += n;
    reserved = (next + 33554431) / 33554432 * 33554432;
    return 0;
}
int cudaFreeAsync(void *p, void *s) { (void)p; (void)s; return 0; }
int cudaStreamSynchronize(void *s) { (void)s; return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaEventSynchronize(void *e) { (void)e; return 0; }
int cudaDeviceGetDefaultMemPool(void **p, int d) { (void)d; *p = &reserved; return 0; }
int cudaMemPoolGetAttribute(void *p, int a, void *v)
{
    if (a == 5)
        *(uint64_t *)v = *(uint64_t *)p;
    return a != 5;
}
"""
PROGRAM = """
int cudaMallocAsync(void **, unsigned long, void *);
int cudaFreeAsync(void *, void *);
int cudaStreamSynchronize(void *);
int cudaDeviceSynchronize(void);
int cudaEventSynchronize(void *);
int main(void)
{
    void *a, *b, *stream = (void *)0x77;
    cudaMallocAsync(&a, 20 << 20, 0);
    cudaMallocAsync(&b, 2ul << 30, 0); /* fails: not logged */
    cudaStreamSynchronize(stream);
    cudaFreeAsync(a, 0);
    cudaMallocAsync(&b, 30 << 20, stream);
    cudaEventSynchronize(stream);
    return cudaDeviceSynchronize();
}
"""
# Operation, bytes, stream, reserved bytes.
LOGGED = [("a", 20 * MIB, "0", 32 * MIB), ("s", 0, "77", ""),
          ("f", 0, "0", ""), ("a", 30 * MIB, "77", 64 * MIB),
          ("e", 0, "77", ""), ("d", 0, "0", "")]


def compile_c(text, out, *flags):
    subprocess.run([CC, "-x", "c", "-", "-o", out, *flags], input=text,
                   text=True, check=True)


def write_log(folder):
    runtime = os.path.join(folder, "libcudart.so.13")
    program = os.path.join(folder, "program")
    library = os.path.join(folder, "pool_log.so")
    log = os.path.join(folder, "torch_toy_10.csv")
    compile_c(RUNTIME, runtime, "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13")
    compile_c(PROGRAM, program, "-x", "none", runtime, f"-Wl,-rpath,{folder}")
    subprocess.run([CC, "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                    "-shared", "-fPIC", "-o", library,
                    os.path.join(PAPER, "gpu", "pool_log.c"), "-ldl", "-lpthread"],
                   check=True)
    subprocess.run([program], check=True, env={
        **os.environ, "LD_PRELOAD": library, "POOL_LOG": log})
    return log


def main():
    if not os.access(FRAGSIM, os.X_OK) or not shutil.which(CC):
        print(f"check_pool_programs: no tool at {FRAGSIM}, or no {CC}; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        log = write_log(folder)
        with open(log, encoding="utf-8") as file:
            rows = [(op, int(size), stream, int(reserved) if reserved else "")
                    for op, _, size, stream, _, reserved in csv.reader(file)]
        assert rows == LOGGED, rows
        archive = os.path.join(folder, "logs.tar.xz")
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(log, "requests/" + os.path.basename(log))
        digest = [sys.executable, os.path.join(PAPER, "gpu", "pool_programs.py"),
                  "digest", archive, "--csv", os.path.join(folder, "out.csv")]
        env = {**os.environ, "FRAGSIM": FRAGSIM}
        done = subprocess.run(digest, env=env, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 1 and "--about" in done.stderr, done.stderr
        subprocess.run([*digest, "--about", "nowhere"], env=env, check=True,
                       capture_output=True)
        with open(os.path.join(folder, "out.csv"), encoding="utf-8") as file:
            assert file.readline() == "# nowhere\n"
            row, = csv.DictReader(file)
        with open(os.path.join(PAPER, "data", "pool_programs.csv"),
                  encoding="utf-8") as file:
            file.readline()
            assert list(row) == next(csv.reader(file)), list(row)
        wanted = {"library": "torch", "program": "toy",
                  "synchronized_every": "10", "requests": "2",
                  "synchronizations": "3", "reserved_high_bytes": str(64 * MIB),
                  "sync_1": str(32 * MIB), "run_ahead_0": str(32 * MIB)}
        assert {k: row[k] for k in wanted} == wanted, row
    print("pool programs: the log and its digest hold what a program did")
    return 0


if __name__ == "__main__":
    sys.exit(main())

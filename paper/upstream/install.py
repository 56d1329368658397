#!/usr/bin/env python3
"""install.py: a PyTorch with a changed libc10_cuda.so, beside the one of a Python
environment, which stays as it is.

  install.py PYTHON LIBRARY FOLDER   FOLDER/python runs PYTHON with a PyTorch whose
                                     libc10_cuda.so is LIBRARY; all its other files
                                     are links to PYTHON's own
  install.py rename FILE OUT         only the release's libc10_cuda.so FILE as
                                     libc10_rest.so, with that name inside

The release's library lies in FOLDER as libc10_rest.so. FOLDER appears whole.
"""
import os
import shlex
import shutil
import subprocess
import sys

OLD, NEW = b"\0libc10_cuda.so\0", b"\0libc10_rest.so\0"


def rename(path, out):
    with open(path, "rb") as file:
        data = file.read()
    if data.count(OLD) != 1:
        sys.exit(f"{path}: expected the name libc10_cuda.so once, found it "
                 f"{data.count(OLD)} times; give the library of a release")
    with open(out, "wb") as file:
        file.write(data.replace(OLD, NEW))


def package(python):
    code = ("import importlib.util as u, os; "
            "print(os.path.dirname(u.find_spec('torch').origin))")
    return subprocess.run([python, "-c", code], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def install(python, library, folder):
    if os.path.exists(folder):
        sys.exit(f"{folder}: expected no such folder; remove it or name another")
    torch, part = package(python), folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(torch, os.path.join(part, "torch"), copy_function=os.symlink,
                    ignore=shutil.ignore_patterns("__pycache__"))
    lib = os.path.join(part, "torch", "lib")
    os.remove(os.path.join(lib, "libc10_cuda.so"))
    shutil.copy(library, os.path.join(lib, "libc10_cuda.so"))
    rename(os.path.join(torch, "lib", "libc10_cuda.so"),
           os.path.join(lib, "libc10_rest.so"))
    beside = os.path.join(os.path.dirname(torch), "nvidia")
    if os.path.exists(beside):  # the libraries look for CUDA's there
        os.symlink(beside, os.path.join(part, "nvidia"))
    with open(os.path.join(part, "python"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nPYTHONPATH={shlex.quote(folder)}'
                   '"${PYTHONPATH:+:$PYTHONPATH}" '
                   f'exec {shlex.quote(python)} "$@"\n')
    os.chmod(os.path.join(part, "python"), 0o755)
    os.rename(part, folder)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    if sys.argv[1] == "rename":
        rename(*sys.argv[2:])
    else:
        install(*map(os.path.abspath, sys.argv[1:]))


if __name__ == "__main__":
    main()

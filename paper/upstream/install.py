#!/usr/bin/env python3
"""install.py: puts a changed libc10_cuda.so into a Python environment, and takes it
out again.

  install.py put PYTHON LIBRARY   LIBRARY in place of the release's libc10_cuda.so, which
                                  becomes libc10_rest.so, with that name inside
  install.py back PYTHON          the release's own library again
  install.py rename FILE OUT      only the renamed copy

The release's file is kept as libc10_cuda.so.release.
"""
import os
import shutil
import subprocess
import sys

OLD, NEW = b"\0libc10_cuda.so\0", b"\0libc10_rest.so\0"


def rename(path, out):
    with open(path, "rb") as file:
        data = file.read()
    if NEW not in data:
        if data.count(OLD) != 1:
            sys.exit(f"{path}: expected the name libc10_cuda.so once, found it "
                     f"{data.count(OLD)} times")
        data = data.replace(OLD, NEW)
    with open(out, "wb") as file:
        file.write(data)


def folder(python):
    code = ("import importlib.util as u, os; "
            "print(os.path.dirname(u.find_spec('torch').origin))")
    return os.path.join(subprocess.run([python, "-c", code], check=True, text=True,
                                       stdout=subprocess.PIPE).stdout.strip(), "lib")


def main():
    if sys.argv[1] == "rename":
        return rename(sys.argv[2], sys.argv[3])
    lib = folder(sys.argv[2])
    own, rest = (os.path.join(lib, f"libc10_{name}.so") for name in ("cuda", "rest"))
    kept = own + ".release"
    if sys.argv[1] == "put":
        if not os.path.exists(kept):
            shutil.copy2(own, kept)
        rename(kept, rest)
        os.remove(own)
        shutil.copy(sys.argv[3], own)
    elif os.path.exists(kept):
        os.replace(kept, own)
        if os.path.exists(rest):
            os.remove(rest)


if __name__ == "__main__":
    main()

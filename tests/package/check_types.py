#!/usr/bin/python3
"""check_types.py: checks the types of the Python package with mypy --strict, and
that a program that uses it is checked by them. Skipped (77) without mypy.
Environment: MYPY (the command; default: mypy of PATH, or `python3 -m mypy`).
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PACKAGES = os.path.join(ROOT, "sim", "python")
USER = """\
import fragsim

page: fragsim.Page = fragsim.triage({"segments": []}, capacity=24 << 30)
cause: str = page.explain["results"][0]["cause"]
fragsim.replay("a.pickle", ["b.pickle"], policies=["torch"], capacity=1.5)
version: str = fragsim.__version__
wrong: int = fragsim.__version__
fragsim.nothing
fragsim.replay("a.pickle", capacity=object())
"""
WRONG = [7, 8, 9]  # lines of USER


def mypy():
    """The command, or None."""
    for command in ([os.environ.get("MYPY") or "mypy"],
                    [sys.executable, "-m", "mypy"]):
        if shutil.which(command[0]) and not subprocess.run(
                [*command, "--version"], capture_output=True,
                check=False).returncode:
            return command
    return None


def main():
    command = mypy()
    if not command:
        print("check_types: mypy is not installed; skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "user.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(USER)
        strict = [*command, "--strict", "--cache-dir", folder, "--config-file",
                  os.path.join(ROOT, "pyproject.toml")]
        done = subprocess.run([*strict, os.path.join(PACKAGES, "fragsim")],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        done = subprocess.run([*strict, path], capture_output=True, text=True,
                              check=False, env={**os.environ, "MYPYPATH": PACKAGES})
        found = sorted(int(line.split(":")[1]) for line in done.stdout.splitlines()
                       if ": error:" in line and line.startswith(path))
        assert found == WRONG, done.stdout + done.stderr
    print("the types of the package and of its use are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""check_paper_build.py: the target `paper`, in a build that holds nothing else.

With programs that stand for gnuplot and LaTeX: each one that is absent is named with the
packages, and once it is there the same build makes the paper without being configured
again. With LaTeX: builds in two folders make the same PDF, byte for byte, which holds no
date and no path.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, skip

ALONE = """cmake_minimum_required(VERSION 3.25)
project(alone NONE)
add_subdirectory({paper} paper)
"""
# What make and the target itself call besides the programs.
USED = ("cmake", "make", "env", "sh")
STAND_IN = {  # in the order in which programs.cmake asks for them
    "python3": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    "gnuplot": '#!/bin/sh\nfor word; do case $word in out=*) out=${word#out=} ;; esac; '
               'done\neval "echo picture >$out"\n',
    "latexmk": '#!/bin/sh\necho "$PWD" >fragsim.pdf\n',
    "pdflatex": "#!/bin/sh\n"}
LATEX = ("gnuplot", "latexmk", "pdflatex", "pdfinfo")
faults = []


def expect(true, what):
    if not true:
        faults.append(what)
        print(what)


def configure(build):
    source = build + ".source"
    os.makedirs(source)
    with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as out:
        out.write(ALONE.format(paper=os.path.join(ROOT, "paper")))
    subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Unix Makefiles"],
                   check=True, capture_output=True)


def make(build, path=None):
    """(exit code, what was said)"""
    done = subprocess.run(["cmake", "--build", build, "--target", "paper"], text=True,
                          env=os.environ | ({"PATH": path} if path else {}),
                          capture_output=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def installed_later(folder):
    """Each program is absent once, and is installed after the build said so."""
    programs = os.path.join(folder, "programs")
    os.makedirs(programs)
    for name in USED:
        os.symlink(shutil.which(name), os.path.join(programs, name))
    build = os.path.join(folder, "later")
    configure(build)
    for name, text in STAND_IN.items():
        code, said = make(build, programs)
        expect(code != 0 and f"there is no {name}." in said,
               f"without {name}: exit {code}: {said[-400:]}")
        expect("apt install python3 gnuplot-nox latexmk" in said,
               f"without {name}, no packages are named: {said[-400:]}")
        path = os.path.join(programs, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o755)
    code, said = make(build, programs)
    expect(code == 0, f"with all programs: exit {code}: {said[-800:]}")
    expect("Configuring" not in said, "the build was configured again")
    expect(os.path.exists(os.path.join(build, "paper", "fragsim.pdf")), "no PDF")


def same_bytes(folder):
    """The PDF of two builds, whose pictures are drawn in different seconds."""
    made = []
    for name in ("first", "second/below"):
        build = os.path.join(folder, name)
        os.makedirs(build)
        configure(build)
        code, said = make(build)
        expect(code == 0, f"the paper in {name}: exit {code}: {said[-1500:]}")
        if code:
            return
        made.append(os.path.join(build, "paper", "fragsim.pdf"))
    first, second = (open(path, "rb").read() for path in made)
    expect(first == second, "the PDF of a second build differs")
    info = subprocess.run(["pdfinfo", made[0]], check=True, text=True,
                          capture_output=True).stdout
    expect("Date" not in info, f"the PDF holds a date: {info}")
    expect(folder.encode() not in first, "the PDF holds the path of its folder")


def main():
    absent = [name for name in USED if not shutil.which(name)]
    if absent:
        skip(f"{', '.join(absent)} is absent")
    with tempfile.TemporaryDirectory() as folder:
        installed_later(folder)
        absent = [name for name in LATEX if not shutil.which(name)]
        if not absent:
            same_bytes(folder)
    if faults:
        return 1
    if absent:
        skip(f"programs that are installed later are found; {', '.join(absent)} is "
             f"absent, so the bytes of the PDF were not compared")
    print("programs that are installed later are found; two PDFs have the same bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

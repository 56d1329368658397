"""Makes an environment in which `fragsim dry` runs PyTorch: `fragsim dry --setup
FOLDER [-- REQUIREMENT...]` calls this file with the folder and the requirements.

pip installs PyTorch's own build for CUDA without the libraries of CUDA, because
stand-ins take their place; cuDNN alone is installed, since it can say without a
GPU what it would choose. Then one run of pip resolves all other requirements, with
the release of PyTorch as a constraint: a package that requires another release is
taken in an older one, or refused, and never replaces PyTorch. pip uses its own
settings, so also an index that they name. The folder is a virtual environment like any other: more packages can be
installed there, and PyTorch no longer requires the libraries that are missing.
"""
import glob
import os
import re
import subprocess
import sys
import time

from fragsim_dry import NEWEST, TRIED, release_of

# Packages that PyTorch requires and the stand-ins replace; the libraries of
# cuDNN are the exception. Triton, which torch.compile needs, is installed in the
# release that PyTorch requires if it is among the requirements of the user.
REPLACED = re.compile(r"(nvidia-|cuda-|triton|pytorch-triton)")
KEPT = "nvidia-cudnn-"
DEFAULT = "torch==2.11.0"  # whose allocator fragsim models
# An older cuDNN plans nothing without a device; any 9 serves PyTorch 2.6 and 2.7.
OLD_CUDNN, FIRST_CUDNN = r"(nvidia-cudnn-cu\d+) *\(?==9\.[0-7]\.[\d.]*\)?", r"\1==9.8.0.87"


def fail(words):
    say(words)
    sys.exit(4)


def say(words):
    sys.stderr.write("fragsim dry --setup: %s\n" % words)
    sys.stderr.flush()


def run(*words):
    """Runs a command whose output goes to stderr."""
    done = subprocess.run(words, stdout=sys.stderr, check=False)
    if done.returncode:
        fail("%s ended with exit code %d; its message is above"
             % (" ".join(words), done.returncode))


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]*", requirement).group(0).lower()


def metadata_of(folder):
    """The file in which the installed PyTorch says what it requires."""
    found = glob.glob(os.path.join(folder, "lib", "python*", "site-packages",
                                   "torch-*.dist-info", "METADATA"))
    if len(found) != 1:
        fail("%s: expected one torch-*.dist-info, found %d" % (folder, len(found)))
    return found[0]


def check_build(metadata):
    """PyTorch's build for the CPU has no allocator for a GPU."""
    version = os.path.join(os.path.dirname(os.path.dirname(metadata)), "torch",
                           "version.py")
    with open(version, encoding="utf-8") as file:
        if not re.search(r"^cuda\b[^=]*= *'", file.read(), re.M):
            fail("pip installed a PyTorch without CUDA; expected its build for "
                 "CUDA: let pip's settings name an index that has it, or name "
                 "the build after --, such as torch==2.11.0+cu130")


def split_requirements(metadata, kept):
    """Takes the requirements that are replaced out of the file; returns those
    that pip has to install with and without their own requirements: the latter
    are those whose names the expression describes."""
    with open(metadata, encoding="utf-8") as file:
        lines = file.read().split("\n")
    rest, plain, bare = [], [], []
    end = lines.index("") if "" in lines else len(lines)
    for number, line in enumerate(lines):
        requirement = line[len("Requires-Dist:"):].strip()
        if number >= end or not line.startswith("Requires-Dist:"):
            rest.append(line)
        elif REPLACED.match(name_of(requirement)):
            if kept.match(name_of(requirement)) and "extra ==" not in requirement:
                bare.append(requirement)
        else:
            rest.append(line)
            if "extra ==" not in requirement:
                plain.append(requirement)
    with open(metadata, "w", encoding="utf-8") as file:
        file.write("\n".join(rest))
    return plain, bare


def installed(python):
    """The packages of the environment but pip's own, as NAME==VERSION."""
    done = subprocess.run([python, "-m", "pip", "list", "--format", "freeze",
                           "--disable-pip-version-check"], text=True,
                          stdout=subprocess.PIPE, check=False)
    return [line for line in done.stdout.split()
            if name_of(line) not in ("pip", "setuptools", "wheel")]


def version_of(metadata):
    folder = os.path.basename(os.path.dirname(metadata))
    return folder[len("torch-"):-len(".dist-info")]


def say_end(python, version, wanted, fixed):
    print("installed: %s" % ", ".join(sorted(installed(python))))
    if release_of(version) > NEWEST:
        print("PyTorch %s is newer than %d.%d, the newest release on which the "
              "stand-ins were compared with a GPU: %s" % ((version,) + NEWEST + (
                  "the functions that it calls are there"
                  if release_of(version) <= TRIED else
                  "they may lack functions that it calls",)))
    if "triton" not in wanted:
        print("programs that call torch.compile need triton too: name it after "
              "--")
    print("outside of fragsim dry, `import torch' fails there, because CUDA's "
          "libraries are missing")
    print("to add packages there: %s -m pip install -c %s NAME" % (python, fixed))
    print("fragsim dry -- %s train.py" % python)


def size_of(folder):
    return sum(os.lstat(os.path.join(at, name)).st_size
               for at, _, names in os.walk(folder) for name in names)


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    torch = [one for one in wanted if name_of(one) == "torch"] or [DEFAULT]
    others = [one for one in wanted if name_of(one) not in ("torch", "triton")]
    kept = re.compile(KEPT + "|triton|pytorch-triton" if "triton" in wanted
                      else KEPT)
    begin = time.time()
    if os.path.exists(folder) and os.listdir(folder):
        fail("%s: expected a folder that is empty or does not exist" % folder)
    say("makes %s with %s" % (folder, sys.executable))
    run(sys.executable, "-m", "venv", folder)
    python = os.path.join(folder, "bin", "python")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    say("1 of 3: PyTorch (%s) without what it requires" % " ".join(torch))
    run(*pip, "--no-deps", *torch)
    metadata = metadata_of(folder)
    check_build(metadata)
    version = version_of(metadata)
    plain, bare = split_requirements(metadata, kept)
    newer = [re.sub(OLD_CUDNN, FIRST_CUDNN, one) for one in bare]
    if newer != bare:
        say("cuDNN is 9.8 in place of the older one that PyTorch %s requires, which "
            "plans nothing without a device: its workspaces may differ" % version)
    bare = newer
    say("2 of 3: %s" % (" ".join(map(name_of, bare)) or "nothing is kept of CUDA"))
    if bare:
        run(*pip, "--no-deps", *bare)
    fixed = os.path.join(folder, "constraints.txt")
    with open(fixed, "w", encoding="utf-8") as file:
        file.write("\n".join(installed(python)) + "\n")
    say("3 of 3: %s, with PyTorch %s" % (" ".join(["numpy"] + others), version))
    run(*pip, "--constraint", fixed, "numpy", *plain, *others)
    print("%s: %.1f GB in %.1f minutes" % (folder, size_of(folder) / 1e9,
                                          (time.time() - begin) / 60))
    say_end(python, version, wanted, fixed)


main()

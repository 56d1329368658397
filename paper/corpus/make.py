#!/usr/bin/env python3
"""make.py: makes the corpus, an archive of recordings with the needs of all policies and
a program that scores another one (score.py).

  make.py dry FOLDER [NAME...]
    the programs of recordings.csv that run without a GPU (`fragsim dry`), each into
    FOLDER/NAME.pickle.xz; what is there stays. Each run has other times and so other bytes:
    to make an archive again, --dry names the recordings/ of an unpacked one
  make.py measure [NAME...] [-p POLICY...] [--dry FOLDER] [-j N]
    data/corpus.csv, the manifest, and data/corpus_needs.csv, the need and price of every
    policy on every recording; with names, the rows of the other recordings stay, with
    -p those of the other policies
  make.py archive OUT.tar [--dry FOLDER]
    the archive, from these two; a file that is not the one of the manifest is refused.
    The same files make the same bytes

All recordings are of this project, under its licence. recordings.csv says where each is:
bundled/ is ../../traces/bundled, recorded/ is in FRAG_SHARED_DIR, dry/ names a program of
../gpu and its arguments.
--list FILE and --data FOLDER replace recordings.csv and ../data. Environment: FRAGSIM,
FRAG_SHARED_DIR, FRAG_DRY_PYTHON (a Python of `fragsim dry --setup` with PyTorch,
transformers and torchvision).
"""
import argparse
import csv
import hashlib
import io
import json
import lzma
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, "..", "tables")]
import score  # noqa: E402
from data_header import replayed, write_csv  # noqa: E402
from places import DATA, ROOT  # noqa: E402

SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
DRY_PYTHON = os.environ.get("FRAG_DRY_PYTHON", sys.executable)
TOP = "fragsim-corpus"
MANIFEST, NEEDS = "corpus.csv", "corpus_needs.csv"  # manifest.csv and needs.csv there
RESTS_ON = "recordings of this project"
LICENCE = "MIT"
COLUMNS = ["name", "device_index", "file", "sha256", "bytes", "format", "device",
           "torch_version", "events", "lower_bound_bytes", "recorded_peak_reserved_bytes",
           "duration_seconds", "licence", "about"]
# Policies besides those of `fragsim policies`, each with its default parameters.
VARIANTS = ["torch:expandable_segments:True", "tlsf:second_levels=8"]
# Programs of truth_programs.py are generators, which yield after each step.
STEP_BY_STEP = ("import sys; sys.path.insert(0, sys.argv[1]); import truth_programs as t; "
                "list(t.PROGRAMS[sys.argv[2]](t.Job()))")


def listed(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---- programs without a GPU ----

class Plain(pickle.Unpickler):
    """Values only: a snapshot names no class."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"a snapshot names {module}.{name}")


def without_stacks(value):
    """A snapshot without the stacks, which name files of the machine that ran it."""
    if isinstance(value, dict):
        return {k: [] if k == "frames" else without_stacks(v) for k, v in value.items()}
    return [without_stacks(v) for v in value] if isinstance(value, list) else value


def run_dry(row, folder):
    target = os.path.join(folder, row["name"] + ".pickle.xz")
    if os.path.exists(target):
        return
    program, *words = row["source"].split("/", 1)[1].split()
    gpu = os.path.join(HERE, "..", "gpu")
    command = ["-c", STEP_BY_STEP, gpu, *words] if program == "truth_programs.py" \
        else [os.path.join(gpu, program), *words]
    with tempfile.TemporaryDirectory() as scratch:
        whole = os.path.join(scratch, "whole.pickle")
        subprocess.run([FRAGSIM, "dry", "-q", "--gpu", "h200", "-o", whole, "--",
                        DRY_PYTHON, *command], check=True, stdout=subprocess.DEVNULL)
        with open(whole, "rb") as file:
            snapshot = without_stacks(Plain(file).load())
    with open(target + ".new", "wb") as out:
        out.write(lzma.compress(pickle.dumps(snapshot, 4), preset=9))
    os.replace(target + ".new", target)
    print(row["name"], os.path.getsize(target), flush=True)


def dry(options):
    os.makedirs(options.folder, exist_ok=True)
    for row in listed(options.list):
        if row["source"].startswith("dry/") and \
                (not options.names or row["name"] in options.names):
            run_dry(row, options.folder)


# ---- the files of the archive ----

def source_of(row, dry_folder):
    kind, path = row["source"].split("/", 1)
    if kind == "dry":
        return os.path.join(dry_folder or "", row["name"] + ".pickle.xz")
    return os.path.join(ROOT, "traces", "bundled", path) if kind == "bundled" \
        else os.path.join(SHARED, row["source"])


def read_source(row, dry_folder):
    path = source_of(row, dry_folder)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as why:
        raise score.Failed(3, f"{path}: {why.strerror}; recordings.csv names it as "
                           f"{row['source']}") from why


def name_in_archive(row, dry_folder):
    base = os.path.basename(source_of(row, dry_folder))
    return f"recordings/{row['name']}{base[base.index('.'):]}"


def stage(rows, dry_folder, folder):
    """Lays the recordings into a folder as the archive has them: {file: its row}."""
    os.makedirs(os.path.join(folder, "recordings"))
    files = {}
    for row in rows:
        file = name_in_archive(row, dry_folder)
        with open(os.path.join(folder, file), "wb") as out:
            out.write(read_source(row, dry_folder))
        files[file] = row
    return files


def describe(folder, file, row):
    """The rows of the manifest of one recording, one for each device in it."""
    path = os.path.join(folder, file)
    done = subprocess.run([FRAGSIM, "info", "-q", path, "--json", "-"], check=True,
                          capture_output=True, text=True)
    about, = json.loads(done.stdout)["results"]
    with open(path, "rb") as data:
        whole = data.read()
    timed = row["device"].startswith("NVIDIA")
    for device in about["devices"]:
        yield {**row, "device_index": device["device"], "file": file,
               "sha256": hashlib.sha256(whole).hexdigest(), "bytes": len(whole),
               "format": about["format"], "torch_version":
               about["torch_version"] if about["format"] == "torch" else None,
               "events": device["events"],
               "lower_bound_bytes": device["peak_with_failed_bytes"],
               "recorded_peak_reserved_bytes": device["recorded_peak_reserved_bytes"],
               "duration_seconds": device["duration_seconds"] if timed else None,
               "licence": LICENCE}


def policies():
    done = subprocess.run([FRAGSIM, "policies", "--json", "-"], check=True,
                          capture_output=True, text=True)
    return [p["name"] for p in json.loads(done.stdout)["policies"]] + VARIANTS


def with_kept(path, made, rows):
    """Rows as they were made, and those that the table has of other recordings and
    policies, in the order of the list and of the policies."""
    names, order = [row["name"] for row in rows], policies()
    key = lambda row: (row["name"], row.get("policy"))
    measured = {key(row) for row in made}
    kept = score.read_rows(path) if os.path.exists(path) else []
    both = made + [row for row in kept if key(row) not in measured]
    return sorted((row for row in both if row["name"] in names),
                  key=lambda row: (names.index(row["name"]), int(row["device_index"]),
                                   order.index(row.get("policy", order[0]))))


def measure(options):
    rows = listed(options.list)
    some = [r for r in rows if not options.names or r["name"] in options.names]
    with tempfile.TemporaryDirectory() as folder:
        files = stage(some, options.dry, folder)
        manifest = {file: list(describe(folder, file, row))
                    for file, row in files.items()}
        score.HERE, score.FRAGSIM = folder, FRAGSIM
        needs = score.measure_all(manifest, options.policies or policies(), options.jobs,
                                  lambda file: print("measured", file, flush=True))
    header = replayed(FRAGSIM, "paper/corpus/make.py measure", RESTS_ON)
    for name, columns, made in ((MANIFEST, COLUMNS, sum(manifest.values(), [])),
                                (NEEDS, score.COLUMNS, needs)):
        path = os.path.join(options.data, name)
        write_csv(path, header, columns, with_kept(path, made, rows))


# ---- the archive ----

def members(options):
    """(name in the archive, mode, bytes) of all files, in the order of the archive."""
    def whole(*path):
        with open(os.path.join(*path), "rb") as file:
            return file.read()
    yield "README.md", 0o644, whole(HERE, "README.md")
    yield "LICENSE", 0o644, whole(ROOT, "LICENSE")
    yield "score.py", 0o755, whole(HERE, "score.py")
    yield "example.c", 0o644, whole(ROOT, "tests", "package", "plugin", "bump.c")
    yield "manifest.csv", 0o644, whole(options.data, MANIFEST)
    yield "needs.csv", 0o644, whole(options.data, NEEDS)
    known = {row["file"]: row["sha256"] for row in score.read_rows(
        os.path.join(options.data, MANIFEST))}
    for row in listed(options.list):
        file, data = name_in_archive(row, options.dry), read_source(row, options.dry)
        if hashlib.sha256(data).hexdigest() != known.get(file):
            raise score.Failed(3, f"{source_of(row, options.dry)}: it is not the file of "
                               f"{MANIFEST}, whose SHA-256 is {known.get(file)}; run "
                               f"make.py measure again")
        yield file, 0o644, data


def archive(options):
    part = options.out + ".new"
    with tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as out:
        for name, mode, data in members(options):
            entry = tarfile.TarInfo(f"{TOP}/{name}")  # of user and group 0, in 1970
            entry.mode, entry.size = mode, len(data)
            out.addfile(entry, io.BytesIO(data))
    os.replace(part, options.out)
    with open(options.out, "rb") as file:
        data = file.read()
    print(f"{options.out}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS)
    verbs = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--list", default=os.path.join(HERE, "recordings.csv"))
    common.add_argument("--data", default=DATA)
    common.add_argument("--dry", metavar="FOLDER")
    verb = verbs.add_parser("dry", parents=[common])
    verb.add_argument("folder")
    verb.add_argument("names", nargs="*")
    verb.set_defaults(run=dry)
    verb = verbs.add_parser("measure", parents=[common])
    verb.add_argument("names", nargs="*")
    verb.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    verb.add_argument("-p", "--policies", action="append")
    verb.set_defaults(run=measure)
    verb = verbs.add_parser("archive", parents=[common])
    verb.add_argument("out")
    verb.set_defaults(run=archive)
    return parser.parse_args()


def main():
    options = parse()
    try:
        options.run(options)
    except score.Failed as why:
        print(f"make: {why.args[1]}", file=sys.stderr)
        return why.args[0]
    return 0


if __name__ == "__main__":
    sys.exit(main())

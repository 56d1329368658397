#!/usr/bin/env python3
"""check_corpus.py: a small archive of the corpus, made of two bundled recordings.

Made twice it has the same bytes. Unpacked, it scores a policy of the tool and one in a
shared library that is compiled here; need, price and score are those that `fragsim fit`
and the formulas give. The stored table is reproduced, and a changed row of it is found.
A damaged or absent recording, a policy that cannot serve, an unknown one, a broken one and
an absent tool are named. Stacks are taken out of a dry run's snapshot, and nothing else; a
snapshot that names code is refused. The tables that are kept are whole.
"""
import csv
import hashlib
import io
import lzma
import math
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, results, skip

MAKE = os.path.join(ROOT, "paper", "corpus", "make.py")
PLUGIN = os.path.join(ROOT, "tests", "package", "plugin")
SOURCES = {"died": "bundled/lstm_varlen__cap_below.pickle.xz",  # taken as it was recorded
           "query": "bundled/recorded/rmm_query.dev0.csv.xz"}
faults = []


def expect(true, what):
    if not true:
        faults.append(what)
        print(what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if line[0] != "#"))


def call(*words, code=0, cwd=None, **env):
    done = subprocess.run([sys.executable, "-B", *words], capture_output=True, text=True,
                          cwd=cwd, check=False,
                          env=os.environ | {"FRAGSIM": FRAGSIM} | env)
    expect(done.returncode == code, f"{words}: exit {done.returncode} instead of {code}: "
           f"{done.stdout[-300:]}{done.stderr[-600:]}")
    return done.stdout, done.stderr


def make(folder):
    """The path of the archive; its list and tables stay in the folder."""
    listed = os.path.join(folder, "list.csv")
    with open(listed, "w", encoding="utf-8") as out:
        out.write("name,source,device,about\n")
        for name, source in SOURCES.items():
            device = "NVIDIA H200" if name == "died" else "none"
            out.write(f'{name},{source},{device},"small, for a test"\n')
    common = ("--list", listed, "--data", folder)
    call(MAKE, "measure", *common, "-p", "torch", "-p", "best_fit")
    paths = [os.path.join(folder, name) for name in ("one.tar", "two.tar")]
    for path, cwd, zone, mask in zip(paths, (folder, ROOT), ("UTC", "Asia/Tokyo"),
                                     (0o022, 0o077)):
        before = os.umask(mask)
        call(MAKE, "archive", path, *common, cwd=cwd, TZ=zone)
        os.umask(before)
    one, two = (open(path, "rb").read() for path in paths)
    expect(one == two, "the archive made again has other bytes")
    with tarfile.open(paths[0]) as archive:
        for file in archive:
            expect((file.mtime, file.uid, file.gid, file.uname, file.gname) ==
                   (0, 0, 0, "", ""), f"{file.name} has a time or an owner")
    expect(folder.encode() not in one and ROOT.encode() not in one,
           "the archive holds a path of this machine")
    with open(listed, "a", encoding="utf-8") as out:
        out.write('other,bundled/two_streams.pt,none,"not measured"\n')
    _, words = call(MAKE, "archive", os.path.join(folder, "three.tar"), *common, code=3)
    expect("two_streams.pt" in words and "make.py measure" in words,
           f"a file that is not in the manifest: {words}")
    expect(not os.path.exists(os.path.join(folder, "three.tar")), "an archive was left")
    return paths[0]


def check_contents(top):
    expect(sorted(os.listdir(top)) == ["LICENSE", "README.md", "example.c", "manifest.csv",
                                       "needs.csv", "recordings", "score.py"],
           os.listdir(top))
    manifest = rows_of(os.path.join(top, "manifest.csv"))
    expect([row["name"] for row in manifest] == list(SOURCES), "other recordings")
    for row in manifest:
        facts, = results("info", "-q", os.path.join(top, row["file"]))
        device, = facts["devices"]
        expect(row["lower_bound_bytes"] == str(device["peak_with_failed_bytes"]) and
               row["events"] == str(device["events"]) and row["licence"] == "MIT" and
               row["bytes"] == str(os.path.getsize(os.path.join(top, row["file"]))),
               f"the manifest says {row}, info {device}")
        need = min(found["need_bytes"] for found in results(
            "fit", "-q", os.path.join(top, row["file"]), "--as-recorded", "-p", "plan",
            "-p", "direct"))
        expect(need >= int(row["lower_bound_bytes"]) > 0.95 * need,
               f"{row['name']}: {need} bytes serve it, the bound is {row}")
    expect([bool(row["duration_seconds"]) for row in manifest] == [True, False] and
           [row["torch_version"] for row in manifest] == ["2.11", ""],
           f"versions and times: {manifest}")
    stored = rows_of(os.path.join(top, "needs.csv"))
    expect([(r["name"], r["policy"]) for r in stored] == [
        (name, policy) for name in SOURCES for policy in ("torch", "best_fit")],
        f"needs.csv: {stored}")
    return manifest, stored


def formulas(top, manifest, stored, policy, share):
    """(need, price, score) of a policy, by `fragsim fit` and the text of score.py."""
    needs, prices, shares = [], [], []
    for row in manifest:
        found, = results("fit", "-q", row["file"], "--as-recorded", "-c", "inf",
                         "-p", policy, cwd=top)
        default, = (float(r["price_seconds"]) for r in stored
                    if (r["name"], r["policy"]) == (row["name"], "torch"))
        needs.append(found["need_bytes"] / int(row["lower_bound_bytes"]))
        prices.append(found["need_modelled_device_seconds"] / default)
        if row["duration_seconds"]:
            shares.append(default / float(row["duration_seconds"]))
    need, price = (math.prod(some) ** (1 / len(some)) for some in (needs, prices))
    share = statistics.median(shares) if share is None else share
    return need, price, need * (1 + share * (price - 1))


def table(said):
    """{policy: (score, need, worst, price)} of the last table, and those with a star."""
    lines = said.split("\n    score")[1].split("\n\n")[0].splitlines()[1:]
    cells = [line.split(maxsplit=4) for line in lines]
    return ({c[4].lstrip("*"): c[:4] for c in cells},
            [c[4][1:] for c in cells if c[4][0] == "*"])


def check_scores(top, manifest, stored, policy):
    program = os.path.join(top, "score.py")
    for share in (None, 0.0, 1.0):
        words = [] if share is None else ["--share", str(share)]
        said, _ = call(program, "-p", policy, *words, "--csv",
                       os.path.join(top, "now.csv"), cwd=top)
        found, stars = table(said)
        need, price, score = formulas(top, manifest, stored, policy, share)
        wanted = [f"{score:.4f}", f"{need:.4f}", f"{price:.3f}"]
        row = found.get(policy, ["absent"] * 4)
        expect([row[0], row[1], row[3]] == wanted, f"{policy}, share {share}: {row} instead "
               f"of {wanted}")
        expect(stars == [policy], f"measured now: {stars}")
        expect(set(found) == {"torch", "best_fit", policy}, f"the table has {set(found)}")
        expect(found["torch"][0] == found["torch"][1] and found["torch"][3] == "1.000",
               f"the default's score is not its need: {found['torch']}")
    now = rows_of(os.path.join(top, "now.csv"))
    if policy == "best_fit":
        expect(now == [r for r in stored if r["policy"] == policy],
               f"measured now: {now}; stored: {stored}")


def check_plugin(top, manifest, stored):
    if not shutil.which("cc"):
        return "there is no cc"
    for name, source in (("mine", os.path.join(top, "example.c")),
                         ("broken", os.path.join(PLUGIN, "broken.c"))):
        flags = os.environ.get("FRAG_INSTALL_CFLAGS", "").split()
        subprocess.run(["cc", *flags, "-shared", "-fPIC", "-I", ROOT, source, "-o",
                        os.path.join(top, name + ".so")], check=True)
    check_scores(top, manifest, stored, "./mine.so:region=64GiB")
    program = os.path.join(top, "score.py")
    said, _ = call(program, "-p", "./mine.so:region=1MiB", cwd=top)
    expect("serves not" in said and "region=1MiB: does not serve all recordings" in said,
           f"a policy that cannot serve: {said}")
    _, words = call(program, "-p", "./broken.so:fault=overlap", code=1, cwd=top)
    expect("overlaps a live block" in words, f"a broken policy: {words}")
    return None


def check_reproduced(top):
    program, path = os.path.join(top, "score.py"), os.path.join(top, "needs.csv")
    said, _ = call(program, "--reproduce")
    expect("4 of 4 stored rows are reproduced" in said, f"--reproduce: {said}")
    said, _ = call(program, "--reproduce", "--only", "query")
    expect("2 of 2 stored rows are reproduced" in said, f"--only: {said}")
    whole = read(path)
    need = rows_of(path)[3]["need_bytes"]
    with open(path, "w", encoding="utf-8") as out:
        out.write(whole.replace(need, str(int(need) + 1)))
    said, _ = call(program, "--reproduce", code=1)
    expect("query, best_fit: need_bytes is stored as" in said and "3 of 4" in said,
           f"a changed row: {said}")
    with open(path, "w", encoding="utf-8") as out:
        out.write(whole)


def check_faults(top, manifest):
    program = os.path.join(top, "score.py")
    file = os.path.join(top, manifest[1]["file"])
    with open(file, "rb") as data:
        whole = bytearray(data.read())
    whole[len(whole) // 2] ^= 1
    with open(file, "wb") as out:
        out.write(whole)
    _, words = call(program, "-p", "best_fit", code=3)
    expect(file in words and manifest[1]["sha256"] in words and "damaged" in words,
           f"a damaged recording: {words}")
    call(program, "-p", "best_fit", "--only", "died")
    os.remove(file)
    _, words = call(program, "-p", "best_fit", code=3)
    expect(file in words and "unpack" in words, f"an absent recording: {words}")
    _, words = call(program, "-p", "no_such", "--only", "died", code=2)
    expect("no_such" in words, f"an unknown policy: {words}")
    _, words = call(program, "-p", "best_fit", "--only", "dyed", code=2)
    expect("dyed" in words, f"an unknown recording: {words}")
    _, words = call(program, "-p", "best_fit", "--only", "died", code=2,
                    FRAGSIM="/no/such/tool")
    expect("install the wheel" in words, f"an absent tool: {words}")
    call(program, code=2)
    _, words = call(program, "-p", "best_fit", "--only", "died", "--csv",
                    os.path.join(top, "no", "such"), code=4)
    expect("no/such" in words, f"a file that cannot be written: {words}")


def check_stacks(folder):
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(MAKE))
    import make as program
    source = os.path.join(ROOT, "traces", "bundled", "leak_frames.pickle.xz")
    with lzma.open(source) as file:
        whole = file.read()
    less = pickle.dumps(program.without_stacks(program.Plain(io.BytesIO(whole)).load()), 4)
    expect(b".py" in whole and b".py" not in less, "a stack is still there")
    path = os.path.join(folder, "less.pickle")
    with open(path, "wb") as out:
        out.write(less)
    with_stacks, without = (results("info", "-q", one)[0]["devices"]
                            for one in (source, path))
    expect(with_stacks == without, f"without stacks: {without}; with them: {with_stacks}")
    try:
        program.Plain(io.BytesIO(pickle.dumps(os.path.join))).load()
        expect(False, "a snapshot that names code was read")
    except pickle.UnpicklingError as why:
        expect("join" in str(why), f"a snapshot that names code: {why}")


def check_committed():
    """The list, the manifest and the needs that are kept are of the same recordings, and
    nothing needs less than the lower bound."""
    listed = rows_of(os.path.join(ROOT, "paper", "corpus", "recordings.csv"))
    manifest, needs = (rows_of(os.path.join(ROOT, "paper", "data", name))
                       for name in ("corpus.csv", "corpus_needs.csv"))
    expect(list(dict.fromkeys(row["name"] for row in manifest)) ==
           [row["name"] for row in listed], "the manifest has other recordings")
    bounds = {(row["name"], row["device_index"]): int(row["lower_bound_bytes"])
              for row in manifest}
    policies = list(dict.fromkeys(row["policy"] for row in needs))
    expect([(r["name"], r["device_index"], r["policy"]) for r in needs] ==
           [(*where, policy) for where in bounds for policy in policies],
           "the needs have other rows than recordings and policies")
    for row in needs:
        expect(int(row["need_bytes"]) >= bounds[row["name"], row["device_index"]],
               f"less than the lower bound: {row}")
    for row in listed:
        if row["source"].startswith("bundled/"):
            kept, = (k for k in manifest if k["name"] == row["name"])
            path = os.path.join(ROOT, "traces", row["source"])
            with open(path, "rb") as file:
                expect(hashlib.sha256(file.read()).hexdigest() == kept["sha256"],
                       f"{path} is not the file of the manifest")


def main():
    if not os.path.exists(FRAGSIM):
        skip("the tool is absent")
    with tempfile.TemporaryDirectory() as folder:
        check_committed()
        check_stacks(folder)
        path = make(folder)
        with tarfile.open(path) as archive:
            archive.extractall(folder)
        top = os.path.join(folder, "fragsim-corpus")
        manifest, stored = check_contents(top)
        for policy in ("best_fit", "direct"):
            check_scores(top, manifest, stored, policy)
        lacking = check_plugin(top, manifest, stored)
        check_reproduced(top)
        check_faults(top, manifest)
    if not faults and lacking:
        skip(f"all but plug-ins: {lacking}")
    print(f"corpus: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""check_keys.py: what `fragsim conf` says about settings, against the parsers of
PyTorch's releases. tests/gpu/releases/keys.csv has what each release answers to
each setting (keys.py asks it and names the words); conf must say the same, and
have the same settings of placement in force. A setting that no release knows is
refused by all, which conf calls unknown.

With FRAG_TORCH_RELEASES, a folder with an environment of Python for each
release (check_releases.py), the releases are asked again and must answer what
the table has; `check_keys.py --write` writes the table. Environment: FRAGSIM,
FRAG_BUILD_DIR.
"""
import csv
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu",
                      "releases")
sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "support"), FOLDER]
import harness  # noqa: E402
import keys  # noqa: E402

TABLE = os.path.join(FOLDER, "keys.csv")
RELEASES = os.environ.get("FRAG_TORCH_RELEASES", "")


# ---- the releases ----

def python_of(release):
    return os.path.join(RELEASES, f"env-{release}", "bin", "python")


def libraries_of(python):
    """The stand-ins for the version of CUDA that a release was built for."""
    runtime = glob.glob(os.path.join(os.path.dirname(python), "..", "lib", "*",
                                     "site-packages", "torch", "version.py"))
    with open(runtime[0], encoding="utf-8") as file:
        cuda = re.search(r"cuda\b.*'(\d+)\.", file.read()).group(1)
    return ":".join(os.path.join(harness.BUILD, "dry", name) for name in ("", cuda))


def ask(release, settings):
    python = python_of(release)
    env = dict(os.environ, FRAGSIM_DRY_MEMORY="32768",
               LD_LIBRARY_PATH=libraries_of(python))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers")
        subprocess.run([python, "-W", "always", os.path.join(FOLDER, "keys.py"),
                        path], input=json.dumps(settings), text=True, env=env,
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


# ---- conf ----

def conf(release, setting):
    """The object of conf for a setting, which it reads from where the release
    does."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTORCH_")}
    text = setting.removeprefix("call ")
    named = dict(keys.VARIABLE.findall(text))
    args = ["conf", f"torch_version:{release}," + ("-" if named else text), "-q"]
    done = harness.attempt(*args, "--json", "-", env={**env, **named})
    assert done.returncode in (0, 1), (release, setting, done.stderr)
    return json.loads(done.stdout)["results"][0]


def in_force(answer):
    """The settings of placement in force, as keys.py writes them."""
    found = dict(re.findall(r"(\w+):(\[[^]]*\]|[^,]*)", answer["in_force"] or ""))
    fits = found.get("roundup_power2_divisions", "")
    counts = re.findall(r":(\d+)", fits) or [fits] * 16
    split = int(found.get("max_split_size_mb", "0"))
    return keys.in_force({
        "expandable_segments": found.get("expandable_segments") == "True",
        "garbage_collection_threshold":
            float(found.get("garbage_collection_threshold", "0")),
        "max_split_size": split * keys.MIB,
        "roundup_power2_divisions": {k: int(n or 0) for k, n in enumerate(counts)},
    })


def judge(release, setting):
    """The answer of conf, in the words of the table."""
    answer = conf(release, setting)
    levels = {row["status"] for row in answer["settings"]}
    if levels & {"refused", "unknown"}:
        return "refused", levels
    return "accepted" + in_force(answer), levels


def differs(case):
    """What is wrong with conf's answer; None."""
    release, setting, kept = case
    found, levels = judge(release, setting)
    if found == kept.replace("ignored", "accepted") and \
            (not kept.startswith("ignored") or "ignored" in levels):
        return None
    return f"{release} {setting!r}: {kept}; conf: {found}, {sorted(levels)}"


# ---- the table ----

def read_table():
    with open(TABLE, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_table(rows, releases):
    columns = [ask(release, [row["setting"] for row in rows])
               for release in releases]
    with open(TABLE, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["setting", *releases])
        out.writerows(zip((row["setting"] for row in rows), *columns))


def ask_again(rows, release):
    settings = [row["setting"] for row in rows]
    answers = ask(release, settings)
    faults = [f"{release} {s!r}: {a}; the table: {row[release]}"
              for s, a, row in zip(settings, answers, rows) if a != row[release]]
    print(f"{release}: {len(rows) - len(faults)} of {len(rows)} answers of its "
          "parser are those of the table")
    return faults


def main():
    rows = read_table()
    releases = [name for name in rows[0] if name != "setting"]
    if sys.argv[1:] == ["--write"]:
        write_table(rows, releases)
        rows = read_table()
    cases = [(r, row["setting"], row[r]) for r in releases for row in rows]
    assert len(cases) > 2000, len(cases)
    cases = harness.share(cases)
    with ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(differs, cases) if fault]
    print(f"conf: {len(cases) - len(faults)} of {len(cases)} answers are those of "
          f"the parsers ({len(rows)} settings, {len(releases)} releases)")
    for release in releases:
        if os.path.exists(python_of(release)):
            faults += ask_again(rows, release)
        else:
            print(f"{release}: not asked again (FRAG_TORCH_RELEASES)")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

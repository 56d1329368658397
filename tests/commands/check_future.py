#!/usr/bin/env python3
"""check_future.py - the commands on snapshots that a later PyTorch writes: with
settings, keys and an action that fragsim does not know. No command stops; each
says once what it leaves out, as text, as JSON or on its page; and the answer is
that of the snapshot without them.

Environment: FRAGSIM (the tool; default build/fragsim)."""
import lzma
import os
import pickle
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, attempt, output, results, run

NAME = "lstm_varlen__cap_below"  # a job that died
# The second name resembles max_split_size_mb.
KEYS = "future_key:[a:1,b:2],max_split_size_gb:1"
WORDS = re.compile(r"not known to\s+fragsim \S+ \(knows\s+PyTorch up\s+to 2\.\d+\)")
JSON = ["info", "validate", "explain", "summary", "replay -p torch@recorded",
        "replay -p torch -p torch@2.6", "fit -p torch@recorded -p best_fit",
        "steps", "leaks", "top"]
TEXTS = [*JSON, "diff {} {}", "tune", "import -o i.h5", "export -o x.csv",
         "export --to snapshot -p torch@recorded -o x.pickle", "plot {} map -o m.html",
         "explain -o m.svg", "edit -e drop:min=1GiB -o e.h5"]


def later(snapshot):
    """The snapshot as PyTorch of the future may write it."""
    settings = snapshot["allocator_settings"]
    text = settings["PYTORCH_CUDA_ALLOC_CONF"]
    settings["PYTORCH_CUDA_ALLOC_CONF"] = f"{text},{KEYS}" if text else KEYS
    settings["future"] = snapshot["future"] = [{"a": 1}]
    for segment in snapshot["segments"]:
        segment["future"] = segment["blocks"][0]["future"] = {"x": (1, None)}
    for entry in snapshot["device_traces"][0]:
        entry["future"] = {"x": [1.5]}
    return snapshot


def make_files():
    path = os.path.join(BUNDLED, NAME)
    with lzma.open(path + ".pickle.xz") as file:
        data = file.read()
    for name, snapshot in ("now", pickle.loads(data)), \
            ("later", later(pickle.loads(data))):
        with open(name + ".pickle", "wb") as file:
            pickle.dump(snapshot, file)
        shutil.copy(path + ".json", name + ".json")


def words_of(command, name):
    words = command.split()
    if "{}" not in words:
        words.insert(1, "{}")
    if ".svg" in command or "-o" in words:
        words.append("-f")
    return [word.replace("{}", name + ".pickle") for word in words]


def check_text(command):
    """The exit code is that of the present file, and a sentence for each file
    says what is left out."""
    code = run(*words_of(command, "now"), code=(0, 1)).returncode
    done = attempt(*words_of(command, "later"))
    said = WORDS.findall(done.stdout + done.stderr)
    assert done.returncode == code, (command, done)
    assert len(said) == max(1, command.count("{}") * (command[:4] == "diff")), \
        (command, done)
    assert "refuse" not in done.stdout + done.stderr, (command, done)


def without_notes(value):
    """The answer without notes, paths and what is read of the file itself."""
    if isinstance(value, list):
        return [without_notes(item) for item in value]
    if not isinstance(value, dict):
        return re.sub(r"\blater\b", "now", str(value)).replace(KEYS + ",", "").replace(KEYS, "")
    own = r"note|release|settings$|bytes$|.*sha256$|.*seconds$|ns_per_event$"
    return {key: without_notes(item) for key, item in value.items()
            if not re.match(own, key)}


def check_json(command):
    verb = words_of(command, "later")
    done = output(*verb, "--json", "-", "-q", code=(0, 1))
    assert len(set(WORDS.findall(done))) == 1 and "refuse" not in done, \
        (command, done)
    now = results(*words_of(command, "now"), "-q", code=(0, 1))
    assert without_notes(results(*verb, "-q", code=(0, 1))) == without_notes(now), \
        command


def check_pages():
    run("replay", "later.pickle", "-p", "torch@recorded", "-o", "r.h5", "-q")
    run("report", "r.h5", "-o", "report.html", "-q")
    run("triage", "later.pickle", "-o", "triage.html", "-q", "--capacity", "24GiB",
        code=(0, 1))
    for name in "report.html", "triage.html":
        with open(name, encoding="utf-8") as file:
            assert WORDS.search(file.read()), name


def check_action():
    """An entry with an action of the future is left out, and a note says so."""
    with open("later.pickle", "rb") as file:
        snapshot = pickle.load(file)
    entries = snapshot["device_traces"][0]
    entries.insert(len(entries) // 2, {**entries[-1], "action": "future"})
    with open("action.pickle", "wb") as file:
        pickle.dump(snapshot, file)
    done = run("validate", "action.pickle")
    assert ": exact" in done.stdout and '"future"' in done.stderr, done


def check_releases():
    """A release that is not known is read as the newest."""
    now = results("replay", "now.pickle", "-p", "torch@2.15", "-q")[0]
    done = run("replay", "now.pickle", "-p", "torch@2.16", "-p", "torch@3.0:"
               "max_split_size_mb:64")
    assert len(WORDS.findall(done.stderr)) == 2, done.stderr
    row = results("replay", "now.pickle", "-p", "torch@2.16", "-q")[0]
    assert row["peak_reserved_bytes"] == now["peak_reserved_bytes"], row
    answer = results("conf", f"torch_version:2.99,{KEYS}", "-q", code=1)[0]
    assert [row["status"] for row in answer["settings"]] == ["unknown"] * 2, answer
    assert all(WORDS.search(row["why"]) for row in answer["settings"]), answer
    assert not answer["knows_release"], answer
    assert answer["torch_version"] == "2.15" and answer["verdict"] == "unknown"


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files()
        for command in TEXTS:
            check_text(command)
        for command in JSON:
            check_json(command)
        check_pages()
        check_action()
        check_releases()
    print(f"{len(TEXTS)} commands as text, {len(JSON)} as JSON, 2 pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())

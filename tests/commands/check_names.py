#!/usr/bin/env python3
"""check_names.py: a text that comes from an input is data, whatever it holds.

Copies of a bundled trace get names with a line of shell, escape sequences,
quotes, markup, bytes that are not UTF-8, and characters that change the
direction of writing. Every command runs on them and on their results, and also
fails on them. The check then demands that
  - stdout and stderr hold no control character but the line break, and no line
    that begins with a part of the name;
  - the printable form of the name, as traces/printable.h defines it, is in the
    tables, and JSON holds the exact name;
  - a shell that evaluates the output of `fragsim tune` executes the export and
    nothing else;
  - SVG and HTML parse and hold no tag of the name;
  - a command line in a result is read by bash as it was typed.
The check of --color and of the progress bar needs a pseudo-terminal. Without
gnuplot no figure is drawn.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import csv
import io
import json
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import terminal
from harness import FRAGSIM, ROOT, need

BUNDLED = os.path.join(ROOT, "traces", "bundled", "two_streams.pt")
FRAMES = os.path.join(ROOT, "traces", "bundled", "leak_frames.pickle.xz")
MARK = "EVIL"  # a file or variable of this name must never exist

NAMES = [
    b"job\nexport EVIL=1 #",
    b"job\rexport EVIL=1;touch EVIL\n\nexport EVIL=2 # \t,;\x0b\x0c\x08\x7f\x01",
    b"\x1b[31mred\x1b]0;title\x07\x1b[2J\x1bc '; touch EVIL; ' \"; touch EVIL",
    b"'; system(\"touch EVIL\"); '\nsystem('touch EVIL')\n# `touch EVIL` "
    b"$(touch EVIL) ${IFS} %s%n \\033[31m \\n",
    b"<script>x=1<img src=x onerror=x()>&amp;&#27;]]> --",
    "C1 \u009b31m \u0085 \u0090".encode() + b" raw \x9b31m \x85 no UTF-8 "
    b"\xff\xfe \xc0\x8a \xed\xa0\x80 \xe6\x97",
    "bidi \u202etxt.\u202c \u2066a\u2069 \u200f lines \u2028\u2029".encode(),
    "caf\u00e9 \u65e5\u672c\u8a9e \U0001f600".encode(),
    (b"long \x1b[1m" * 40)[:250 - len(".pt")],
]
KINDS = {0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2066, 0x206a)}
SHORT = {0x09: "\\t", 0x0a: "\\n", 0x0d: "\\r"}
HAS_GNUPLOT = shutil.which("gnuplot") is not None


def form(name):
    """The printable form, computed in another way than the tool does."""
    text = ""
    for c in name.decode("utf-8", "surrogateescape"):
        code = ord(c)
        if 0xdc80 <= code <= 0xdcff:
            text += f"\\x{code - 0xdc00:02x}"
        elif code in SHORT:
            text += SHORT[code]
        elif code in KINDS or code > 0x7f and unicodedata.category(c) == "Cc":
            text += f"\\u{code:04x}"
        elif unicodedata.category(c) == "Cc":
            text += f"\\x{code:02x}"
        else:
            text += c
    return text


def acting(text, but="\n"):
    """The characters of a text that act on a terminal or on the direction of
    writing, as numbers."""
    return {hex(ord(c)) for c in text if c not in but and
            (unicodedata.category(c) == "Cc" or ord(c) in KINDS)}


def check_plain(what, output, name):
    """The output holds nothing that acts on a terminal, and no line that
    begins inside of the name."""
    text = output.decode("utf-8")  # fails on bytes that are not UTF-8
    assert not acting(text), (what, acting(text), text[:600])
    lines = [part for part in re.split(rb"[\r\n]", name)[1:] if part]
    for line in output.split(b"\n"):
        assert not any(line.startswith(part) for part in lines), (what, line)


def run(name, *arguments, codes=(0,), **more):
    """Runs the tool; returns stdout as text. Both outputs must be plain, but
    for the tabs between columns with tabs=True."""
    tabs = more.pop("tabs", False)
    done = subprocess.run([FRAGSIM, *arguments], capture_output=True,
                          check=False, stdin=subprocess.DEVNULL, **more)
    assert done.returncode in codes, \
        f"{arguments}: exit {done.returncode}, not {codes}: {done.stderr}"
    out = done.stdout.replace(b"\t", b"") if tabs else done.stdout
    check_plain((arguments, "stdout"), out, name)
    check_plain((arguments, "stderr"), done.stderr, name)
    return done.stdout.decode()


def texts_of(value):
    """All texts of a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_of(item)


def check_json(name, text):
    """The JSON parses, is plain text, and it holds the exact name, in which
    each byte that is not UTF-8 is U+FFFD."""
    exact = "".join("\ufffd" if 0xdc80 <= ord(c) <= 0xdcff else c for c in
                    name.decode("utf-8", "surrogateescape"))
    found = list(texts_of(json.loads(text)))
    assert exact in found, (exact, found[:12])


def check_table(name, text):
    """A table shortens a long name; its beginning is there."""
    assert form(name)[:20] in text, (form(name), text)


class Tags(HTMLParser):
    """The page's tags nest, and none of them comes from a name."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag != "img", attrs
        assert not any(key.startswith("on") for key, _ in attrs), attrs
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            assert "x=1" not in data, data


# -- commands on a trace -----------------------------------------------------


def check_rows(name, trace):
    """The commands that print rows: replay and fit."""
    for verb in ("replay", "fit"):
        check_table(name, run(name, verb, trace, trace, BUNDLED))
        check_json(name, run(name, verb, trace, "--json", "-"))
        text = run(name, verb, trace, "--csv", "-")
        row = list(csv.DictReader(io.StringIO(text)))[0]
        assert row["trace"] == form(name), row
        run(name, verb, trace, "--csv", "rows.csv", "-q", "-f")
        with open("rows.csv", encoding="utf-8", newline="") as file:
            assert file.read() == text or verb == "replay"


def check_trace(name, trace):
    """The commands that describe or convert a trace."""
    assert form(trace) in run(name, "info", trace)
    check_json(trace, run(name, "info", trace, "--json", "-"))
    assert form(name)[:20] in run(name, "top", trace)
    assert form(name)[:20] in run(name, "diff", trace, trace)
    check_json(trace, run(name, "top", trace, "--json", "-"))
    check_json(trace, run(name, "diff", trace, trace, "--json", "-"))
    check_table(trace, run(name, "validate", trace, codes=(0, 1)))
    check_json(trace, run(name, "validate", trace, "--json", "-",
                          codes=(0, 1)))
    out = name[:200]  # an output needs room for the suffix of its draft
    run(name, "import", trace, "-o", out + b".h5")
    run(name, "import", trace, "-o", out + b".h5", codes=(4,))
    run(name, "info", out + b".h5")
    run(name, "export", trace, "-o", out + b".csv")
    run(name, "export", trace, "-o", out + b".csv", codes=(4,))
    run(name, "gen", "stationary:allocs=64", "-o", out + b".h5", "-f")
    os.unlink(out + b".h5")
    os.unlink(out + b".csv")


def check_tune(name, trace):
    """A shell executes the export of tune, and nothing of the name."""
    check_table(name, run(name, "tune", trace))
    check_json(name, run(name, "tune", trace, "--json", "-"))
    for shell in filter(shutil.which, ("sh", "bash")):
        done = subprocess.run(
            [shell, "-c", 'eval "$("$0" tune "$1" -q)" && env',
             FRAGSIM, trace], capture_output=True, check=False,
            env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "mine"})
        assert done.returncode == 0 and not done.stderr, done
        assert b"PYTORCH_CUDA_ALLOC_CONF=mine" not in done.stdout, done.stdout
        assert not re.search(rb"^EVIL", done.stdout, re.M), done.stdout


def check_sweep(name, trace):
    """A grid, its list, its failures, and two parts of it joined."""
    listed = run(name, "sweep", trace, b"x" + trace, "-p", "torch", "--list",
                 tabs=True)
    assert [line.count("\t") for line in listed.splitlines()] == [3, 3], listed
    check_table(trace, listed)
    out = name[:200] + b".h5"
    run(name, "sweep", trace, "-c", "0.9x,inf", "-o", out)
    run(name, "sweep", trace, "-c", "0.9x,inf", "-o", out,
        codes=(4,))
    run(name, "sweep", trace, b"x" + trace, "-o", "faults.h5", codes=(4,))
    run(name, "sweep", trace, b"x" + trace, "-o", "faults.h5", "--resume",
        codes=(4,))
    run(name, "merge", b"joined " + out, out, out)
    run(name, "merge", "twice.h5", "faults.h5", "faults.h5")
    shutil.rmtree("faults.h5.part")
    for left in ("faults.h5", "twice.h5", b"joined " + out):
        os.unlink(left)


# -- commands on results -----------------------------------------------------


def check_figures(name, trace, results):
    """Figures and pages of the results, also under the name."""
    for figure in ("timeline", "compare", "heatmap"):
        out = b"x" + name[:200] + b".svg"
        run(name, "plot", results, figure, "-o", out, "-f", "-q")
        check_svg(out)
        os.unlink(out)
    run(name, "explain", trace, "-c", "64MiB", "-o", "x.svg", "-f", "-q")
    check_svg("x.svg")
    out = b"x" + name[:200] + b".html"
    run(name, "report", results, "-o", out)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    os.unlink(out)
    assert not acting(text, "\n\t"), acting(text, "\n\t")
    Tags(text)
    assert "<script>x" not in text
    folder = b"keep " + name[:200]
    run(name, "plot", results, "compare", "-o", "x.png", "-f", "--keep", folder)
    shutil.rmtree(folder)


def check_svg(path):
    for element in ElementTree.parse(path).iter():
        tag = element.tag.split("}")[-1]
        assert tag not in ("script", "img"), tag
        assert not any(key.startswith("on") for key in element.attrib)
        assert not acting(element.text or "", "\n\t"), element.text


def check_command(name, trace, results):
    """A result file holds the exact name, and bash reads the command line of a
    result as it was typed."""
    with open(results, "rb") as file:
        assert name in file.read(), name
    document = json.loads(run(name, "replay", trace, "--json", "-", "-c",
                              "inf"))
    line = document["command"]
    assert printable(line), line
    if not shutil.which("bash"):
        return
    done = subprocess.run(
        ["bash", "-c", "fragsim() { printf '%s\\0' \"$@\"; }; " + line],
        capture_output=True, check=True)
    words = done.stdout.split(b"\0")[:-1]
    assert words == [b"replay", trace, b"--json", b"-", b"-c", b"inf"], words


def printable(text):
    return form(text.encode()) == text


# -- misuse ------------------------------------------------------------------


def check_errors(name, trace):
    """Errors, which name the argument."""
    missing, folder, results = (b"no " + name[:240], b"dir " + name[:240],
                                b"results " + name[:240])
    os.mkdir(folder)
    shutil.copy(trace, results)
    run(name, "diff", trace, missing, codes=(4,))
    run(name, "diff", trace, results, "--at", name, codes=(2,))
    for verb in ("replay", "fit", "tune", "info", "validate", "top"):
        run(name, verb, missing, codes=(4,))
        run(name, verb, folder, codes=(3, 4))
    run(name, "sweep", missing, "-o", "no.h5", codes=(4,))
    assert not os.path.exists("no.h5") and not os.path.exists("no.h5.part")
    for verb, *more in (("import", "-o", "x.h5"), ("export", "-o", "x.csv")):
        run(name, verb, missing, *more, codes=(4,))
    run(name, "merge", "x.h5", missing, codes=(3, 4))
    for path in (missing, results, folder):
        run(name, "report", path, "-o", "x.html", codes=(2, 3, 4))
        run(name, "plot", path, "compare", "-o", "x.svg", codes=(2, 3, 4))
    run(name, "compare", missing, codes=(4, 5))
    os.rmdir(folder)
    os.unlink(results)


def check_misuse(name, trace):
    """Options, policies and words that do not exist."""
    for option in ("-p", "-c", "--total", "--recorded-limit", "--costs", "--device",
                   "--address-rule", "--json=x\n", "--color"):
        run(name, "replay", trace, option, name, codes=(2, 4))
    for word in (b"--" + name, b"-" + name, b"--quiet=" + name,
                 b"--device=" + name, b"--c" + name):
        run(name, "replay", trace, word, codes=(2,))
    run(name, "replay", trace, b"-p./" + name + b".so", codes=(2, 4))
    run(name, "replay", trace, "-p", b"torch:" + name, codes=(2,))
    run(name, "replay", trace, "-p", b"torch@" + name, codes=(2,))
    run(name, "sweep", "--grid", name, "-o", "x.h5", codes=(4,))
    run(name, "sweep", trace, "--shard", name, "-o", "x.h5", codes=(2,))
    run(name, "tune", trace, "--without", name, codes=(2,))
    run(name, "plot", trace, name, "-o", "x.svg", codes=(2, 3))
    run(name, "gen", name, "-o", "x.h5", codes=(2,))
    run(name, "gen", b"stationary:" + name, "-o", "x.h5", codes=(2,))
    run(name, "policies", name, codes=(2,))
    run(name, "policies", b"./" + name + b".so", codes=(2, 4))
    run(name, "help", name, codes=(2,))
    run(name, name, codes=(2,))
    run(name, "gen", name, name, codes=(2,))
    run(name, "record", "-o", b"r" + name[:200], "--", "true", codes=(5,))
    run(name, "record", "-o", "r.h5", "--", b"./" + name, codes=(2, 4, 127))


def check_calibrate(name):
    """The comment of a file of times: one line, which costs and figures copy."""
    line = name.replace(b"\n", b" ").replace(b"\r", b" ")
    with open("calls.csv", "wb") as file:
        file.write(b"# " + line + b"\ncall,bytes,round,ns\n")
        for call in ("va_reserve va_free phys_create phys_release map unmap "
                     "segment_alloc segment_free small_alloc small_free copy "
                     "synchronize").split():
            for mib in (1, 2, 4, 8, 16):
                file.write(f"{call},{mib << 20},1,{3000 + mib}\n".encode())
    run(name, "compare", "--calibrate", "calls.csv", "--csv", "-")
    run(name, "compare", "--calibrate", "calls.csv", "--csv",
        name[:200])
    run(name, "replay", BUNDLED, "--costs", name[:200], "-q")
    os.unlink(name[:200])


# -- texts inside of files --------------------------------------------------


def check_held(name, text):
    """The commands top and diff, on stacks whose frames hold the name."""
    def held(*more):
        return run(name, "top", "settings.pickle", *more)

    assert form(text.encode())[:20] in held("--by", "stack")
    said = json.loads(held("--json", "-", "--by", "site"))
    assert said["results"][0]["groups"][0]["site"]["function"] == text, said
    said = json.loads(held("--json", "-"))  # one line holds all
    assert said["results"][0]["groups"][0]["caller"]["function"] == text, said
    assert len(held("--folded", "-").splitlines()) == 1
    held("--filter", name)
    run(name, "top", "settings.pickle", "--by", name, codes=(2,))
    run(name, "top", "settings.pickle", "--at", name, codes=(2,))
    for more in ((), ("--json", "-"), ("--by", "function")):
        run(name, "diff", "settings.pickle", "settings.pickle", "--at", "9",
            "--at", "end", *more)


def check_settings(name):
    """A snapshot whose settings and stacks hold the name."""
    text = name.decode("utf-8", "replace")
    with lzma.open(FRAMES) as file:
        snapshot = pickle.load(file)
    snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = text
    for event in snapshot["device_traces"][0]:
        event["frames"] = [{"name": text, "filename": text, "line": 1}]
        event["user_metadata"] = event["compile_context"] = text
    with open("settings.pickle", "wb") as file:
        pickle.dump(snapshot, file)
    assert form(text.encode()) in run(name, "info", "settings.pickle")
    said = json.loads(run(name, "info", "settings.pickle", "--json", "-"))
    assert any(text in found for found in texts_of(said)), said
    for policy in ("torch", "torch@recorded"):
        run(name, "replay", "settings.pickle", "-p", policy, codes=(0, 2))
    run(name, "import", "settings.pickle", "-o", "settings.h5")
    run(name, "info", "settings.h5")
    run(name, "validate", "settings.h5", codes=(0, 1, 2, 3))
    check_held(name, text)
    for left in ("settings.h5", "settings.pickle"):
        os.unlink(left)


def check_plugin(name):
    """A policy in a shared library whose path and texts hold the name."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return
    literal = "".join(f"\\{byte:03o}" for byte in name)
    with open(os.path.join(ROOT, "tests", "package", "plugin", "bump.c"),
              encoding="utf-8") as file:
        source = re.sub(r'"(bump|one region[^"]*|fragsim, [^"]*|bytes of [^"]*)"',
                        lambda _: f'"{literal}"', file.read())
    with open("bump.c", "w", encoding="utf-8") as file:
        file.write(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-I", ROOT, "bump.c", "-o",
                    "bump.so"], check=True)
    path = b"./x" + name[:200] + b".so"
    os.replace("bump.so", path)
    check_table(path, run(name, "replay", BUNDLED, "-p", path))
    check_json(path, run(name, "replay", BUNDLED, "-p", path, "--json", "-"))
    run(name, "replay", BUNDLED, "-p", path + b":x=" + name, codes=(2,))
    listed = run(name, "policies", path)
    assert listed.count(form(name)) == 4, listed
    check_json(name, run(name, "policies", path, "--json", "-"))
    os.unlink(path)


# -- terminals ---------------------------------------------------------------


def on_terminal(*arguments):
    """What the tool writes to a terminal, without its own sequences: the
    progress bar and the colours of a table."""
    code, written = terminal.written([FRAGSIM, *arguments], stdout=True,
                                     stderr=True)
    assert code == 0, written
    written = written.replace(b"\r\n", b"\n")
    return re.sub(rb"\r\x1b\[K|\x1b\[(0|1|31)m", b"", written)


def check_terminal(name, trace):
    if not terminal.has_terminals():
        return
    for arguments in (("replay", trace, "-c", "0.9x,inf"), ("fit", trace),
                      ("replay", trace, "--csv", "-")):
        check_plain(arguments, on_terminal(*arguments), name)


# -- all of them -------------------------------------------------------------


def check_name(name):
    trace = name + b".pt"
    shutil.copy(BUNDLED, trace)
    check_rows(name, trace)
    check_trace(name, trace)
    check_tune(name, trace)
    check_sweep(name, trace)
    check_errors(name, trace)
    check_misuse(name, trace)
    check_calibrate(name)
    check_settings(name)
    check_plugin(name)
    check_terminal(name, trace)
    results = b"results.h5"
    run(name, "replay", trace, BUNDLED, "-p", "torch", "-p", "best_fit", "-c",
        "1.2x,inf", "-o", results, "-f")
    check_command(name, trace, results)
    if HAS_GNUPLOT:
        check_figures(name, trace, results)
    assert not os.path.exists(MARK), name


def main():
    need(FRAGSIM)
    assert form(b"a\x1b\nb\xc2\x9b\xff") == "a\\x1b\\nb\\u009b\\xff"
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            check_name(name)
            os.chdir(ROOT)
    print(f"{len(NAMES)} names are printed as data")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""check_paper.py: the paper's numbers, text and data; and, where LaTeX is
installed, the PDF.

Without LaTeX: every number that the text uses is made by paper/tables/macros.py, and
every number that is made is used; no digit stands in the text, apart from names in
\\p{...} that occur in the data or in the tool, a short list of names, \\theirs{...} (a
figure that a cited work states), and files whose first line names the script of paper/
that makes them; every data file says how it was made; every file of paper/ that a data
file or a page names exists; make_all.sh runs every script that makes a table or the
claims; data that are made again as they were keep their header; the generated files hold
no absolute path; macros.py refuses a missing column and a contradicted sentence;
pages/sentences.md and pages/decisions.md are what sentences.py makes, and it refuses a
sentence that it does not know any more; law.py counts runs and live blocks, and touched.py
pages, as by hand.
With LaTeX: the target `paper` builds, no line is too wide, no reference is undefined, all
fonts are embedded, and the paper has at most 12 pages.

Environment: FRAG_BUILD_DIR (the build folder; default build).
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUILD, FRAGSIM, ROOT

PAPER = os.path.join(ROOT, "paper")
sys.dont_write_bytecode = True
sys.path.append(os.path.join(PAPER, "tables"))
import data_header  # noqa: E402

DATA = os.path.join(PAPER, "data")
NEEDED = ("latexmk", "pdflatex", "pdffonts", "pdfinfo", "pdftotext", "gnuplot")
PAGES = range(8, 13)
# Names with digits that may stand in the text.
NAMES = ("GPT-2", "H100", "H200", "T5", "C17", "C++17", "GH200", "A100", "HDF5")
# The terms of the law.
FORMULAS = ("$2R'$", "2R'P", "2(R+1)", "R+1", "2(n+1)")
# What a comment or a first row says of data from a GPU, and from a replay.
MEASURED = {"device": r"NVIDIA (H100|H200)", "driver": r"580|driver unknown",
            "date": r"20\d\d-\d\d-\d\d|date unknown",
            "command": r"\w+\.(py|sh|c)\b"}
REPLAYED = {"version": r"fragsim \d+\.\d+", "date": r"20\d\d-\d\d-\d\d",
            "command": r"paper/(tables|gpu|upstream|corpus)/\w+\.py"}
faults = []


def check(holds, what):
    if not holds:
        faults.append(what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def texts():
    """(name, text without comments) of the parts of the paper."""
    for path in sorted(glob.glob(os.path.join(PAPER, "text", "*.tex"))):
        lines = [re.sub(r"(?<!\\)%.*", "", l) for l in
                 read(path).splitlines()]
        yield os.path.basename(path), "\n".join(lines)


def run_macros(folder, paper=PAPER):
    """(exit code, {number: file}, stderr) of macros.py."""
    done = subprocess.run([sys.executable, "-B",
                           os.path.join(paper, "tables", "macros.py"), folder, "--list"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return done.returncode, {}, done.stderr
    made = dict(re.findall(r"(?m)^\\fragnumber\{([^}]*)\}\{(?:.|\n)*?\}% (.*)$",
                           read(os.path.join(folder, "numbers.tex"))))
    return 0, made, done.stderr


def check_macros(made):
    used = {name for text in [text for _, text in texts()] +
            [read(os.path.join(PAPER, "text", "decisions.md"))]
            for name in re.findall(r"\\N\{([^}]*)\}", text)}
    check(len(used) > 100, f"the text uses {len(used)} numbers only")
    for name in sorted(used - set(made)):
        check(False, f"the text uses {name}, which macros.py does not make")
    for name in sorted(set(made) - used):
        check(False, f"macros.py makes {name}, which the text does not use")
    for name, file in made.items():
        for one in file.split(", "):
            check(os.path.exists(os.path.join(PAPER, one)) or
                  os.path.exists(os.path.join(ROOT, one)),
                  f"{name} comes from {one}, which does not exist")


def make_sentences(folder, paper=PAPER):
    """(exit code, stderr) of sentences.py."""
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run([sys.executable, "-B", os.path.join(paper, "tables", "sentences.py"),
                           folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def check_sentences(folder):
    """The pages of claims and of decisions are those that sentences.py makes."""
    out = os.path.join(folder, "pages")
    code, stderr = make_sentences(out)
    check(code == 0, f"sentences.py: exit {code}: {stderr}")
    for page in ("sentences.md", "decisions.md"):
        check(code or read(os.path.join(out, page)) == read(os.path.join(PAPER, "pages", page)),
              f"pages/{page} is stale: run paper/tables/sentences.py")


def check_law(folder):
    """law.py on the trace that it makes, which a count by hand can check: PINS blocks stay
    alive, none beside another, and the request after them is the largest."""
    os.environ["FRAGSIM"] = FRAGSIM
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(PAPER, "tables"))
    import law
    path = os.path.join(folder, "pins.csv")
    law.made(path)
    found = {r["policy"]: r for r in law.measure(path)}
    row = found["expandable:page=2MiB,largest=2MiB"]
    page, pin = 2 << 20, 64 << 10
    request = (2 * law.PINS - 1) * page - pin // 2
    check((row["runs"], row["runs_bytes"]) ==
          (law.PINS, law.PINS * pin + request + 2 * (law.PINS + 1) * page),
          f"law.py: {row['runs']} runs allow {row['runs_bytes']} bytes")
    # All blocks and what lies between them, two pages each; the last is not there yet.
    live = (2 * law.PINS - 1) * page + pin // 2
    check((row["live_blocks"], row["law_bytes"]) ==
          (2 * law.PINS, live + 4 * law.PINS * page),
          f"law.py: {row['live_blocks']} blocks allow {row['law_bytes']} bytes")
    check(row["lower_bound_bytes"] < row["need_bytes"] <= row["runs_bytes"],
          f"law.py: the need is {row['need_bytes']}")


def check_touched():
    """touched.py on events that a count by hand can check: a page of two blocks counts once,
    and a block whose free waits still touches its pages."""
    import touched
    mib = 1 << 20
    # action, address, bytes in MiB; what blocks touch then
    rows = [("alloc", 0, 1), ("alloc", 1, 2), ("alloc", 3, 6),   # pages 0; 0, 1; 1 to 4
            ("free_requested", 1, 2), ("alloc", 20, 1),          # page 10
            ("free_completed", 1, 2), ("free_requested", 0, 1), ("free_completed", 0, 1),
            ("alloc", 30, 2)]                                    # page 15 and not 0
    events = [{"action": a, "addr": at * mib, "size": size * mib} for a, at, size in rows]
    check(touched.most_pages(events) == 6, f"touched.py: {touched.most_pages(events)} pages")
    check(touched.most_pages(events[:3]) == 5, "touched.py: a shared page counts twice")
    check(touched.waiting(events) == 1, f"touched.py: {touched.waiting(events)} frees wait")


def known_words():
    """Text in which a name with digits must occur."""
    sources = glob.glob(os.path.join(DATA, "*.csv")) + [
        os.path.join(ROOT, "README.md")]
    return "\n".join(map(read, sources))


# What LaTeX needs digits for: files, labels, lengths, columns.
TECHNICAL = [
    r"\\(input|inputifpresent|label|ref|pageref|cite|url|includegraphics|"
    r"bibliography|bibliographystyle)(\[[^]]*\])?\{[^}]*\}",
    r"\\begin\{tabular\*?\}(\{\\(?:text|column)width\})?\{(?:[^{}]|\{[^{}]*\})*\}",
    r"\\begin\{[^}]*\}(\[[^]]*\])?", r"\\cmidrule(\([lr]+\))?\{[^}]*\}",
    r"\\(setlength|addtolength|vspace|hspace|multicolumn)\*?"
    r"(\{[^{}]*\}){1,2}",
    r"\\theirs\{[^}]*\}", r"-?\d*\.?\d+\s*(pt|em|ex|cm|mm|in)\b", r"\\N\{[^}]*\}"]


def is_made(file):
    """Whether the first line names the script that makes the file."""
    first = read(os.path.join(PAPER, "text", file)).split("\n", 1)[0]
    script = re.search(r"made by (?:paper/)?((?:tables|gpu)/\w+\.py)", first)
    return script and os.path.exists(os.path.join(PAPER, script[1]))


def check_digits():
    words = known_words()
    for file, text in texts():
        if file in ("fragsim.tex", "instrument_figure.tex"):
            continue  # the preamble, and a drawing with lengths
        if is_made(file):
            continue
        for sentence in re.split(r"(?<=\.)\s", text):
            check("\\theirs{" not in sentence or "\\cite{" in sentence,
                  f"{file}: \\theirs without \\cite: {sentence[:60]!r}")
        for pattern in TECHNICAL:
            text = re.sub(pattern, " ", text)
        for name in re.findall(r"\\(?:p|code|texttt)\{([^}]*)\}", text):
            plain = name.replace("\\", "")
            check(not re.search(r"\d", plain) or plain in words,
                  f"{file}: the name {plain} occurs in no data")
        text = re.sub(r"\\(?:p|code|texttt)\{[^}]*\}", " ", text)
        for name in (*NAMES, *FORMULAS):
            text = text.replace(name, " ")
        for found in re.finditer(r".{0,30}\d.{0,20}", text):
            check(False, f"{file}: a number is typed: {found[0]!r}")


def first_words(path):
    """The comment lines of a CSV file, or the first row of JSON lines."""
    with open(path, encoding="utf-8") as file:
        if path.endswith(".jsonl"):
            row = json.loads(file.readline())
            check("about" in row.values() or "header" in row.values(),
                  f"{path} does not begin with a row about the machine")
            words = " ".join(f"{k} {v}" for k, v in row.items())
            return f"# {row['tool']} {words}" if "tool" in row else \
                "NVIDIA " + words
        return " ".join(l for l in file if l.startswith("#"))


def check_headers():
    files = sorted(glob.glob(os.path.join(DATA, "*.csv")) +
                   glob.glob(os.path.join(DATA, "*.jsonl")))
    check(len(files) >= 20, f"there are {len(files)} data files only")
    for path in files:
        head, name = first_words(path), os.path.basename(path)
        rules = REPLAYED if head.startswith("# fragsim") else MEASURED
        for what, pattern in rules.items():
            check(re.search(pattern, head), f"data/{name} does not state its "
                  f"{what}: {head[:120]!r}")
        check(not re.search(r"(?<![\w.])/(tmp|work|home|root)/", head),
              f"data/{name} holds a path of a machine")
        check_named(head, f"data/{name}")
    for path in glob.glob(os.path.join(PAPER, "pages", "*.md")):
        check_named(read(path), f"pages/{os.path.basename(path)}")


def check_named(text, where):
    """The files of paper/ that a text names exist."""
    named = re.findall(r"\bpaper/[\w/]+\.(?:py|sh|md|csv|jsonl)\b", text)
    for file in sorted(set(named)):
        check(os.path.exists(os.path.join(ROOT, file)),
              f"{where} names {file}, which does not exist")


def check_make_all():
    """make_all.sh runs every script that makes a table, and each script that it names
    exists."""
    text = read(os.path.join(PAPER, "make_all.sh"))
    named = set(re.findall(r"\| \S*python\S* ((?:tables|gpu)/\w+\.py)", text))
    tables = {"tables/" + os.path.basename(path) for path in
              glob.glob(os.path.join(PAPER, "tables", "*_table.py"))}
    for script in sorted(tables - named):
        check(False, f"make_all.sh does not run {script}")
    for script in sorted(named):
        check(os.path.exists(os.path.join(PAPER, script)),
              f"make_all.sh runs {script}, which does not exist")


def check_made_again(folder):
    """A data file that is made again stays as it is, unless its rows, or more than the
    version and the date of its header, or a version of changed sources are others."""
    path, columns = os.path.join(folder, "made.csv"), ["trace", "bytes"]
    first = "# fragsim 0.1.0 (0123456789ab), 2026-01-02; paper/x.py; 20 recordings\n"
    later = "# fragsim 0.2.0 (ba9876543210), 2027-03-04; paper/x.py; 20 recordings\n"
    dirty = first.replace("ab)", "ab-dirty)")
    row = {"trace": "a", "bytes": 1}
    # header and rows of the file that lies there, those made now, whether it stays
    cases = [(first, [row], later, [row], True), (first, [row], dirty, [row], True),
             (first, [row], later, [dict(row, bytes=2)], False),
             (first, [row], later, [row, row], False),
             (first, [row], later.replace("20 r", "21 r"), [row], False),
             (dirty, [row], later, [row], False)]
    for old, old_rows, new, new_rows, stays in cases:
        if os.path.exists(path):
            os.remove(path)
        data_header.write_csv(path, old, columns, old_rows)
        before = read(path)
        check(before.startswith(old + "trace,bytes\na,1\n"), f"written: {before!r}")
        data_header.write_csv(path, new, columns, new_rows)
        after = read(path)
        check((after == before) == stays and (stays or after.startswith(new)),
              f"made again after {old!r} and {old_rows}: {after!r}")
    check(os.listdir(folder).count("made.csv.new") == 0, "a part of a file is left")


def check_refusals(folder):
    """macros.py must refuse damaged data."""
    copy = os.path.join(folder, "copy")
    for part in ("paper", "sim/arena", "traces"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(copy, part),
                        ignore=shutil.ignore_patterns("*.pickle*", "*.h5",
                                                      "bundled", "__pycache__"))
    # file: (what is replaced, by what, what macros.py says)
    damage = {
        "truth.csv": ("recordings,98,98", "recordings,97,98", "contradicts"),
        "policies.csv": ("lower_bound_bytes", "bound", "no column lower_bound"),
        "tune.csv": (",0.2962962962962963,", ",many,", "expected a number"),
        "related.csv": ("154,1048576,1048576", "154,1048576,1048577", "contradicts"),
        "law.csv": ("1788,209,1363325440", "1788,209,1", "contradicts")}
    for name, (old, new, words) in damage.items():
        path = os.path.join(copy, "paper", "data", name)
        whole = read(path)
        check(old in whole, f"data/{name} has no {old} to damage")
        with open(path, "w", encoding="utf-8") as file:
            file.write(whole.replace(old, new, 1))
        code, _, stderr = run_macros(os.path.join(folder, "damaged"),
                                     os.path.join(copy, "paper"))
        check(code != 0 and words in stderr,
              f"damaged data/{name}: exit {code}, {stderr.strip()[-200:]!r}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(whole)
    # A sentence whose check is named by its beginning must not disappear unseen.
    path = os.path.join(copy, "paper", "text", "question.tex")
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        whole = file.read()
        check("We recorded that run" in whole, "question.tex has no sentence to damage")
        file.truncate(0)
        file.write(whole.replace("We recorded that run", "Somebody saw that run"))
    code, stderr = make_sentences(os.path.join(folder, "damaged"), os.path.join(copy, "paper"))
    check(code != 0 and "no sentence begins" in stderr,
          f"a lost sentence: exit {code}, {stderr.strip()[-200:]!r}")


def check_pdf():
    """Builds the PDF; False if LaTeX is absent."""
    absent = [tool for tool in NEEDED if not shutil.which(tool)]
    if absent or not os.path.exists(os.path.join(BUILD, "CMakeCache.txt")):
        print(f"check_paper: the PDF was not built; absent: "
              f"{', '.join(absent) or 'the build folder'}")
        return
    done = subprocess.run(["cmake", "--build", BUILD, "--target", "paper"],
                          capture_output=True, text=True, check=False)
    out = os.path.join(BUILD, "paper")
    if done.returncode:
        check(False, f"the target paper: {done.stdout[-1500:]}")
        return
    with open(os.path.join(out, "fragsim.log"), encoding="latin-1") as file:
        log = file.read()
    for pattern in (r"Overfull \\hbox.*", r"LaTeX Warning: (?:Reference|"
                    r"Citation|There were undefined).*"):
        for found in re.findall(pattern, log):
            check(False, f"fragsim.log: {found}")
    pdf = os.path.join(out, "fragsim.pdf")
    words = subprocess.run(["pdftotext", pdf, "-"], check=True, text=True,
                           capture_output=True).stdout
    for macro in sorted(set(re.findall(r"\\[A-Za-z]+", words))):
        check(False, f"{macro} is printed as it is written")
    fonts = subprocess.run(["pdffonts", pdf], check=True, text=True,
                           capture_output=True).stdout.splitlines()[2:]
    check(len(fonts) >= 5, f"{len(fonts)} fonts")
    for line in fonts:  # name, type, encoding, emb, sub, uni, object
        check(line.split()[-5] == "yes", f"a font is not embedded: {line}")
    info = subprocess.run(["pdfinfo", pdf], check=True, text=True,
                          capture_output=True).stdout
    pages = int(re.search(r"Pages: +(\d+)", info)[1])
    check(pages in PAGES, f"the paper has {pages} pages")
    print(f"paper: {pages} pages, {len(fonts)} fonts")


def main():
    with tempfile.TemporaryDirectory() as folder:
        code, made, stderr = run_macros(os.path.join(folder, "out"))
        check(code == 0, f"macros.py: exit {code}: {stderr}")
        check_macros(made)
        check_sentences(folder)
        check_law(folder)
        check_touched()
        check_digits()
        check_headers()
        check_make_all()
        check_made_again(folder)
        check_refusals(folder)
    check_pdf()
    for fault in faults:
        print(f"check_paper: {fault}")
    print(f"paper: {len(made)} numbers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

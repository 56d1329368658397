#!/usr/bin/env python3
"""check_report.py: checks the page of `fragsim report`.

The page must be well-formed, refer to nothing outside of itself, hold the
numbers of the runs (computed anew from the JSON of the same replay), escape
texts that come from files, and have the same bytes each time. It shows the
notes of the traces, recommends no policy that knows the future, compares the
policies on the cells that all have, and names the capacities that none can
survive. A failure must leave no file. If Chromium is installed, the page is also
opened and sorted by a click. Skipped without gnuplot.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, need

# A name that is markup if it is not escaped.
HOSTILE = "<img src=x onerror=alert(1)>&'quoted'"
LATE = "late_start"
TRACES = ["gpt2_train", "cudagraph", HOSTILE, LATE]
POLICIES = ["torch", "torch:expandable_segments:True", "tlsf", "direct",
            "compact", "plan"]
BOUNDS = ["plan"]
VOID = {"meta", "br", "link", "img", "input", "hr"}


def run(*arguments, code=0, **more):
    done = subprocess.run([FRAGSIM, *arguments], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == code, \
        f"{arguments}: exit {done.returncode}, not {code}: {done.stderr}"
    return done.stderr


class Page(HTMLParser):
    """Checks that tags nest, and collects tables, ids and links."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.tables, self.ids = [], [], []
        self.links, self.text, self.cell = [], [], None
        self.feed(text)
        self.close()
        assert not self.stack, f"left open: {self.stack}"

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        assert len(a) == len(attrs), f"<{tag}> has an attribute twice"
        if tag not in VOID:
            self.stack.append(tag)
        if "id" in a:
            self.ids.append(a["id"])
        self.links += [(k, v) for k, v in attrs
                       if k in ("src", "href", "xlink:href", "action", "data")]
        assert not any(k.startswith("on") for k in a), (tag, a)
        if tag == "table":
            self.tables.append((a.get("id") or a.get("class") or "", []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.cell = [tag, a.get("data-v"), ""]
            self.tables[-1][1][-1].append(self.cell)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, \
            f"</{tag}> in {self.stack}"
        self.stack.pop()
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.cell[2] += data
        if not self.stack or self.stack[-1] not in ("style", "script"):
            self.text.append(data)

    def rows(self, name):
        """The rows of cells (data-v or text) of every table with that name."""
        return [[c[2] if c[1] is None else float(c[1] or "inf") for c in row]
                for title, table in self.tables if name in title.split()
                for row in table if row and row[0][0] == "td"]


def replay(folder):
    """Two result files of the same grid, and the rows of both."""
    rows, files = [], []
    for name in TRACES:
        path = os.path.join(folder, name + ".pickle.xz")
        source = "leak" if name == HOSTILE else name
        shutil.copy(os.path.join(BUNDLED, source + ".pickle.xz"), path)
    for part, traces in enumerate((TRACES[:1], TRACES[1:])):
        out = os.path.join(folder, f"part{part}.h5")
        policies = [a for p in POLICIES for a in ("-p", p)]
        run("replay", "-q", *(t + ".pickle.xz" for t in traces), *policies,
            "-c", "0.9x,1.02x,1.1x,inf", "-o", out, "--json", out + ".json",
            cwd=folder)
        with open(out + ".json", encoding="utf-8") as file:
            rows += json.load(file)["results"]
        files.append(f"part{part}.h5")
    return files, rows


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def bounds_of(rows):
    """The bound of each trace, from its runs that serve every request."""
    return {r["trace_sha256"]: r["lower_bound_bytes"] for r in rows
            if not r["num_ooms"]}


def is_possible(row, rows):
    return (row["capacity_bytes"] or math.inf) >= \
        bounds_of(rows)[row["trace_sha256"]]


def limited_runs(rows, policy):
    """The runs of a policy on limited devices that some policy can survive."""
    return [r for r in rows if r["policy"] == policy and
            r["capacity_bytes"] is not None and is_possible(r, rows)]


def check_policies(page, rows):
    """The tables of candidates and of bounds agree with the rows."""
    ranked, bounds = page.rows("policies"), page.rows("bounds")
    assert sorted(c[1] for c in bounds) == BOUNDS
    assert sorted(c[1] for c in ranked) == sorted(set(POLICIES) - set(BOUNDS))
    for found in ranked, bounds:
        check_table(found, rows)
    saves = {c[1]: c[6] for c in ranked + bounds}
    assert saves["torch"] == 0
    means = {c[1]: c[3] for c in ranked + bounds}
    assert all(near(saves[p], 1 - means[p] / means["torch"]) for p in POLICIES)


def check_table(found, rows):
    free = [r for r in rows if r["capacity_bytes"] is None]
    order = []
    for cells in found:
        policy = cells[1]
        mine = [r for r in free if r["policy"] == policy]
        limited = limited_runs(rows, policy)
        ratios = [r["peak_reserved_bytes"] / r["lower_bound_bytes"]
                  for r in mine]
        survived = sum(r["num_ooms"] == 0 for r in limited)
        mean = math.prod(ratios) ** (1 / len(ratios))
        seconds = sum(r["modelled_device_seconds"] for r in mine)
        assert cells[2] == survived, (cells, survived)
        assert near(cells[3], mean), (cells, mean)
        assert near(cells[4], max(ratios)), cells
        worst = max(mine, key=lambda r: r["peak_reserved_bytes"] /
                    r["lower_bound_bytes"])
        assert cells[5] == worst["trace"], cells
        assert near(cells[7], seconds), cells
        assert cells[9] == sum(r["bytes_moved"] for r in mine), cells
        order.append((-survived, mean, seconds))
    assert order == sorted(order), order
    assert [cells[0] for cells in found] == list(range(1, len(found) + 1))


def check_runs(page, rows):
    """The page contains every run with its numbers."""
    key = lambda *a: tuple(a)
    expected = sorted(
        key(r["policy"], r["capacity_bytes"] or math.inf,
            r["peak_reserved_bytes"], r["num_ooms"],
            r["modelled_device_seconds"], r["bytes_moved"]) for r in rows)
    found = sorted(key(c[0], c[1], c[3], c[5], c[6], c[7])
                   for c in page.rows("runs"))
    assert found == expected
    ooms = sorted((c[0], c[1], c[2], c[3]) for c in page.rows("ooms"))
    assert ooms == sorted(
        (r["policy"], r["capacity_bytes"], r["num_ooms"], r["first_oom_event"])
        for r in rows if r["num_ooms"]), ooms


def check_verdict(page, text, rows):
    """The chosen policy survives the most at its cost, and the text names it.
    """
    words = re.sub(r"\s+", " ", "".join(page.text))
    match = re.search(r"Use (\S+)\. It survives (\d+) of (\d+) runs", words)
    assert match, words[:600]
    choice = match[1]
    assert choice not in ("plan", "direct"), choice
    limited = limited_runs(rows, choice)
    assert int(match[2]) == sum(r["num_ooms"] == 0 for r in limited)
    assert int(match[3]) == len(limited)
    assert "PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'" in text
    for name in TRACES:
        assert name in words
    for row in rows:
        assert row["trace_sha256"] in text and row["params"] in words


def check_notes(folder, page, text):
    """The notes of the late recording are at the top and at its trace; its
    recorded time begins with its first entry."""
    done = subprocess.run(
        [FRAGSIM, "info", "-q", LATE + ".pickle.xz", "--json", "-"],
        capture_output=True, text=True, check=True, cwd=folder)
    notes = json.loads(done.stdout)["results"][0]["notes"]
    words = re.sub(r"\s+", " ", "".join(page.text))
    assert any("is a lower bound" in note for note in notes), notes
    for note in notes:
        assert words.count(note) >= 2, note
        assert words.count(LATE + ": " + note) == 1, note
    assert words.index(notes[0]) < words.index("Policies, ranked")
    assert words.count("Notes on this trace") == 2, "late_start, cudagraph"
    assert re.search(r"\d+ notes on the traces and policies: what the numbers",
                     words)
    assert re.search(r"of the recorded \d\.\d+ s", words), words[:1500]


def check_impossible(page, rows):
    """A capacity below the bound is named, and is no failure of a policy."""
    words = re.sub(r"\s+", " ", "".join(page.text))
    hopeless = [r for r in rows if not is_possible(r, rows)]
    assert f"{len(hopeless)} of {len(rows)} runs are under a bound" in words
    assert len(hopeless) >= len(TRACES) * len(POLICIES)
    for row in page.rows("ooms"):
        capacity, remedy = row[1], row[-1]
        is_hopeless = any(r["capacity_bytes"] == capacity for r in hopeless)
        assert remedy.endswith("none of these policies can help") == is_hopeless, row
        assert is_hopeless or remedy == "another policy may fit", row
    counts = [row[-1] for row in page.rows("traces")]
    assert sum(counts) == len(hopeless), counts


def check_baselines(folder):
    """The baseline is torch, else its equal, else the first candidate."""
    def words_of(*policies, more=(), code=0):
        chosen = [w for p in policies for w in ("-p", p)]
        run("replay", "-q", "-f", LATE + ".pickle.xz", *chosen, "-o", "b.h5",
            cwd=folder)
        said = run("report", "-q", "-f", "b.h5", "-o", "b.html", *more,
                   cwd=folder, code=code)
        if code:
            return said
        with open(os.path.join(folder, "b.html"), encoding="utf-8") as file:
            return re.sub(r"\s+", " ", "".join(Page(file.read()).text))

    equal = "torch:expandable_segments:False"
    grid = "torch:max_split_size_mb:20"
    assert "The baseline is torch, PyTorch with its default settings." in \
        words_of(equal, "best_fit", "torch")
    assert f"The baseline is {equal}, whose settings are PyTorch's" in \
        words_of(grid, equal)
    words = words_of("plan", grid)
    assert f"The baseline is {grid}: the results have no run of plain torch;" \
        in words, words[:500]
    assert "add -p torch to" in words and "Use plan" not in words
    assert "bound, not a policy" in words_of(
        "plan", grid, more=("--baseline", "plan"), code=2)
    assert "knows the future" in words_of("plan", code=2)
    run("sweep", "-q", "-f", LATE + ".pickle.xz", "-p", "torch",
        *(f"-ptorch:max_split_size_mb:{size}" for size in (20, 100)), "-o", "b.h5", cwd=folder)
    run("report", "-q", "-f", "b.h5", "-o", "b.html", cwd=folder)
    assert b"The baseline is <code>torch</code>" in read(folder, "b.html")
    # A sweep keeps no OOMs; its runs show the demand of the job nevertheless.
    run("sweep", "-q", "-f", LATE + ".pickle.xz", "-c", "0.98x", "-o", "b.h5",
        cwd=folder)
    run("report", "-q", "-f", "b.h5", "-o", "b.html", cwd=folder)
    page = Page(read(folder, "b.html").decode())
    assert "1 of 1 runs are under a bound that no policy with a " \
        "quantum of 512 bytes or more can survive" in \
        "".join(page.text)
    assert not re.search(r"survives \d+ of \d+", "".join(page.text))
    for name in ("b.h5", "b.html"):
        os.unlink(os.path.join(folder, name))


def check_page(folder, files, rows):
    out = os.path.join(folder, "review.html")
    run("report", "-q", *files, "-o", "review.html", cwd=folder)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    page = Page(text)
    assert len(page.ids) == len(set(page.ids)), "an id stands twice"
    for kind, target in page.links:
        assert target.startswith("#"), (kind, target)
        assert target[1:] in page.ids, target
    places = re.findall(r"\w+://[^\s\"'<>]*|url\((?!#)|@import", text)
    assert set(places) <= {"http://www.w3.org/2000/svg",
                           "http://www.w3.org/1999/xlink"}, places
    assert "<img" not in text and "&lt;img" in text
    check_policies(page, rows)
    check_runs(page, rows)
    check_verdict(page, text, rows)
    check_notes(folder, page, text)
    check_impossible(page, rows)
    # frontier, Pareto and heat map, then two figures a trace.
    assert text.count("<svg") == 3 + 2 * len(TRACES), text.count("<svg")
    words = run("report", "-q", *files, "-o", "review.html", code=4,
                cwd=folder)
    assert "review.html" in words
    run("report", "-q", "-f", *files, "-o", "review.html", cwd=folder)
    text_again = read(folder, "review.html").decode()
    assert text_again == text.replace("report -q part0", "report -q -f part0")


def check_needs(folder):
    """With needs in the results, policies are compared by them: on multistream
    best_fit reserves less than torch and needs more. A file without needs, or
    one beside it, is compared by peak reserved."""
    trace = os.path.join(BUNDLED, "multistream.pickle.xz")
    sweep = ["sweep", "-q", trace, "-p", "torch", "-p", "best_fit", "-o"]
    run(*sweep, "needs.h5", "--need", "capacity", "--json", "needs.json",
        cwd=folder)
    run(*sweep, "none.h5", cwd=folder)
    run("replay", "-q", trace, "-p", "tlsf", "-o", "other.h5", cwd=folder)
    rows = {row["policy"]: row for row in
            json.loads(read(folder, "needs.json"))["results"]}
    over = {policy: [row[key] / row["lower_bound_bytes"]
                     for key in ("need_bytes", "peak_reserved_bytes")]
            for policy, row in rows.items()}
    assert over["torch"][0] < over["best_fit"][0] and \
        over["torch"][1] > over["best_fit"][1], over
    pages = {}
    for files in (["needs.h5"], ["none.h5"], ["needs.h5", "other.h5"]):
        run("report", "-q", *files, "-f", "-o", "needs.html", cwd=folder)
        pages[files[-1]] = Page(read(folder, "needs.html").decode())
    found = [(c[1], c[2], c[5]) for c in pages["needs.h5"].rows("policies")]
    assert [c[0] for c in found] == ["torch", "best_fit"], found
    assert all(near(need, over[policy][0]) and near(held, over[policy][1])
               for policy, need, held in found), (found, over)
    assert sorted(c[5] for c in pages["needs.h5"].rows("runs")) == \
        sorted(row["need_bytes"] for row in rows.values())
    assert "Memory is the need" in "".join(pages["needs.h5"].text)
    for name in ("none.h5", "other.h5"):
        found = pages[name].rows("policies")
        assert found[0][1] == "best_fit" and near(
            [c[2] for c in found if c[1] == "torch"][0], over["torch"][1]), found
        assert "largest device. Click" in "".join(pages[name].text)
    for name in ("needs.h5", "needs.json", "none.h5", "other.h5", "needs.html"):
        os.unlink(os.path.join(folder, name))


def headline(folder, *files):
    """The words of the verdict, those of what is left out, and the table."""
    run("report", "-q", "-f", *files, "-o", "c.html", cwd=folder)
    text = read(folder, "c.html").decode()
    found = [re.sub(r"\s+", " ", "".join(Page(part).text)) for part in
             re.findall(r'<p (?:class="verdict"|id="compared").*?</p>', text, re.S)]
    return found + [""] * (2 - len(found)), Page(text).rows("policies"), text


def check_compared(folder):
    """The policies are compared on the cells that all of them have and that the job
    can survive; the words name the first and the last policy of the table, and what
    was left out."""
    traces = [os.path.join(BUNDLED, name + ".pickle.xz")
              for name in ("gpt2_train", "multistream")]

    def sweep(out, bounds, *policies, of=traces, command="sweep"):
        run(command, "-q", "-f", *of, *(w for p in policies for w in ("-p", p)), "-c",
            bounds, "-o", out + ".h5", "--json", out + ".json", cwd=folder)
        return {(r["policy"], r["trace"], r["capacity"]): r["num_ooms"] == 0 for r in
                json.loads(read(folder, out + ".json"))["results"]}

    # Without an unlimited device, no policy is whole; expandable segments survive most.
    exp, split = "torch:expandable_segments:True", "torch:max_split_size_mb:128"
    fits = sweep("a", "1.02x,1.05x,1.1x", "torch", "best_fit", exp)
    survived = {p: sum(ok for key, ok in fits.items() if key[0] == p)
                for p in ("best_fit", "torch", exp)}
    assert list(survived.values()) == sorted(set(survived.values())), survived
    (words, left), table, _ = headline(folder, "a.h5")
    assert f"Use {exp}. It survives {survived[exp]} of 6 runs on limited devices, " \
        f"torch survives {survived['torch']}." in words, words
    assert f"The last is best_fit, which survives {survived['best_fit']}." in words
    assert "not compared, because a request fails" in words and not left, (words, left)
    assert [c[1] for c in table] == list(survived)[::-1], table
    assert [c[6] for c in table] == [math.inf, 0, math.inf], "only torch is whole"
    # Of two files of different grids, the common cells count, once.
    many = sweep("b", "0.9x,1.02x,1.1x,1.2x,1.3x,inf", "torch")
    few = sweep("c", "0.9x,1.1x,1.2x,inf", split)
    own = sum(ok for key, ok in few.items() if key[2] not in ("0.9x", "inf"))
    same = sum(ok for key, ok in many.items() if key[2] in ("1.1x", "1.2x"))
    assert own == same == 4
    for files in ("b.h5", "c.h5"), ("b.h5", "c.h5", "c.h5"):
        (words, left), table, text = headline(folder, *files)
        assert f"torch survives {same} of 4 runs" in words and "No policy" in words, words
        assert f"The last is {split}, whose peak reserved is 1.82x" in words, words
        assert "compared on 6 of 12 cells" in left and \
            f"4 on which not every policy ran ({split} ran on 8)" in left and \
            "2 whose bound is below what the job asks for" in left, left
        assert [c[2] for c in table] == [4, 4], table
        assert "no policy can survive (2 cells)" in text, "the figure counts them"
    # Policies without a common cell.
    (words, left), table, _ = headline(folder, "a.h5", "c.h5")
    assert "Use" not in words and "compared on 2 of " in left, (words, left)
    sweep("d", "1.03x", "tlsf")
    (words, left), table, _ = headline(folder, "c.h5", "d.h5")
    assert words.startswith("Nothing can be compared") and len(table) == 2, words
    assert "compared on 0 of 10 cells" in left, left
    # No policy survives.
    sweep("e", "1.01x", "tlsf", "best_fit", of=traces[1:])
    assert "No policy survives one of the 1 runs" in headline(folder, "e.h5")[0][0]
    # Two traces of one name are two, also if they have one content.
    for place, source in (("x/one", 0), ("x/two", 1), ("y/two", 0)):
        os.makedirs(os.path.join(folder, place))
        shutil.copy(traces[source], os.path.join(folder, place, "run.pickle.xz"))
    sweep("f", "inf", "torch", command="replay",
          of=["x/one/run.pickle.xz", "./x/two/run.pickle.xz", "y/two/run.pickle.xz"])
    sweep("g", "inf", "best_fit", of=["./x/one/run.pickle.xz", "x/two/run.pickle.xz",
                                      "y/two/run.pickle.xz"])
    (words, left), table, text = headline(folder, "f.h5", "g.h5")
    assert re.findall(r'id="trace-\d">([^<]*)<', text) == \
        ["one/run", "x/two/run", "y/two/run"] and not left, left
    for name in [*("abcdefg"[i] + e for i in range(7) for e in (".h5", ".json")), "c.html"]:
        os.unlink(os.path.join(folder, name))
    shutil.rmtree(os.path.join(folder, "x"))
    shutil.rmtree(os.path.join(folder, "y"))


def check_faults(folder, files):
    before = sorted(os.listdir(folder))
    nowhere = dict(os.environ, PATH="/nowhere")
    words = run("report", *files, "-o", "no.html", code=4, cwd=folder,
                env=nowhere)
    assert "gnuplot is not installed" in words, words
    run("report", *files, "-o", "no/such/folder.html", code=4, cwd=folder)
    run("report", *files, "-o", "no.pdf", code=2, cwd=folder)
    words = run("report", *files, "-o", "no.html", "--baseline", "nobody",
                code=2, cwd=folder)
    assert "nobody" in words, words
    with open(os.path.join(folder, files[0]), "rb") as file:
        half = file.read()
    broken = os.path.join(folder, "half.h5")
    with open(broken, "wb") as file:
        file.write(half[:len(half) // 2])
    words = run("report", "half.h5", "-o", "no.html", code=3, cwd=folder)
    assert "half.h5" in words, words
    os.unlink(broken)
    assert sorted(os.listdir(folder)) == before, os.listdir(folder)


CLICK = """<script>
document.querySelectorAll('#policies th')[3].click();
document.querySelectorAll('#policies th')[3].click();
</script>"""


def check_browser(folder, files, browser):
    """A click sorts."""
    page = os.path.join(folder, "click.html")
    with open(os.path.join(folder, "review.html"), encoding="utf-8") as file:
        text = file.read()
    with open(page, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", CLICK + "</body>"))
    done = subprocess.run(
        [browser, "--headless", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={folder}/profile",
         *(["--no-sandbox"] if os.geteuid() == 0 else []), "file://" + page],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [c[3] for c in Page(done.stdout).rows("policies")]
    assert len(found) == len(POLICIES) - len(BOUNDS), done.stdout[:300]
    assert found == sorted(found, reverse=True), found


def check_scratch(folder, files):
    """Scratch files lie under TMPDIR, however long its name is, and all are
    removed; the page has the same bytes."""
    place = os.path.join(folder, *(letter * 120 for letter in "abc"))
    os.makedirs(place)
    tools = os.path.join(folder, "tools")
    os.mkdir(tools)
    here = dict(os.environ, TMPDIR=place,
                PATH=tools + os.pathsep + os.environ["PATH"])
    for out in ("plot.svg", "here.svg"):
        run("plot", "-q", files[0], "compare", "-o", out, cwd=folder,
            **({"env": here} if out == "here.svg" else {}))
    assert read(folder, "here.svg") == read(folder, "plot.svg")
    pages = []
    for more in ({}, {"env": here}):
        run("report", "-q", "-f", files[0], "-o", "here.html", cwd=folder,
            **more)
        pages.append(read(folder, "here.html"))
    assert pages[0] == pages[1]
    for name in ("plot.svg", "here.svg", "here.html"):
        os.unlink(os.path.join(folder, name))
    with open(os.path.join(tools, "gnuplot"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 3\n")
    os.chmod(file.name, 0o755)
    words = run("plot", files[0], "compare", "-o", "no.svg", code=4, cwd=folder,
                env=here)
    assert "gnuplot failed on compare.gp" in words, words
    os.chmod(file.name, 0o644)
    words = run("plot", files[0], "compare", "-o", "no.svg", code=4, cwd=folder,
                env=dict(here, PATH=tools))
    assert "gnuplot cannot be run: Permission denied" in words, words
    assert not os.listdir(place), os.listdir(place)
    shutil.rmtree(os.path.join(folder, "a" * 120))
    shutil.rmtree(tools)
    words = run("report", "-q", files[0], "-o", "no.html", code=4, cwd=folder, env=here)
    assert "TMPDIR" in words and "No such file" in words, words
    words = run("plot", files[0], "compare", "-o", "no.svg", code=4, cwd=folder,
                env=here)
    assert "TMPDIR" in words and "No such file" in words, words
    left = [name for name in os.listdir(folder) if name.startswith("no.")]
    assert not left, left


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def main():
    need(FRAGSIM)
    if not shutil.which("gnuplot"):
        print("check_report: gnuplot is missing; skipped")
        return 77
    browser = next(filter(None, map(shutil.which, (
        "chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    with tempfile.TemporaryDirectory() as folder:
        files, rows = replay(folder)
        check_page(folder, files, rows)
        check_needs(folder)
        check_compared(folder)
        check_baselines(folder)
        check_faults(folder, files)
        check_scratch(folder, files)
        if browser:
            check_browser(folder, files, browser)
        else:
            print("check_report: no Chromium; nothing was clicked")
    print("the page is correct")
    return 0


if __name__ == "__main__":
    sys.exit(main())

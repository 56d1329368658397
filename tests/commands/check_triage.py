#!/usr/bin/env python3
"""check_triage.py: the page of `fragsim triage`.

On bundled recordings: the page begins with the three parts of the verdict, as
the JSON has them (check_verdict.py judges them), and they fit on the first
screen; every part of the evidence is folded and has the command that prints it
again, and such a command prints what the page holds; a long table is folded;
each note stands there once. The page is complete or absent, it parses, no line
is wider than a window or a telephone, and a name of a file stays text.
Environment: FRAGSIM (default build/fragsim).
"""
import html
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import terminal
from harness import BUNDLED, FRAGSIM, results, run

DEAD = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
PARTS = ["why", "here", "change", "fits", "map", "held", "steps", "growth",
         "summary"]
HEADINGS = ["For", "What happened", "What to do now", "How sure"]


class Page(HTMLParser):
    """Every tag that is opened is closed, in order."""
    VOID = {"meta", "br", "path", "rect", "use", "line", "circle", "link", "input"}

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert not self.open, self.open[:5]

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
            self.open.pop()


def page_of(trace, size, folder, bound="-c", more=(), env=None):
    out = os.path.join(folder, "page.html")
    run("triage", "-q", "-f", trace, bound, size, "-o", out, *more, code=(0, 1),
        env=env)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    Page(re.sub(r"<(style|script)[^>]*>.*?</\1>", "", text, flags=re.S))
    return text


def verdict(page):
    """The texts of the three parts, and the line to copy."""
    block = re.search(r'<section class="verdict">(.*?)</section>', page,
                      re.S).group(1)
    parts = re.findall(r"<h2>(.*?)</h2>\n<p>(.*?)</p>", block, re.S)
    assert [heading for heading, _ in parts] == HEADINGS, parts
    line = re.search(r'<pre class="copy">(.*?)</pre>', block, re.S)
    return [html.unescape(text) for _, text in parts], \
        html.unescape(line.group(1)) if line else None


def text_of(page):
    """What the page shows, without its style and script."""
    page = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\xa0", " ")


def measured(browser, folder, page, script, size):
    """What the script leaves in the data of the body."""
    path = os.path.join(folder, "measured.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.replace("</body>", f"<script>{script}</script></body>"))
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--user-data-dir=" + os.path.join(folder, "profile"),
         f"--window-size={size}", "--dump-dom", "file://" + path],
        capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r'data-(\w+)="([^"]*)"',
                           re.search(r"<body.*?>", done).group()))


def check_lines(folder):
    """No line and no figure of the last page reaches beyond the page, in a
    window, on a telephone or on paper, and the verdict is on the first screen.
    Chromium measures the page."""
    browser = shutil.which("chromium")
    if not browser:
        print("check_triage: no chromium; the width of lines is not measured")
        return
    with open(os.path.join(folder, "page.html"), encoding="utf-8") as file:
        page = file.read()
    script = """
        var limit = Math.min(innerWidth, document.body.clientWidth);
        document.querySelectorAll("details").forEach(d => d.open = %s);
        var all = [...document.querySelectorAll("pre,figure,svg,p,main,h1")];
        var body = document.body;
        body.dataset.wide = all.filter(e => e.tagName != "svg" &&
            e.scrollWidth > e.clientWidth + 1 ||
            e.getBoundingClientRect().right > limit).map(
                e => e.tagName + e.className);
        body.dataset.seen = all.length;
        body.dataset.page = body.scrollWidth > limit;
        body.dataset.end = Math.round(document.querySelector(
            "section.verdict").getBoundingClientRect().bottom);
        body.dataset.open =
            document.querySelectorAll("details[open]").length;"""
    # 1040 pixels are the width of the paper.
    for media, sizes in (("@media print{", ("1366,768", "500,844")),
                         ("@media all{", ("1040,768", "700,768"))):
        for size in sizes:
            found = measured(browser, folder, page.replace(
                "@media print{", media), script % "true", size)
            assert int(found["seen"]) > 20 and not found["wide"] and \
                found["page"] == "false", (media, size, found)
    # Chromium has no window as narrow as a telephone.
    found = measured(browser, folder, page.replace(
        "<body>", '<body style="width:390px">'), script % "true", "500,844")
    assert not found["wide"] and found["page"] == "false", found
    found = measured(browser, folder, page, script % "false", "1366,768")
    assert int(found["end"]) < 680, found
    assert measured(browser, folder, page, script.replace(
        "d.open = %s", "0"), "1366,768")["open"] == "0"


def check_dead(folder):
    page = page_of(DEAD, "6GiB", folder)
    row, = results("triage", "-q", DEAD, "-c", "6GiB")
    said, line = verdict(page)
    assert said == ["capacity of 6 GiB, the capacity that was asked for",
                    row["happened"]["text"], row["action"]["text"],
                    row["sure"]], (said, row)
    assert line == row["action"]["command"], (line, row)
    shown = text_of(page)
    for fits in row["fits"]:
        assert f"{fits['need_bytes'] / (1 << 30):.3f}".rstrip("0") in shown, fits
    assert "the smallest GPU that has it: t4" in shown.split("Why it failed")[0]
    assert all(f'<details class="part" id="{part}"' in page for part in PARTS)
    assert "<svg" in page
    again = run("explain", DEAD, "-q").stdout
    assert again.strip() in shown
    # A job that fits is shown no setting to export.
    assert 'id="change"' in page
    assert 'id="change"' not in page_of(os.path.join(
        BUNDLED, "gpt2_train.pickle.xz"), "80GiB", folder)
    for words in ("Holes at the failed request", "-o map.html",
                  "Steps of lstm", "Leaks of lstm", "-o holes.svg",
                  "fragsim tune " + DEAD + " -q -c 6GiB"):
        assert words in shown, words
    assert page.count("<figure>") == 3, page.count("<figure>")
    check_lines(folder)
    page = page_of(DEAD, "6GiB", folder, "--process-limit")
    assert "--process-limit 6GiB" in text_of(page)
    page = page_of(DEAD, "4GiB", folder)
    assert "4 GiB" in verdict(page)[0][2] or \
        "batch" in verdict(page)[0][2], verdict(page)


def check_without_gnuplot(folder):
    """The page says that the figures are left out, or why; the answers are there."""
    for name, said in ("PATH", "figures are left out"), \
            ("FRAG_PLOTS", "fragsim explain: FRAG_PLOTS: "):
        page = page_of(DEAD, "6GiB", folder, env={**os.environ, name: folder})
        assert said in page and "<svg" not in page
        assert '<section class="view"' in page
        for verb in ("explain", "steps"):
            assert run(verb, DEAD, "-q").stdout.splitlines()[-1] in text_of(page), verb


def check_setting(folder):
    """The line to copy is the one that tune exports."""
    gpt2 = os.path.join(BUNDLED, "gpt2_train.pickle.xz")
    line = verdict(page_of(gpt2, "8.4GiB", folder))[1]
    assert line and line in run("tune", "-q", gpt2, "-c", "8.4GiB").stdout.splitlines(), line
    assert verdict(page_of(gpt2, "80GiB", folder))[1] is None


def check_long(folder):
    """The rows of a long table: the first and the last are shown, and those of
    the steps that fail; no row is lost. Notes stand on the page once."""
    path = os.path.join(folder, "long.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("op,id,bytes,stream\n")
        for step in range(60):
            for block in range(12):
                file.write(f"alloc,{step * 12 + block},{(block + 1) << 20},0\n")
            for block in range(12):
                file.write(f"free,{step * 12 + block},0,0\n")
    page = page_of(path, "1GiB", folder)
    steps = re.search(r'id="steps">(.*?)\n</details>\n<details class="part"',
                      page, re.S).group(1)
    more = re.search(r"<summary>(\d+) more rows</summary>(.*?)</details>", steps,
                     re.S)
    assert more.group(2).count("<span>") == int(more.group(1)) > 20, more.group(1)
    table = text_of(steps)
    for row in run("steps", "-q", path).stdout.splitlines():
        assert table.count(row + "\n") == 1, row
    name = os.path.join(folder, "noted.pickle")
    with lzma.open(DEAD) as file:
        snapshot = pickle.load(file)
    snapshot["device_traces"][0] = snapshot["device_traces"][0][200:]
    with open(name, "wb") as file:
        pickle.dump(snapshot, file)
    notes = results("triage", "-q", name, "-c", "6GiB")[0]["notes"]
    shown = text_of(page_of(name, "6GiB", folder))
    assert notes
    for note in notes:
        assert shown.count(note) == 1, (note, shown.count(note))


def check_leak(folder):
    page = page_of(os.path.join(BUNDLED, "leak_frames.pickle.xz"), "24GiB",
                   folder)
    (_, happened, todo, _), _ = verdict(page)
    assert "3.533 MiB more in each step, a leak" in happened, happened
    assert todo.startswith("Fix the leak: "), todo


def check_devices(folder):
    """The page is about each device, or the one that was asked for."""
    with lzma.open(DEAD) as file:
        one = pickle.load(file)
    with lzma.open(os.path.join(BUNDLED, "leak.pickle.xz")) as file:
        other = pickle.load(file)
    for segment in other["segments"]:
        segment["device"] = 1
    path = os.path.join(folder, "two.pickle")
    with open(path, "wb") as file:
        pickle.dump({**one, "segments": one["segments"] + other["segments"],
                     "device_traces": one["device_traces"] +
                     other["device_traces"]}, file)
    for more, device, moment in ([], "0", "oom"), ([], "1", "peak"), \
            (["--device", "1"], "1", "peak"):
        page = text_of(page_of(path, "6GiB", folder, more=more))
        assert ("GPU 1 of 2, capacity of 6 GiB" in page) == (not more), more
        assert "GPU 2 of 2, capacity of 6 GiB" in page, more
        words = ("top", path, "-q", "--at", moment, "--device", device)
        assert "fragsim " + " ".join(words) in page, device
        assert run(*words).stdout.strip() in page, device
        assert "choose one with --device" not in page


def check_names(folder):
    name = os.path.join(folder, "<b>job\nexport EVIL=1 #.pickle.xz")
    shutil.copy(DEAD, name)
    page = page_of(name, "6GiB", folder)
    assert "<b>job" not in page and "\nexport EVIL" not in page


def check_progress(folder):
    """A terminal shows what the command does, but not with -q."""
    if not terminal.has_terminals():
        return
    words = [FRAGSIM, "triage", os.path.join(BUNDLED, "gpt2_train.pickle.xz"),
             "-c", "8GiB", "-f", "-o", os.path.join(folder, "shown.html")]
    with open(os.devnull, "wb") as nowhere:
        code, text = terminal.written(words, stdout=nowhere, stderr=True)
        assert code == 1 and b"the capacity [" in text and \
            b"(3 of 4)" in text and b"the page [" in text, text
        code, text = terminal.written(words + ["-q"], stdout=nowhere,
                                      stderr=True)
        assert code == 1 and not text, text


def check_misuse(folder):
    out = os.path.join(folder, "none.html")
    whole = os.path.join(folder, "no_bound.csv")
    with open(whole, "w", encoding="ascii") as file:
        file.write("op,id,bytes,stream\nalloc,1,9,0\nfree,1,0,0\n")
    assert "add --capacity SIZE or --gpu NAME" in run(
        "triage", "-q", whole, "-o", out, code=2).stderr
    run("triage", "-q", whole, "--gpu", "t5", "-o", out, code=2)
    run("triage", "-q", DEAD, "-c", "6GiB", "-o", "page.txt", code=2)
    run("triage", "-q", DEAD, "-c", "6GiB", "--dry", "true", code=2)
    run("triage", "-q", DEAD, "-c", "6GiB", "--process-limit", "6GiB", "-o", out,
        code=2)
    assert "finite" in run("triage", DEAD, "-c", "inf", "-o", out,
                           code=2).stderr
    assert "name of a file" in run("triage", "-", "-c", "6GiB", "-o", out,
                                   code=2).stderr
    run("triage", "-q", os.path.join(folder, "absent"), "-c", "6GiB", "-o", out,
        code=4)
    assert not os.path.exists(out)


def main():
    if not shutil.which("gnuplot"):
        print("check_triage: no gnuplot; skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        check_dead(folder)
        check_without_gnuplot(folder)
        check_setting(folder)
        check_long(folder)
        check_leak(folder)
        check_devices(folder)
        check_names(folder)
        check_progress(folder)
        check_misuse(folder)
    print("the page of triage holds what its commands say")


if __name__ == "__main__":
    main()

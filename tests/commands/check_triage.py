#!/usr/bin/env python3
"""check_triage.py: the page of `fragsim triage`.

On bundled recordings: the verdict names the cause and the setting (or why there
is none), the notes and every part are there with the command that prints it,
and a command that is run again prints what the page holds. The page is complete
or absent, it parses, and a name of a file stays text.
Environment: FRAGSIM (default build/fragsim).
"""
import html
import json
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
from harness import BUNDLED, run

DEAD = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
PARTS = ["why", "change", "fits", "held", "steps", "growth", "summary"]


class Page(HTMLParser):
    """Every tag that is opened is closed, in order."""
    VOID = {"meta", "br", "path", "rect", "use", "line", "circle", "link",
            "input"}

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


def page_of(trace, size, folder, bound="-c"):
    out = os.path.join(folder, "page.html")
    run("triage", "-q", "-f", trace, bound, size, "-o", out)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    Page(re.sub(r"<(style|script)[^>]*>.*?</\1>", "", text, flags=re.S))
    return text


def verdict(page):
    return html.unescape(re.search(r'class="verdict">(.*?)</p>', page,
                                   re.S).group(1))


def text_of(page):
    """What the page shows, without its style and script."""
    page = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\xa0", " ")


def check_lines(folder):
    """No line and no figure of the last page reaches beyond the page, in a
    window or on paper. Chromium measures the page."""
    browser = shutil.which("chromium")
    if not browser:
        print("check_triage: no chromium; the width of lines is not measured")
        return
    with open(os.path.join(folder, "page.html"), encoding="utf-8") as file:
        page = file.read()
    page = page.replace("</body>", """<script>
        var all = [...document.querySelectorAll("pre,figure,svg,p,main")];
        document.body.dataset.wide = all.filter(e => e.tagName != "svg" &&
            e.scrollWidth > e.clientWidth + 1 ||
            e.getBoundingClientRect().right > innerWidth).map(
                e => e.tagName + e.className);
        document.body.dataset.seen = all.length;
        </script></body>""")
    # 1040 pixels are the width of the paper.
    for media, widths in (("@media print{", (1366, 700)),
                          ("@media all{", (1040, 700))):
        measured = os.path.join(folder, "measured.html")
        with open(measured, "w", encoding="utf-8") as file:
            file.write(page.replace("@media print{", media))
        for width in widths:
            done = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu",
                 "--user-data-dir=" + os.path.join(folder, "profile"),
                 f"--window-size={width},768", "--dump-dom",
                 "file://" + measured], capture_output=True, text=True,
                check=True).stdout
            seen = int(re.search(r'data-seen="(\d+)"', done).group(1))
            wide = re.search(r'data-wide="([^"]*)"', done).group(1)
            assert seen > 20 and not wide, (media, width, wide, seen)


def check_dead(folder):
    page = page_of(DEAD, "6GiB", folder)
    said = verdict(page)
    assert said.startswith("The job died because the free memory was fragmented "
                           "(fragmentation): live blocks"), said
    assert "PyTorch's default settings serve what was recorded, and steps " \
        "like it, at 6 GiB, which is no promise; with " in said, said
    setting = re.search(r"PYTORCH_CUDA_ALLOC_CONF='([^']+)' the job reserves "
                        "less.$", said).group(1)
    row, = json.loads(run("replay", "-q", DEAD, "-p", "torch:" + setting, "-c",
                          "6GiB", "--json", "-").stdout)["results"]
    assert row["num_ooms"] == 0, row
    assert all(f'id="{part}"' in page for part in PARTS)
    assert "the steps that follow ask for at most" in page and "<svg" in page
    again = run("explain", DEAD, "-q").stdout
    assert again.strip() in text_of(page)
    assert page.count("<figure>") == 3, page.count("<figure>")
    assert page.count('<section class="view"') == 1
    assert '"trace": "lstm_varlen__cap_below"' in page
    for words in ("Holes at the failed request", "Steps of lstm",
                  "Leaks of lstm", "-o holes.svg --map map.html"):
        assert words in text_of(page), words
    check_lines(folder)
    page = page_of(DEAD, "6GiB", folder, "--process-limit")
    assert "at process limit 6 GiB" in verdict(page), verdict(page)
    assert "--process-limit 6442450944B" in text_of(page)
    page = page_of(DEAD, "4GiB", folder)
    assert "No setting of PyTorch's allocator survives at 4 GiB: the job asks " \
        "for 4.426 GiB" in verdict(page), verdict(page)


def check_without_gnuplot(folder):
    """The page says that the figures are left out; the answers are there."""
    out = os.path.join(folder, "plain.html")
    run("triage", "-q", DEAD, "-c", "6GiB", "-o", out,
        env=dict(os.environ, PATH=folder))
    with open(out, encoding="utf-8") as file:
        page = file.read()
    assert "figures are left out" in page and "<svg" not in page
    assert '<section class="view"' in page
    for verb in ("explain", "steps", "leaks"):
        words = [verb, DEAD, "-q"] + (["-c", "6GiB"] if verb == "leaks" else [])
        assert run(*words).stdout.strip() in text_of(page), verb


def check_living(folder):
    page = page_of(os.path.join(BUNDLED, "gpt2_train.pickle.xz"), "80GiB",
                   folder)
    said = verdict(page)
    assert said.startswith("The recording shows no failed request."), said
    assert "default settings survive at 80 GiB; with " in said, said


def check_leak(folder):
    page = page_of(os.path.join(BUNDLED, "leak_frames.pickle.xz"), "24GiB",
                   folder)
    assert verdict(page).endswith(
        " It leaks 3.533 MiB a step, which no setting stops."), verdict(page)


def check_devices(folder):
    """The blocks are listed for each device, where the job died on it."""
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
    page = text_of(page_of(path, "6GiB", folder))
    for device, moment in ("0", "oom"), ("1", "peak"):
        words = ("top", path, "-q", "--device", device, "--at", moment)
        assert "fragsim " + " ".join(words) in page, device
        assert run(*words).stdout.strip() in page, device
    assert "choose one with --device" not in page


def check_names(folder):
    name = os.path.join(folder, "<b>job\nexport EVIL=1 #.pickle.xz")
    shutil.copy(DEAD, name)
    page = page_of(name, "6GiB", folder)
    assert "<b>job" not in page and "\nexport EVIL" not in page


def check_misuse(folder):
    out = os.path.join(folder, "none.html")
    run("triage", "-q", DEAD, "-o", out, code=2)
    run("triage", "-q", DEAD, "-c", "6GiB", code=2)
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
        check_living(folder)
        check_leak(folder)
        check_devices(folder)
        check_names(folder)
        check_misuse(folder)
    print("the page of triage holds what its commands say")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_view.py: the interactive view, `fragsim plot TRACE map -o FILE.html'.

Its data, decoded here: the blocks are those of the trace, and what was added up
makes the live bytes of the trace whole at every moment that the page has. In a
headless Chromium, if it is installed: a click on a block whose place follows
from the recording shows its size, stream, lifetime and stack; zooming, moving,
filters and the peak do what they say, by pointer, touch and keyboard; nothing
is written to the console; the page prints.
Environment: FRAGSIM (default build/fragsim).
"""
import array
import base64
import csv
import json
import lzma
import os
import pickle
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from webdriver import Browser, is_installed
from harness import BUNDLED, SANITIZED, output, results, run

FRAMES = os.path.join(BUNDLED, "leak_frames.pickle.xz")
GPT2 = os.path.join(BUNDLED, "gpt2_train.pickle.xz")
CHANGES = os.path.join(BUNDLED, "recorded", "changes_two_streams.pickle.xz")
TYPES = {"u8": "B", "u32": "I", "f64": "d"}


def page_of(folder, trace, *options):
    out = os.path.join(folder, "view.html")
    run("plot", "-q", "-f", trace, "map", "-o", out, *options)
    return out


def decode(value):
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in TYPES:
        (kind, text), = value.items()
        return array.array(TYPES[kind], base64.b64decode(text))
    if isinstance(value, dict):
        return {key: decode(part) for key, part in value.items()}
    return [decode(part) for part in value] if isinstance(value, list) else value


def data_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return decode(json.loads(re.search(
        r'<script type="application/json">(.*?)</script>', text, re.S)[1]))


class Blocks:
    """The blocks of a trace without late frees, from its CSV."""

    def __init__(self, trace):
        rows = list(csv.DictReader(output("export", "-q", trace).splitlines()))
        self.rows, self.count, live = [], len(rows), {}
        for event, row in enumerate(rows):
            if row["op"] == "alloc":
                live[row["id"]] = (event, int(row["bytes"]),
                                   int(row["stream"] or 0))
            elif row["op"] == "free":
                begin, size, stream = live.pop(row["id"])
                self.rows.append((begin, event, size, stream))
        self.rows += [(begin, self.count, size, stream)
                      for begin, size, stream in live.values()]
        self.rows.sort()
        changes = [0] * (self.count + 1)
        number = [0] * (self.count + 1)
        for begin, end, size, _ in self.rows:
            changes[begin] += size
            changes[end] -= size
            number[begin] += 1
            number[end] -= 1
        self.bytes, self.live = [], []
        for event in range(self.count):
            self.bytes.append((self.bytes or [0])[-1] + changes[event])
            self.live.append((self.live or [0])[-1] + number[event])


def columns(data):
    """The events with which the columns begin, and the end."""
    n, c = data["events"], data["columns"]
    return [k * n // c for k in range(c + 1)]


def check_curves(data, one, blocks, trace, policy):
    begins = columns(data)
    assert one["requestedMost"].tolist() == [
        max(blocks.bytes[a:b]) for a, b in zip(begins, begins[1:])]
    measured, = results("replay", "-q", trace, "-p", policy)
    assert max(one["reservedMost"]) == measured["peak_reserved_bytes"] == \
        one["peakReserved"]
    assert max(one["allocatedMost"]) == measured["peak_allocated_bytes"]
    live = [0] * (data["events"] + 1)
    for begin, end, kind in zip(one["from"], one["to"], one["kind"]):
        live[begin] += one["size"][kind]
        live[end] -= one["size"][kind]
    for event in range(1, data["events"]):
        live[event] += live[event - 1]
    if one["written"] == one["blocks"]:
        assert one["allocated"].tolist() == [live[k] for k in begins[:-1]]
    else:
        assert all(a >= live[k] for a, k in zip(one["allocated"], begins))


def check_written(data, one, blocks):
    """Every block is written, and no other."""
    assert one["written"] == one["blocks"] == len(blocks.rows)
    assert not one["cells"] and not one["moment"]
    assert [(begin, end, one["requested"][kind],
             data["streams"][one["stream"][kind]])
            for begin, end, kind in zip(one["from"], one["to"], one["kind"])] \
        == blocks.rows


def check_small(folder):
    for trace, policy in ((FRAMES, "torch"), (GPT2, "best_fit"),
                          (GPT2, "direct")):
        blocks = Blocks(trace)
        data = data_of(page_of(folder, trace, "-p", policy))
        one, = data["runs"]
        assert data["events"] == blocks.count
        check_written(data, one, blocks)
        check_curves(data, one, blocks, trace, policy)
        apart = list(zip(one["from"], one["to"], one["y"], one["kind"]))
        for event in random.Random(1).sample(range(blocks.count), 50):
            live = [(y * one["unit"], one["size"][kind],
                     one["requested"][kind])
                    for begin, end, y, kind in apart if begin <= event < end]
            assert sum(row[2] for row in live) == blocks.bytes[event], event
            live.sort()
            assert all(a[0] + a[1] <= b[0] for a, b in zip(live, live[1:]))
            assert not live or live[-1][0] + live[-1][1] <= one["bytes"]


def check_changes(folder):
    """The changes of settings in mid-run, as `info` lists them; else none."""
    assert data_of(page_of(folder, FRAMES))["changes"] == []
    said, = results("info", "-q", CHANGES)
    rows = said["devices"][0]["settings_changes"][1:]  # the first is at the start
    assert len(rows) == 4 and data_of(page_of(folder, CHANGES))["changes"] == [
        {"event": row["event"], "text": row["settings"] or "defaults"} for row in rows]


def area_of(one, data):
    """Bytes times events of the cells, as the page rounds them up."""
    cell = one["bytes"] / data["high"] * data["events"] / data["wide"]
    return sum(one["cells"]) / 255 * cell, len(one["cells"]) / 255 * cell


def check_sums(data, one, blocks):
    """At each moment, what is written and what is added up are what is live."""
    firsts = list(one["momentFirst"]) + [len(one["sumNode"])]
    assert len(one["moment"]) > 8 and data["peak"] in one["moment"]
    for m in range(0, len(one["moment"]), 5):
        event = one["moment"][m]
        sums = slice(firsts[m], firsts[m + 1])
        written = [one["requested"][kind] for begin, end, kind in
                   zip(one["from"], one["to"], one["kind"])
                   if begin <= event < end]
        assert sum(written) + sum(one["sumRequested"][sums]) == \
            blocks.bytes[event], event
        assert len(written) + sum(one["sumBlocks"][sums]) == \
            blocks.live[event], event


def check_large(folder):
    """More blocks than a page has room for."""
    trace = os.path.join(folder, "large.h5")
    run("gen", "-q", "-f", "-o", trace, "stationary:streams=2,allocs=" +
        ("100000" if SANITIZED else "300000"))
    blocks = Blocks(trace)
    path = page_of(folder, trace, "-p", "best_fit")
    data = data_of(path)
    one, = data["runs"]
    assert os.path.getsize(path) < 5.3e6, os.path.getsize(path)
    assert one["blocks"] == len(blocks.rows) > one["written"] > 1000
    check_curves(data, one, blocks, trace, "best_fit")
    check_sums(data, one, blocks)
    known = dict(((row[0], row[1], row[2]), 1) for row in blocks.rows)
    sizes, left = {}, 0
    for begin, end, kind in zip(one["from"], one["to"], one["kind"]):
        asked = one["requested"][kind]
        assert (begin, end, asked) in known
        sizes[begin] = one["size"][kind]
        assert (end - begin) * one["size"][kind] >= one["least"] or \
            begin <= data["peak"] < end
    for begin, end, asked, _ in blocks.rows:
        if begin not in sizes:
            left += (end - begin) * asked
            assert (end - begin) * asked < one["least"]
            assert not (one["hasPeak"] and begin <= data["peak"] < end)
    found, error = area_of(one, data)
    assert left <= found + 1 and found <= 1.3 * left + error, (left, found)


def check_peak_rows(rows, trace, *options):
    """The rows of the page are those of `fragsim top'."""
    top, = results("top", "-q", trace, "--rows", "0", *options)
    groups = [(group["held_bytes"], group["blocks"]) for group in top["groups"]]
    assert len(groups) > 3 and rows == groups[:20], (rows, groups[:20])
    return top


def holders(page):
    """Bytes and blocks of the rows that are groups."""
    return [tuple(row) for row in page.script("""
        return [...document.querySelectorAll('.v-holders tbody tr')].filter(
            row => row.querySelector('button')).map(row => [
                +row.cells[0].dataset.v,
                +row.cells[2].textContent.replaceAll(',', '')]);""")]


def window(page, number=0):
    return [float(x) for x in page.script(
        "return document.querySelectorAll('canvas')[arguments[0]].dataset"
        ".window", number).split()]


class Place:
    """Pixels of places on a map."""

    def __init__(self, page, number=0):
        page.script("document.querySelectorAll('canvas')[arguments[0]]"
                    ".scrollIntoView({block: 'center'})", number)
        page.settle()
        left, top, plot = page.script("""
            const canvas = document.querySelectorAll('canvas')[arguments[0]];
            const box = canvas.getBoundingClientRect();
            return [box.left, box.top, canvas.dataset.plot];""", number)
        self.l, self.t, self.w, self.h = map(float, plot.split())
        self.l += left
        self.t += top
        self.x0, self.x1, self.y0, self.y1 = window(page, number)

    def at(self, x, y):
        return (self.l + (x - self.x0) / (self.x1 - self.x0) * self.w,
                self.t + self.h - (y - self.y0) / (self.y1 - self.y0) * self.h)

    def middle(self):
        return self.l + self.w / 2, self.t + self.h / 2


def placed_block(folder):
    """The largest block with a stack, as `export --to snapshot' places it: the
    number of its request, its entry there, and its height."""
    path = os.path.join(folder, "run.pickle")
    run("export", "-q", "-f", FRAMES, "--to", "snapshot", "-p", "torch", "-o",
        path)
    with open(path, "rb") as file:
        trace = pickle.load(file)["device_traces"][0]
    allocs = [entry for entry in trace if entry["action"] == "alloc"]
    number, entry = max(((k, entry) for k, entry in enumerate(allocs)
                         if entry["frames"]), key=lambda pair: pair[1]["size"])
    held = {(e["addr"], e["size"]) for e in trace
            if e["action"] == "segment_alloc"}
    return number, entry, sum(min(size, entry["addr"] - addr)
                              for addr, size in held if addr <= entry["addr"])


def check_click(page, folder):
    """A block whose place another command tells."""
    number, entry, height = placed_block(folder)
    rows = list(csv.DictReader(output("export", "-q", FRAMES).splitlines()))
    event = [k for k, row in enumerate(rows) if row["op"] == "alloc"][number]
    size = int(rows[event]["bytes"])
    end = next((k for k in range(event + 1, len(rows))
                if rows[k]["op"] == "free" and
                rows[k]["id"] == rows[event]["id"]), len(rows))
    place = Place(page)
    middle = place.at((event + end) / 2, height + entry["size"] / 2)
    page.point(*middle)
    tip = page.text(".v-tip").split("\n")
    page.click(*middle)
    said = page.text(".v-block")
    assert tip[0] == said and len(tip) > 1, (tip, said)
    shown = f"{size / 2**20:.3f}"[:5] + " MiB"
    assert said.startswith(f"Block of {shown}"), (said, shown)
    assert f"allocated at event {event:,}" in said, (said, event)
    assert (f"freed at event {end:,}" if end < len(rows) else "not freed") \
        in said, (said, end)
    assert f"lives {end - event:,} events" in said, said
    assert f"stream {entry['stream']}, default pool" in said, said
    stack = page.text(".v-stack").split("\n")
    assert stack == [f"{f['name']} ({os.path.basename(f['filename'])}:"
                     f"{f['line']})" for f in entry["frames"]], stack
    assert tip[1:] == stack[:6], (tip, stack)
    page.press("Escape")
    assert page.text(".v-block") == "No block is selected."


def check_moves(page):
    """Wheel, drag, keys and touch."""
    whole = window(page)
    place = Place(page)
    assert whole[0] == 0 and whole[1] == data_events(page)
    page.wheel(*place.middle(), 300)  # all is shown: the page scrolls
    assert window(page) == whole
    place = Place(page)
    page.wheel(*place.middle(), -300)
    near = window(page)
    assert near[1] - near[0] < 0.5 * whole[1] and near[3] - near[2] < \
        0.5 * whole[3] and near[0] < whole[1] / 2 < near[1], near
    x, y = place.middle()
    page.point(x, y, "down", (x - place.w / 4, y), "up")
    moved = window(page)
    step = (near[1] - near[0]) / 4
    assert abs(moved[0] - near[0] - step) < 0.02 * step and \
        moved[2:] == near[2:], (near, moved)
    page.press("Left")
    assert abs(moved[0] - window(page)[0] - 0.6 * step) < 0.01 * step
    page.press("Down")
    assert window(page)[2] < moved[2]
    page.press("+")
    narrow = window(page)
    assert abs((narrow[1] - narrow[0]) / (near[1] - near[0]) - 0.7) < 1e-6
    page.press("-")
    assert abs(window(page)[1] - window(page)[0] - near[1] + near[0]) < 1e-3
    page.press("Home")
    assert window(page) == whole
    for _ in range(40):
        page.press("+")
    assert window(page)[1] - window(page)[0] == 8
    assert "finest level" in page.text(".v-level")
    page.press("Home")
    assert page.text(".v-level") == ""


def data_events(page):
    return page.script("return JSON.parse(document.querySelector("
                       "'script[type=\"application/json\"]').textContent).events")


def check_keys(page):
    """A block is selected and described without a pointer."""
    page.script("document.querySelector('canvas').focus()")
    page.press("Enter")
    said = [page.text(".v-block")]
    for arrow in "Right", "Up", "Left", "Down":
        page.press("Shift", arrow)
        said.append(page.text(".v-block"))
    assert all(words.startswith("Block of ") for words in said), said
    assert len(set(said)) >= 3, said
    page.press("Escape")
    assert page.script("return document.activeElement.tagName") == "CANVAS"
    label = page.script("return document.querySelector('canvas')"
                        ".getAttribute('aria-label')")
    assert "leak_frames" in label and "Home shows all" in label, label


def go(page, where):
    page.script("document.querySelector('[data-go=' + arguments[0] + ']')"
                ".click()", where)
    page.settle()


def check_filters(page):
    text = "train.py:164"
    go(page, "peak")
    page.set("[data-set=stack]", text)
    top, = results("top", "-q", FRAMES, "--rows", "0", "--by", "stack",
                   "--filter", text)
    assert holders(page) == [(g["held_bytes"], g["blocks"]) for g in top["groups"]]
    page.set("[data-set=stack]", "no such function")
    assert holders(page) == []
    page.set("[data-set=stack]", "")
    page.set("[data-set=least]", "2 MiB")
    blocks = Blocks(FRAMES)
    event = peak_of(page)
    large = [row for row in blocks.rows
             if row[0] <= event < row[1] and row[2] >= 2 << 20]
    assert sum(row[0] for row in holders(page)) == sum(r[2] for r in large)
    page.set("[data-set=least]", "much")
    assert page.script("return document.querySelector('[data-set=least]')"
                       ".matches(':invalid')")
    page.set("[data-set=least]", "")


def peak_of(page):
    return int(re.search(r"event ([\d,]+)", page.text(".v-moment"))[1]
               .replace(",", ""))


def check_peak(page, trace):
    go(page, "all")
    place = Place(page)
    page.click(*place.at(place.x1 / 10, place.y1 / 2))
    assert "at the peak" not in page.text(".v-moment")
    go(page, "peak")
    top = check_peak_rows(holders(page), trace, "--by",
                          "stack" if trace == FRAMES else "size")
    assert peak_of(page) == top["event"], (page.text(".v-moment"), top["event"])
    x0, x1 = window(page)[:2]
    assert x0 <= top["event"] <= x1 and x1 - x0 < data_events(page) / 5
    assert "Most is held by" in page.text(".v-block")
    page.script("document.querySelector('.v-holders button').click()")
    page.settle()
    assert page.script("return document.querySelector('.v-holders button')"
                       ".getAttribute('aria-pressed')") == "true"
    go(page, "all")


def check_flame(page):
    """The frames of the flame graph are the sums of `top --folded'."""
    go(page, "peak")
    folded = output("top", "-q", FRAMES, "--folded", "-")
    total = {}
    for line in folded.splitlines():
        stack, size = line.rsplit(" ", 1)
        root = stack.split(";")[0]
        if root != "unknown":
            total[root] = total.get(root, 0) + int(size)
    shown = page.script("return [...document.querySelectorAll('.v-flame button')]"
                        ".filter(b => b.style.top == '20px')"
                        ".map(b => b.textContent)")
    assert shown == [f"{root.replace('_(', ' (')}, {size / 2**20:.1f} MiB, "
                     f"{100 * size / sum_of(folded):.1f} %"
                     for root, size in sorted(total.items(),
                                              key=lambda pair: -pair[1])], shown
    page.script("document.querySelectorAll('.v-flame button')[2].click()")
    page.settle()
    assert page.script("return document.querySelectorAll('.v-flame button.on')"
                       ".length") == 1
    page.press("Escape")
    go(page, "all")


def sum_of(folded):
    return sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())


def check_modes(page):
    """Stacked by block: the lowest block is the oldest; by time: seconds."""
    page.set("[data-set=mode]", "stacked")
    place = Place(page)
    event = int(place.x1 * 0.6)
    first = next(row for row in Blocks(FRAMES).rows
                 if row[0] <= event < row[1] and row[2] >= 8 << 20)
    below = sum(row[2] for row in Blocks(FRAMES).rows
                if row[0] < first[0] and row[0] <= event < row[1])
    page.click(*place.at(event + 0.5, below + first[2] / 2))
    assert page.text(".v-block").startswith("Block of "), page.text(".v-block")
    assert f"{first[1] - first[0]:,} events" in page.text(".v-block"), \
        (page.text(".v-block"), first)
    page.set("[data-set=axis]", "time")
    assert 0 < window(page)[1] < 3600
    page.set("[data-set=mode]", "address")
    page.set("[data-set=axis]", "event")
    page.press("Escape")


def check_print(page):
    """On paper are the map and the holders, and nothing to press."""
    made = page.print()
    assert made.startswith(b"%PDF") and len(made) > 20000, len(made)
    page.call("POST", "/goog/cdp/execute", {
        "cmd": "Emulation.setEmulatedMedia", "params": {"media": "print"}})
    shown = [page.script("return getComputedStyle(document.querySelector("
                         "arguments[0])).display != 'none'", name)
             for name in (".v-tools", ".v-help", "canvas", ".v-holders")]
    page.call("POST", "/goog/cdp/execute", {
        "cmd": "Emulation.setEmulatedMedia", "params": {"media": ""}})
    assert shown == [False, False, True, True], shown


def check_page(folder):
    with Browser(1366, 768) as page:
        page.open(page_of(folder, FRAMES))
        check_click(page, folder)
        check_moves(page)
        check_keys(page)
        check_filters(page)
        check_peak(page, FRAMES)
        check_flame(page)
        check_modes(page)
        check_print(page)
        page.open(page_of(folder, GPT2, "-p", "torch", "-p", "best_fit"))
        check_peak(page, GPT2)
        check_pair(page)
        check_touch(page)
        assert "changes of settings" not in page.text(".v-key")
        page.open(page_of(folder, CHANGES))
        check_settings(page)
        assert page.errors() == [], page.errors()


def check_pair(page):
    """Two policies have one cursor and one window."""
    place = Place(page, 1)
    page.point(*place.middle())
    said = page.text(".v-cursor")
    assert "torch reserved " in said and "best_fit reserved " in said, said
    page.wheel(*place.middle(), -200)
    assert window(page, 0) == window(page, 1) and window(page)[0] > 0
    page.press("Home")


def check_settings(page):
    """The settings of a moment, and dark lines where they change."""
    assert "changes of settings" in page.text(".v-key")
    place = Place(page)
    page.point(*place.middle())
    assert "Settings: defaults, since event 973" in page.text(".v-cursor"), \
        page.text(".v-cursor")
    dark = page.script("""
        const map = document.querySelector('canvas'), plot = map.dataset.plot.split(' ');
        const shown = map.dataset.window.split(' '), ratio = devicePixelRatio;
        const x = +plot[0] + (973 - shown[0]) / (shown[1] - shown[0]) * plot[2];
        const pixels = map.getContext('2d').getImageData(Math.round(x * ratio), (+plot[1] + 40)
          * ratio, 1, plot[3] / 2 * ratio).data;
        return pixels.filter((level, i) => i % 4 == 0 && level < 60).length;""")
    assert dark > 40, dark


def check_touch(page):
    place = Place(page)
    page.click(*place.middle(), kind="touch")
    assert page.text(".v-moment").startswith("Who holds memory at event")


def check_names(folder):
    """What a recording holds stays text."""
    name = os.path.join(folder, "<\\script><b>job.pickle.xz")
    evil = "</script><b>evil\n"
    with lzma.open(FRAMES) as file:
        snapshot = pickle.load(file)
    for entry in snapshot["device_traces"][0]:
        for frame in entry.get("frames", []):
            frame["name"] = evil
    with lzma.open(name, "wb") as file:
        pickle.dump(snapshot, file)
    path = page_of(folder, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "<b>" not in text
    assert any("</script><b>evil\\n" in text for text in data_of(path)["strings"])


def check_misuse(folder):
    out = os.path.join(folder, "none.html")
    run("plot", "-q", GPT2, "map", "-o", out, "--keep", folder, code=2)
    for count in 3, 4:
        options = ["-p", "torch"] * count
        assert "one or two" in run("plot", "-q", GPT2, "map", "-o", out,
                                   *options, code=2).stderr
    run("plot", "-q", GPT2, "map", "-o", out, "-p", "no_such", code=2)
    run("plot", "-q", os.path.join(folder, "absent"), "map", "-o", out, code=4)
    assert not os.path.exists(out)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_small(folder)
        check_changes(folder)
        check_large(folder)
        check_names(folder)
        check_misuse(folder)
        if is_installed():
            check_page(folder)
        else:
            print("check_view: no chromium with chromedriver (Debian: chromium, "
                  "chromium-driver); the page was not opened")
    print("the view shows what the trace holds")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""check_site.py: makes the site of the documentation and follows every link of every
page, to a file and to the place in it; each command and topic of `fragsim help` has
its text there, and each page is reached from the first one. A page with a link to
nothing is refused, and the site that was there stays. The links of all other Markdown
files of the tree lead to something, too. Skipped (77) without cmark-gfm.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need, output, skip

MAKER = os.path.join("sim", "cli", "site", "site.py")
HREF = re.compile(r'(?:href|src)="([^"]+)"')
INLINE = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)")


def make(root, folder):
    return subprocess.run([sys.executable, os.path.join(root, MAKER), FRAGSIM, folder],
                          capture_output=True, text=True, check=False)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def follow(site):
    """The pages that are reached, each with its text."""
    reached, faults, waiting = {}, [], ["index.html"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached[page] = read(os.path.join(site, page))
        for link in map(html.unescape, HREF.findall(reached[page])):
            if re.match(r"https?:", link):
                continue
            path, _, place = link.partition("#")
            found = os.path.normpath(os.path.join(os.path.dirname(page), path)) \
                if path else page
            whole = os.path.join(site, found)
            if not os.path.isfile(whole):
                faults.append(f"{page}: {link} leads to nothing")
            elif place and f'id="{place}"' not in read(whole):
                faults.append(f"{page}: {link} names no place of {found}")
            elif found.endswith(".html"):
                waiting.append(found)
    return reached, faults


def check_help(reached):
    names = re.findall(r"^  (\w+)  +", output("help").split("First steps:")[0], re.M)
    assert {"triage", "versions"} <= set(names), names
    both = reached["commands.html"] + reached["topics.html"]
    for name in names:
        text = html.escape(output("help", name))
        assert f'id="{name}">{name}</h2>\n<pre>{text}</pre>' in both, name


def check_refused(folder, site):
    """A tree with a link to nothing has no site, and the site that was there stays."""
    root = os.path.join(folder, "tree")
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("build*", ".git"))
    with open(os.path.join(root, "sim", "cli", "site", "more.md"), "a",
              encoding="utf-8") as file:
        file.write("\n[nothing](nowhere.md)\n")
    done = make(root, site)
    assert done.returncode == 1 and "nowhere.md leads to nothing" in done.stderr, done
    assert os.path.exists(os.path.join(site, "index.html"))


def markdown_faults():
    faults = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f != ".git" and not f.startswith("build")]
        for name in names:
            if not name.endswith(".md") or folder.endswith(os.path.join("cli", "site")):
                continue
            path = os.path.join(folder, name)
            for link in INLINE.findall(read(path)):
                if not re.match(r"\w+:", link) and \
                        not os.path.exists(os.path.join(folder, link)):
                    faults.append(f"{os.path.relpath(path, ROOT)}: {link}")
    return faults


def main():
    need(FRAGSIM)
    if not shutil.which("cmark-gfm"):
        skip("cmark-gfm is missing")
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "site")
        done = make(ROOT, site)
        assert done.returncode == 0, done.stderr
        reached, faults = follow(site)
        check_help(reached)
        there = {os.path.relpath(os.path.join(at, name), site)
                 for at, _, names in os.walk(site) for name in names
                 if name.endswith(".html")}
        faults += [f"{page}: no link leads to it" for page in there - set(reached)]
        check_refused(folder, site)
    faults += markdown_faults()
    for fault in faults:
        print(f"check_site: {fault}")
    print(f"{len(reached)} pages")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

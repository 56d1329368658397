#!/usr/bin/env python3
"""site.py FRAGSIM FOLDER: makes the documentation a site in FOLDER, which opens from
the disk. `cmake --build build --target site` calls it.

The pages are the Markdown files of the tree, in the same folders, and what the tool
prints: `fragsim help VERB` and `fragsim help TOPIC`, from the tables of the man pages.
A link to a Markdown file becomes one to its page, any other linked file is copied, and
a link to nothing is an error. cmark-gfm of Debian translates the Markdown.
"""
import html
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
FIRST = "sim/cli/site/index.md"
STYLE = os.path.join(HERE, "..", "texts", "page.css")  # that of triage and report
# What the pages of the tool need besides.
MORE = "nav{margin-bottom:20px}nav a{margin-right:1.2em}pre{white-space:pre;overflow-x:auto}th,td{text-align:" \
       "left;white-space:normal;vertical-align:top}"
BAR = [("Tasks", "index.html"), ("Commands", "commands.html"),
       ("Topics", "topics.html"), ("Policies", "all_policies.html"),
       ("Versions", "topics.html#versions")]
LINK = re.compile(r'(<(?:a href|img src)=")([^"#:]+)([#"])')
HEADING = re.compile(r"<h([1-4])>(.*?)</h\1>", re.S)
LISTED = re.compile(r"^  (\w+) +(.*)$", re.M)


def fail(words):
    sys.exit(f"site.py: {words}")


def anchor(heading):
    """The name that GitHub links a heading by."""
    text = html.unescape(re.sub(r"<[^>]*>", "", heading)).lower()
    return re.sub(r"[^\w -]", "", text).replace(" ", "-")


def page_of(path):
    """The page of a Markdown file: those of the site are at its top."""
    folder, name = os.path.split(path[:-len(".md")] + ".html")
    return name if folder == os.path.dirname(FIRST) else os.path.join(folder, name)


class Site:
    """The pages that are made, and those that they link to."""

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.wanted, self.copied = [FIRST], set()

    def write(self, page, title, body):
        path = os.path.join(self.folder, page)
        up = "../" * page.count("/")
        with open(STYLE, encoding="utf-8") as file:
            style = file.read()
        bar = "".join(f'<a href="{up}{to}">{name}</a>' for name, to in BAR)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width\">"
                       f"<title>{html.escape(title)}</title><style>{style}{MORE}"
                       f"</style></head>\n<body><main><nav>{bar}</nav>\n{body}"
                       "</main></body></html>\n")

    def target(self, path, link):
        """What a link of the Markdown file at `path` is on the site."""
        page = page_of(path)
        if link in {to.split("#")[0] for _, to in BAR} and path.startswith("sim/cli/site"):
            return link
        found = os.path.normpath(os.path.join(os.path.dirname(path), link))
        whole = os.path.join(ROOT, found)
        if found.startswith("..") or not os.path.exists(whole):
            fail(f"{path}: the link {link} leads to nothing")
        if os.path.isdir(whole):
            fail(f"{path}: the link {link} is a folder; name a file")
        if found.endswith(".md"):
            self.wanted.append(found)
            found = page_of(found)
        elif found not in self.copied:
            self.copied.add(found)
            there = os.path.join(self.folder, found)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.copy(whole, there)
        return os.path.relpath(found, os.path.dirname(page) or ".")

    def markdown(self, path):
        done = subprocess.run(["cmark-gfm", "-e", "table", os.path.join(ROOT, path)],
                              capture_output=True, text=True, check=True)
        body = LINK.sub(lambda m: m[1] + self.target(path, html.unescape(m[2])) + m[3],
                        done.stdout)
        body = HEADING.sub(lambda m: f'<h{m[1]} id="{anchor(m[2])}">{m[2]}</h{m[1]}>',
                           body)
        heading = HEADING.search(done.stdout)
        title = html.unescape(re.sub(r"<[^>]*>", "", heading[2])) if heading else path
        self.write(page_of(path), title, body)

    def help(self, *words):
        return subprocess.run([self.tool, "help", *words], capture_output=True,
                              text=True, check=True).stdout

    def printed(self, page, title, rows):
        """A page with the help of each row, and a list of them on top."""
        index = "".join(f'<tr><td><a href="#{name}">{name}</a></td>'
                        f"<td>{html.escape(summary)}</td></tr>" for name, summary in rows)
        body = "".join(f'<h2 id="{name}">{name}</h2>\n<pre>'
                       f"{html.escape(self.help(name))}</pre>\n" for name, _ in rows)
        self.write(page, f"fragsim: {title}",
                   f"<h1>{title}</h1>\n<table>{index}</table>\n{body}")

    def make(self):
        commands, topics, _ = re.split(r"^More:.*|^First steps:", self.help(), flags=re.M)
        self.printed("commands.html", "Commands", LISTED.findall(commands))
        self.printed("topics.html", "Topics", LISTED.findall(topics))
        made = set()
        while self.wanted:
            path = self.wanted.pop()
            if path not in made:
                made.add(path)
                self.markdown(path)


def main():
    if len(sys.argv) != 3:
        fail("expected FRAGSIM FOLDER")
    if not shutil.which("cmark-gfm"):
        fail("cmark-gfm is missing; on Debian: apt-get install cmark-gfm")
    tool, folder = sys.argv[1:]
    made = folder.rstrip("/") + ".partial-site"
    shutil.rmtree(made, ignore_errors=True)
    Site(tool, made).make()
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(made, folder)
    print(os.path.join(folder, "index.html"))


if __name__ == "__main__":
    main()

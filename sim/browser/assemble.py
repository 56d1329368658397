#!/usr/bin/env python3
"""assemble.py MODULE.js PAGE: makes one page of browser.html, browser.js, worker.js,
the style of the tool's own pages, and the module that emcc linked: MODULE.js and the code in MODULE.wasm beside it."""
import base64
import gzip
import os
import sys


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def inside_script(text):
    """Text that cannot end the element <script> that holds it."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def main():
    module, page = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(module[:-len(".js")] + ".wasm", "rb") as file:
        wasm = gzip.compress(file.read(), 9, mtime=0)
    parts = {
        "@STYLE@": read(here, "..", "cli", "texts", "page.css"),
        "@WORKER@": inside_script(read(module) + "\n" + read(here, "worker.js")),
        "@WASM@": base64.b64encode(wasm).decode(),
        "@PAGE@": inside_script(read(here, "browser.js")),
    }
    text = read(here, "browser.html")
    for mark, part in parts.items():
        before, after = text.split(mark)
        text = before + part + after
    with open(page + ".partial", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(page + ".partial", page)


if __name__ == "__main__":
    main()

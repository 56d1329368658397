"""Shows how far the tool is, with tqdm, where a person can see it: in a terminal
or a notebook. The tool draws its bar on a terminal only (sim/cli/output/
progress.c), so its stderr is a pseudo-terminal, from which the share is read."""
from __future__ import annotations

import importlib
import os
import re
import selectors
import subprocess
import sys
import time
import tty
import warnings
from typing import Any

# What the bar draws: it returns to the start of the line and clears it first.
DRAWN = re.compile(rb"\r\x1b\[K(?:([^\r\n]*?) \[[#.]+\] +(\d+)%  ([^\r\n]*))?")
FORMAT = "{desc} {percentage:3.0f}%|{bar}|{postfix}"  # the tool says how long
SECONDS = 1  # of work that shows nothing


def meter() -> Meter | None:
    """What reads the bar; None if tqdm is not installed or nobody watches."""
    if not ("ipykernel" in sys.modules or
            (sys.stderr is not None and sys.stderr.isatty())):
        return None
    try:
        with warnings.catch_warnings():  # it advises to install widgets
            warnings.simplefilter("ignore")
            return Meter(importlib.import_module("tqdm.auto").tqdm)
    except (ImportError, OSError):  # OSError: no pseudo-terminals here
        return None


class Meter:
    """Runs one child and follows its bar."""

    def __init__(self, tqdm: Any) -> None:
        self.tqdm = tqdm
        self.bar: Any = None
        self.begin = time.monotonic() + SECONDS
        self.leader, self.stream = os.openpty()
        tty.setraw(self.stream)  # ends of lines stay what they are

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Starts the child, whose stderr is the pseudo-terminal."""
        try:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=self.stream, env={**os.environ, "TERM": "xterm", "CI": ""})
        finally:
            os.close(self.stream)

    def follow(self, child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        """Reads both outputs to their ends; the bar is not part of them."""
        assert child.stdout is not None
        texts = {child.stdout.fileno(): bytearray(), self.leader: bytearray()}
        try:
            with selectors.DefaultSelector() as ready:
                for end in texts:
                    ready.register(end, selectors.EVENT_READ)
                while ready.get_map():
                    for key, _ in ready.select():
                        part = _read(key.fd)
                        texts[key.fd] += part
                        if not part:
                            ready.unregister(key.fd)
                        elif key.fd == self.leader:
                            self._show(texts[key.fd][-1000:])
        finally:
            os.close(self.leader)
            if self.bar is not None:
                self.bar.close()
        child.wait()
        out, words = texts.values()
        return bytes(out), DRAWN.sub(b"", words)

    def _show(self, text: bytearray) -> None:
        # The last one may be incomplete.
        drawn = [one for one in DRAWN.finditer(text)
                 if one[1] is not None and one.end() < len(text)]
        if not drawn or time.monotonic() < self.begin:
            return
        if self.bar is None:
            self.bar = self.tqdm(total=100, leave=False, bar_format=FORMAT)
        label, share, rest = (part.decode("utf-8", "replace")
                              for part in drawn[-1].groups())
        self.bar.set_description_str(label, refresh=False)
        self.bar.set_postfix_str(rest, refresh=False)
        self.bar.n = int(share)
        self.bar.refresh()


def _read(end: int) -> bytes:
    try:
        return os.read(end, 1 << 16)
    except OSError:  # the other end of the pseudo-terminal is closed
        return b""

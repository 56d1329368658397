"""webdriver.py: a headless Chromium for the checks of pages, driven through
chromedriver by the WebDriver protocol (w3.org/TR/webdriver2).

    with Browser(1366, 768) as page: page.open(path); page.script("return 1")
"""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

KEYS = {"Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
        "Home": "\ue011", "Escape": "\ue00c", "Enter": "\ue007",
        "Shift": "\ue008"}


def is_installed():
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    def __init__(self, width, height):
        self.size = f"--window-size={width},{height}"

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        port = None
        while not port:
            line = self.driver.stdout.readline()
            assert line, "chromedriver ended"
            port = re.search(r"successfully on port (\d+)", line)
        self.url = f"http://127.0.0.1:{port.group(1)}"
        words = ["--headless", "--no-sandbox", "--disable-gpu", self.size,
                 "--force-device-scale-factor=1",
                 "--user-data-dir=" + os.path.join(self.folder.name, "user")]
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": shutil.which("chromium"),
                                   "args": words}}}})
        self.url += "/session/" + made["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.folder.cleanup()

    def call(self, method, path, values=None):
        ask = urllib.request.Request(
            self.url + path, method=method,
            data=None if values is None else json.dumps(values).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(ask, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:600]) from error

    def open(self, path):
        self.call("POST", "/url", {"url": "file://" + os.path.abspath(path)})

    def script(self, text, *arguments):
        return self.call("POST", "/execute/sync",
                         {"script": text, "args": arguments})

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])"
                           ".textContent", selector)

    def act(self, *sources):
        self.call("POST", "/actions", {"actions": sources})

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.call("POST", "/execute/async", {"script": """
            var done = arguments[0];
            requestAnimationFrame(() => requestAnimationFrame(done));
            """, "args": []})

    def point(self, x, y, *then, kind="mouse"):
        """Moves the pointer to a place in the window; then "down" and "up"."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y),
                  "duration": 0}]
        moves += [{"type": "pointer" + step.capitalize(), "button": 0}
                  if isinstance(step, str) else
                  {"type": "pointerMove", "x": round(step[0]),
                   "y": round(step[1]), "duration": 50} for step in then]
        self.act({"type": "pointer", "id": kind, "actions": moves,
                  "parameters": {"pointerType": kind}})
        self.settle()

    def click(self, x, y, kind="mouse"):
        self.point(x, y, "down", "up", kind=kind)

    def wheel(self, x, y, amount):
        time.sleep(0.4)  # no longer part of a scrolling of the page
        self.act({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0,
             "deltaY": amount, "duration": 0}]})
        self.settle()

    def press(self, *names):
        """Presses keys together: characters, or names of KEYS."""
        keys = [KEYS.get(name, name) for name in names]
        self.act({"type": "key", "id": "keys", "actions":
                  [{"type": "keyDown", "value": key} for key in keys] +
                  [{"type": "keyUp", "value": key} for key in keys[::-1]]})
        self.settle()

    def set(self, selector, value):
        """Sets a field as a user does, by its event."""
        self.script("""
            const field = document.querySelector(arguments[0]);
            field.value = arguments[1];
            field.dispatchEvent(new Event("input", {bubbles: true}));
            """, selector, value)
        self.settle()

    def errors(self):
        """What the page wrote to the console."""
        return [line["message"] for line in
                self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def print(self):
        """The page as PDF."""
        return base64.b64decode(self.call("POST", "/print", {}))

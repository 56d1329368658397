#!/usr/bin/env python3
"""check_browser.py: the page of sim/browser/ in a headless Chromium without a
network. The commands print the same bytes as the native tool: for each bundled
recording, and for some of the shared ones where they are. A page that was built is
brought up to date by sim/browser/build.sh; FRAG_BROWSER_BUILD=1 also builds the
first one, which takes minutes and fetches the sources of libraries."""
import functools
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM, ROOT, SHARED, need, share, skip

BUILD = os.path.join(ROOT, "build-browser")
PAGE = os.path.join(BUILD, "fragsim.html")
SHARED_FOLDERS = ("recorded/causes", "recorded/h100", "recorded/batch")
SHARED_EACH = 2     # the smallest ones of a folder
DEBIANS = "/usr/bin/python3" # where python3-selenium is
SECONDS = 120       # for one command

# Each with the file in place of FILE, as the user would write it.
COMMANDS = [
    ["validate", "FILE"],
    ["validate", "FILE", "--json", "-"],
    ["explain", "FILE"],
    ["explain", "FILE", "--json", "-"],
    ["fit", "FILE", "-p", "torch", "-p", "best_fit"],
    ["fit", "FILE", "-p", "torch", "--json", "-"],
    ["tune", "FILE"],
    ["tune", "FILE", "--json", "-"],
]
RUN = """
const [words, done] = arguments;
const text = bytes => new TextDecoder().decode(bytes);
run(words).then(r => done({
    code: r.code, stdout: text(r.stdout), stderr: text(r.stderr),
    outputs: r.outputs.map(o => [o.name, text(o.bytes)])}),
    error => done({failed: String(error)}));
"""


def build():
    if not os.path.isdir(BUILD) and not os.environ.get("FRAG_BROWSER_BUILD"):
        skip("there is no page; sim/browser/build.sh builds it")
    if not shutil.which("emcc"):
        skip("emcc is absent")
    done = subprocess.run([os.path.join(ROOT, "sim", "browser", "build.sh")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"build.sh: {done.stdout[-3000:]}{done.stderr}"


def open_browser():
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            skip(f"{program} is absent")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        if os.path.realpath(sys.executable) == os.path.realpath(DEBIANS):
            skip("selenium is absent (Debian: python3-selenium)")
        os.execv(DEBIANS, [DEBIANS, *sys.argv])
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                 "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium")
    driver = webdriver.Chrome(options=options,
                              service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(SECONDS)
    driver.set_network_conditions(offline=True, latency=0, throughput=0)
    driver.get("file://" + PAGE)
    return driver


def drop(driver, path):
    field = driver.find_element("id", "files")
    driver.execute_script("arguments[0].value = ''", field)
    field.send_keys(path)


def native(folder, words, path=None):
    """What the native tool prints where it is started in the folder."""
    variables = dict(os.environ, NO_COLOR="1", TZ="UTC")
    if path is not None:
        variables["PATH"] = path
    done = subprocess.run([FRAGSIM, *words], cwd=folder, capture_output=True,
                          stdin=subprocess.DEVNULL, env=variables, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def first_difference(a, b):
    for i, (one, other) in enumerate(zip(a.split("\n"), b.split("\n")), 1):
        if one != other:
            return f"line {i}: page {one!r}, native {other!r}"
    return f"page {len(a)} bytes, native {len(b)}"


def in_page(driver, words):
    got = driver.execute_async_script(RUN, words)
    assert "failed" not in got, f"{words}: {got['failed']}"
    return got


@functools.cache
def versions(driver):
    """The names of the page's tool and of the native one, with their commits, which
    may differ if one was built before a commit."""
    return (in_page(driver, ["--version"])["stdout"].split("\n")[0],
            native(ROOT, ["--version"])[1].split("\n")[0])


def compare(driver, folder, words):
    got = in_page(driver, words)
    code, stdout, stderr = native(folder, words)
    got["stdout"] = got["stdout"].replace(*versions(driver))
    for what, page, own in (("exit code", str(got["code"]), str(code)),
                            ("stdout", got["stdout"], stdout),
                            ("stderr", got["stderr"], stderr)):
        assert page == own, \
            f"{' '.join(words)}: {what}: {first_difference(page, own)}"


def check_recording(driver, path):
    name = os.path.basename(path)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(path, os.path.join(folder, name))
        drop(driver, path)
        for command in COMMANDS:
            compare(driver, folder, [name if w == "FILE" else w for w in command])


def wait_for_end(driver):
    from selenium.webdriver.support.ui import WebDriverWait
    WebDriverWait(driver, SECONDS).until(
        lambda d: "exit code" in d.find_element("id", "status").text
        or d.find_element("id", "stderr").text)


def press(driver, verb):
    """The answer of a button, as a user gets it."""
    for button in driver.find_elements("css selector", "#verbs button"):
        if button.text == verb:
            button.click()
    wait_for_end(driver)


def check_buttons(driver):
    """A click, a typed line, their texts on the page, and the page of triage in its
    frame, which has no figures."""
    path = os.path.join(BUNDLED, "lstm_varlen__cap_below.pickle.xz")
    name = os.path.basename(path)
    drop(driver, path)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(path, os.path.join(folder, name))
        press(driver, "explain")
        code, stdout, _ = native(folder, ["explain", name])
        shown = driver.find_element("id", "stdout").get_property("textContent")
        assert shown == stdout, first_difference(shown, stdout)
        assert f"exit code {code}," in driver.find_element("id", "status").text
        line = driver.find_element("id", "line")
        line.clear()
        line.send_keys("fragsim  conf 'max_split_size_mb:64'\n")
        wait_for_end(driver)
        _, stdout, _ = native(folder, ["conf", "max_split_size_mb:64"])
        shown = driver.find_element("id", "stdout").get_property("textContent")
        assert shown == stdout, first_difference(shown, stdout)
        press(driver, "triage")
        native(folder, ["triage", name, "--capacity", "24GiB", "-o", "review.html"],
               path=folder)
        with open(os.path.join(folder, "review.html"), encoding="utf-8") as file:
            own = file.read()
        frame = driver.find_element("css selector", "iframe")
        shown = frame.get_property("srcdoc")
        assert shown == own, first_difference(shown, own)
        assert "figures are left out" in shown
        driver.switch_to.frame(frame)
        assert driver.find_element("css selector", "h1").text.startswith("Triage")
        driver.switch_to.default_content()


def check_errors(driver):
    """Bad input has the native message and exit code; HDF5 is refused in words."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("bad.pickle", b"\x80\x04."), ("none.txt", b"words\n"),
                           ("empty.pickle", b"")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
            drop(driver, os.path.join(folder, name))
            compare(driver, folder, ["explain", name])
            compare(driver, folder, ["explain", name, "--wrong"])
        with open(os.path.join(folder, "a.h5"), "wb") as file:
            file.write(b"\x89HDF\r\n\x1a\n" + bytes(64))
        drop(driver, os.path.join(folder, "a.h5"))
        got = in_page(driver, ["explain", "a.h5"])
        assert got["code"] == 2 and "without HDF5" in got["stderr"], got


def check_packed(driver):
    """The packed forms of one recording give one answer."""
    pickle = subprocess.run(
        ["xz", "-dc", os.path.join(BUNDLED, "leak.pickle.xz")],
        capture_output=True, check=True).stdout
    packers = {"leak.pickle": None, "leak.pickle.gz": ["gzip", "-c"],
               "leak.pickle.zst": ["zstd", "-qc"]}
    with tempfile.TemporaryDirectory() as folder:
        for name, packer in packers.items():
            if packer and not shutil.which(packer[0]):
                continue
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(subprocess.run(packer, input=pickle, capture_output=True,
                                          check=True).stdout if packer else pickle)
            drop(driver, path)
            compare(driver, folder, ["summary", name])


def shared():
    """The smallest recordings of some shared folders."""
    found = []
    for folder in SHARED_FOLDERS:
        files = glob.glob(os.path.join(SHARED, folder, "*.pickle*"))
        found += sorted(files, key=os.path.getsize)[:SHARED_EACH]
    return found


def main():
    need(FRAGSIM)
    build()
    driver = open_browser()
    try:
        check_buttons(driver)
        check_errors(driver)
        check_packed(driver)
        recordings = sorted(glob.glob(os.path.join(BUNDLED, "*.pickle.xz"))
                            + glob.glob(os.path.join(BUNDLED, "*.pt")))
        cases = share(recordings + shared())
        for path in cases:
            check_recording(driver, path)
        print(f"check_browser.py: {len(cases)} recordings, {len(COMMANDS)} commands "
              f"each: the page prints what the native tool prints")
    finally:
        driver.quit()


if __name__ == "__main__":
    main()

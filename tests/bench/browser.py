#!/usr/bin/env python3
"""browser.py BYTES...: the page of sim/browser/ beside the native tool, on snapshots
of these sizes: seconds on the clock, processor time in seconds (of the page: of the
process that shows it), and the peak of its memory in MiB. Each command has a fresh
browser. Needs what tests/package/check_browser.py needs."""
import glob
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "package")]
from harness import BUNDLED, FRAGSIM

import check_browser

COMMANDS = [["validate"], ["explain"], ["fit", "-p", "torch"], ["tune"],
            ["triage", "-c", "24GiB", "-f", "-o", "page.html"]]


def native(folder, words, plain):
    began = time.time()
    child = subprocess.Popen([FRAGSIM, *words], cwd=folder, env=dict(os.environ, PATH=plain),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    seconds = time.time() - began
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def fields(process):
    """The parent of a process and its processor time in seconds."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        words = file.read().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return int(words[1]), (int(words[11]) + int(words[12])) / ticks


def renderer(driver):
    """The process that shows the page: the largest one of its kind."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*"):
        try:
            parents[int(os.path.basename(path))] = fields(os.path.basename(path))[0]
        except OSError:
            continue
    found = []
    for process in parents:
        at = process
        while at in parents and at != driver.service.process.pid:
            at = parents[at]
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                if at == driver.service.process.pid and b"--type=renderer" in file.read():
                    found.append((peak(process), process))
        except OSError:
            continue
    return max(found)[1]


def peak(process):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return int(file.read().split("VmHWM:")[1].split()[0]) / 1024


def in_page(path, words):
    driver = check_browser.open_browser()
    try:
        driver.set_script_timeout(3000)
        driver.command_executor.set_timeout(3000)
        check_browser.drop(driver, path)
        driver.execute_async_script(check_browser.RUN, ["--version"])  # compiles
        process = renderer(driver)
        _, before = fields(process)
        began = time.time()
        got = driver.execute_async_script(check_browser.RUN, words)
        seconds = time.time() - began
        assert "failed" not in got, got
        return seconds, fields(process)[1] - before, peak(process)
    finally:
        driver.quit()


def main():
    print("| bytes | command | native: clock, s | processor, s | MiB "
          "| page: clock, s | processor, s | MiB |")
    print("|---:|---|" + "---:|" * 6)
    with tempfile.TemporaryDirectory() as folder:
        for size in sys.argv[1:]:
            name = f"large_{size}.pickle"
            path = os.path.join(folder, name)
            subprocess.run([os.path.join(HERE, "large_snapshot.py"),
                            os.path.join(BUNDLED, "gpt2_train.pickle.xz"), size, path],
                           check=True)
            for verb, *rest in COMMANDS:
                words = [verb, name, "-q", *rest]
                row = (*native(folder, words, folder), *in_page(path, words))
                print(f"| {os.path.getsize(path):,} | `{verb}` | " + " | ".join(
                    f"{x:.0f}" if k % 3 == 2 else f"{x:.1f}"
                    for k, x in enumerate(row)) + " |", flush=True)


if __name__ == "__main__":
    main()

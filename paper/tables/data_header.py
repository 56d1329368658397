"""data_header.py: the comment line on top of a data file, which says how the data
were made, and the reader and writer of data files. A data file whose rows are made again
as they were keeps its line, with the version and the date that made them first."""
import csv
import datetime
import io
import os
import re
import subprocess
import sys

RECORDINGS = "20 recordings of PyTorch 2.11 on an H200"
MADE_BY = r"fragsim \S+ \([^)]*\)|20\d\d-\d\d-\d\d"  # version and date


def replayed(tool, command, rests_on):
    """The line for data that fragsim computed: its version, the date, the command
    and the recordings."""
    version = subprocess.run([tool, "--version"], check=True, text=True,
                             capture_output=True).stdout.splitlines()[0]
    return (f"# {version}, {datetime.date.today()}; {command}; {rests_on}\n")


def measured(device, driver, date, command):
    """The line for data that were measured on a GPU."""
    return f"# device {device}, driver {driver}, {date}; {command}\n"


def machine():
    """The PyTorch, the driver and the cores of this machine, and the date."""
    code = ("import torch; print(torch.__version__, 'on', "
            "torch.cuda.get_device_name(0))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True, check=False)
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii") as file:
            driver = re.search(r"\d+\.\d+(\.\d+)?", file.read())[0]
    except FileNotFoundError:
        driver = "none"
    return {"torch": done.stdout.strip() or "none", "driver": driver,
            "cores": os.cpu_count(), "date": str(datetime.date.today())}


def read_csv(path):
    """(the text of all comment lines, the rows as dicts)"""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.readlines()
    head = " ".join(l[1:].strip() for l in lines if l.startswith("#"))
    return head, list(csv.DictReader(l for l in lines
                                     if not l.startswith("#")))


def same_rows(old, new):
    """Whether two files differ at most in the version and the date on the first line. A
    version of changed sources is not kept: nobody can build it again."""
    (old, old_rows), (new, new_rows) = (text.split("\n", 1) for text in (old, new))
    return (old_rows == new_rows and "-dirty" not in old and
            re.sub(MADE_BY, "", old) == re.sub(MADE_BY, "", new))


def write_data(path, text):
    """Writes a data file, whole or not at all, unless it has these rows already."""
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            if same_rows(file.read(), text):
                return
    with open(path + ".new", "w", encoding="utf-8", newline="") as out:
        out.write(text)
    os.replace(path + ".new", path)


def write_csv(path, header, columns, rows):
    out = io.StringIO(header)
    out.seek(0, io.SEEK_END)
    writer = csv.DictWriter(out, columns, extrasaction="ignore",
                            lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_data(path, out.getvalue())

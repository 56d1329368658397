"""data_header.py: the comment line on top of a data file, which says how the data
were made, and the reader of data files, which skips such lines."""
import csv
import datetime
import subprocess

RECORDINGS = "20 recordings of PyTorch 2.11 on an H200"


def replayed(tool, command, rests_on):
    """The line for data that fragsim computed: its version, the date, the command
    and the recordings."""
    version = subprocess.run([tool, "--version"], check=True, text=True,
                             capture_output=True).stdout.splitlines()[0]
    return (f"# {version}, {datetime.date.today()}; {command}; {rests_on}\n")


def measured(device, driver, date, command):
    """The line for data that were measured on a GPU."""
    return f"# device {device}, driver {driver}, {date}; {command}\n"


def read_csv(path):
    """(the text of all comment lines, the rows as dicts)"""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.readlines()
    head = " ".join(l[1:].strip() for l in lines if l.startswith("#"))
    return head, list(csv.DictReader(l for l in lines
                                     if not l.startswith("#")))


def write_csv(path, header, columns, rows):
    with open(path, "w", encoding="utf-8", newline="") as out:
        out.write(header)
        writer = csv.DictWriter(out, columns, extrasaction="ignore",
                                lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

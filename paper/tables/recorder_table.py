#!/usr/bin/env python3
"""recorder_table.py [FILE [DATA]]: makes a page of the results of
paper/gpu/recorder_programs.py.

Reads paper/data/recorder.csv, or DATA; its first line states where and when it
was made. Writes paper/pages/recorder.md, or FILE.
"""
import csv
import os
import sys

from places import DATA, PAGES



def number(text):
    return f"{int(text):,}" if text else "-"


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(PAGES, "recorder.md")
    data = sys.argv[2] if len(sys.argv) > 2 else os.path.join(DATA, "recorder.csv")
    with open(data, encoding="utf-8") as file:
        about = file.readline().strip("# \n")
        found = list(csv.DictReader(file))
    compared = [r for r in found if r["segments"]]
    lines = [
        "# The recorder and the allocators", "",
        f"{about}.", "",
        "Made by `paper/tables/recorder_table.py` from `paper/data/recorder.csv`. "
        "`paper/gpu/recorder_programs.py --fragsim build/fragsim` makes the data on a "
        "machine with a GPU; it runs the programs whose library is installed.", "",
        "Each program asks its allocator for a fixed series of blocks under "
        "`fragsim record`. It then asks the allocator what it took from the "
        "device: the size of every request, or the number of requests and the "
        "bytes that it holds now and held at most. The trace must say the same. "
        "Where nodes of a graph allocate, the driver says how much it holds for "
        "graphs; the trace has these bytes as blocks among others. "
        f"It does in **{sum(r['same'] == '1' for r in compared)} of "
        f"{len(compared)}** programs.", "",
        "| program | allocator | what it says by | requests, said | recorded | "
        "bytes at the end, said | recorded | most bytes, said | recorded | the "
        "same |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---|"]
    for r in compared:
        lines.append(
            f"| `{r['program']}` | {r['allocator']} | {r['says']} | "
            f"{number(r['said_segments'])} | {number(r['segments'])} | "
            f"{number(r['said_bytes'])} | {number(r['bytes'])} | "
            f"{number(r['said_peak_bytes'])} | {number(r['peak_bytes'])} | "
            f"{'yes' if r['same'] == '1' else 'no'} |")
    lines += ["", *(f"- `{r['program']}`: {r['difference']}" for r in found
                    if r["same"] != "1")]
    lines += ["", *(f"- `{r['program']}`, notes of the trace: {r['notes']}"
                    for r in compared if r["notes"])]
    text = "\n".join(lines).rstrip() + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()

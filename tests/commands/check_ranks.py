#!/usr/bin/env python3
"""check_ranks.py: the answers of `fragsim ranks` and `fragsim check` about
recordings of two GPUs agree with what PyTorch counted, with each other and with
`fragsim fit`.

  - the peaks requested of a rank and the imbalance are PyTorch's;
  - a rank dies at a capacity below what `fragsim fit` needs, and not above;
  - a file of two devices and its devices one by one have the same numbers;
  - FSDP's buffers, which are on streams of their own, are a small share;
  - the rules hold at the numbers that ranks prints, and break below them;
  - a monitor never reads more than the peak, and a faster one sees more.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, SHARED

MULTI = os.path.join(SHARED, "recorded", "multi")
failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def path(name):
    return os.path.join(MULTI, name + ".pickle.xz")


def ask(*args, code=0):
    run = subprocess.run([FRAGSIM, *args, "-q", "--json", "-"],
                         capture_output=True, text=True)
    expect(run.returncode == code, f"{args}: exit code {run.returncode}, "
           f"expected {code}: {run.stderr}")
    return json.loads(run.stdout)


def counted(name):
    """PyTorch's most requested bytes of each device."""
    with open(os.path.join(MULTI, name + ".json"), encoding="utf-8") as file:
        stats = json.load(file)["stats"]
    return [stats[device]["requested_bytes.all.peak"]
            for device in sorted(stats)]


def check_peaks(names):
    answer = ask("ranks", *map(path, names))
    peaks = [row["peak_requested_bytes"] for row in answer["results"]]
    wanted = [peak for name in names for peak in counted(name)]
    expect(peaks == wanted, f"{names}: peaks {peaks}, PyTorch's {wanted}")
    imbalance = answer["imbalance"]["peak_requested"]
    ratio = max(wanted) / (sum(wanted) / len(wanted))
    expect(abs(imbalance["max_to_mean_ratio"] - ratio) < 1e-9,
           f"{names}: imbalance {imbalance}, expected {ratio}")
    expect(imbalance["most_rank"] == wanted.index(max(wanted)),
           f"{names}: rank {imbalance['most_rank']} has the most")
    return answer


def check_deaths(names, most):
    fit = {row["device"]: row["fit_bytes"]
           for name in names for row in ask("fit", path(name))["results"]}
    below = ask("ranks", *map(path, names), "-c", str(fit[most] - 1))
    first = below["dies_first"]["at_capacity"]
    expect(first and below["results"][first["rank"]]["device"] == most and
           first["num_dying"] == 1, f"{names}: below the fit: {first}")
    above = ask("ranks", *map(path, names), "-c", str(fit[most]))
    expect(above["dies_first"]["at_capacity"] is None,
           f"{names}: a rank dies at the fit")


def check_rules(name, row):
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules")
        for less, code in ((0, 0), (1, 1)):
            with open(rules, "w", encoding="utf-8") as file:
                file.write(f"peak_reserved <= "
                           f"{row['peak_reserved_bytes'] - less}B\n"
                           f"steps >= {row['steps']}\nooms <= 0\n")
            answer = ask("check", path(name), "--device", str(row["device"]),
                         "-r", rules, code=code)
            expect(answer["passed"] == (code == 0), f"{name}: passed")
            expect([rule["holds"] for rule in answer["results"]] ==
                   [code == 0, True, True, True], f"{name}: {answer['results']}")


def main():
    if not os.path.isdir(MULTI) or not os.access(FRAGSIM, os.X_OK):
        print("check_ranks: no recordings or no tool; skipped")
        return 77
    ddp, fsdp = (["multi_" + kind + "_rank0", "multi_" + kind + "_rank1"]
                 for kind in ("ddp", "fsdp"))
    check_peaks(ddp)
    check_peaks(fsdp)
    check_deaths(fsdp, 1)
    both = check_peaks(["multi_dp"])["results"]
    for row in both:
        alone = ask("ranks", path("multi_dp"), "--device",
                    str(row["device"]))["results"][0]
        expect({**alone, "rank": row["rank"]} == row, f"multi_dp: {alone}")
        check_rules("multi_dp", row)
    for failure in failures:
        print(f"check_ranks: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

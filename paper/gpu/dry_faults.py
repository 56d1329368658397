#!/usr/bin/env python3
"""dry_faults.py: programs with a fault, and how they end on a GPU and under
`fragsim dry`.

    run NAME               one program, which ends by its fault
    measure -o FILE [--with COMMAND]
                           every program in a process of its own, as rows of CSV;
                           COMMAND, such as "fragsim dry --strict --gpu h200 --", is
                           put before the program's
    page                   paper/pages/dry_faults.md from data/dry_faults.csv, which
                           was measured with that COMMAND, and dry_faults_gpu.csv

The end of a program is its exit code, and the last line of its stderr that begins
with the name of an exception. Addresses and process numbers are replaced by #.
"""
import argparse
import concurrent.futures
import csv
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.abspath(__file__)
PAPER = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(PAPER, "tables"))
COLUMNS = ["program", "exit", "end"]
FAULTS = {}
ENDS = re.compile(r"(\w+\.)*\w*(Error|Exception)(: .*|$)")


def fault(function):
    FAULTS[function.__name__] = function
    return function


def torch_of():
    import torch
    torch.manual_seed(0)
    return torch


# ---- what the host finds ----

@fault
def wrong_shape():
    torch = torch_of()
    layer = torch.nn.Linear(64, 32).cuda()
    layer(torch.zeros(8, 63, device="cuda"))


@fault
def wrong_type():
    torch = torch_of()
    torch.zeros(8, 8, device="cuda") @ torch.zeros(8, 8, device="cuda").half()


@fault
def two_devices():
    torch = torch_of()
    torch.zeros(8, device="cuda") + torch.zeros(8)


@fault
def wrong_channels():
    torch = torch_of()
    torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(2, 4, 16, 16, device="cuda"))


@fault
def backward_twice():
    torch = torch_of()
    loss = (torch.zeros(8, device="cuda", requires_grad=True).exp()).sum()
    loss.backward()
    loss.backward()


@fault
def changed_in_place():
    torch = torch_of()
    leaf = torch.ones(8, device="cuda", requires_grad=True)
    out = leaf.exp()
    out += 1
    out.sum().backward()


@fault
def strange_state():
    torch = torch_of()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).cuda()
    state = model.state_dict()
    del state["1.bias"]
    model.load_state_dict(state)


@fault
def wrong_view():
    torch = torch_of()
    torch.zeros(8, 8, device="cuda").t().view(64)


@fault
def wrong_heads():
    torch = torch_of()
    torch.nn.MultiheadAttention(100, 8).cuda()


@fault
def no_flash():
    torch = torch_of()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    query = torch.zeros(1, 2, 16, 64, device="cuda")
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(query, query, query)


@fault
def numpy_of_device():
    torch = torch_of()
    torch.zeros(8, device="cuda").numpy()


@fault
def missing_file():
    torch = torch_of()
    torch.load("missing.pt", map_location="cuda")


@fault
def own_exit():
    torch = torch_of()
    torch.zeros(8, device="cuda")
    sys.exit(7)


@fault
def worker_dies():
    torch = torch_of()

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 5:
                raise KeyError("row 5 has no label")
            return torch.zeros(4)

    for rows in torch.utils.data.DataLoader(Rows(), num_workers=1, pin_memory=True):
        rows.cuda(non_blocking=True)


# ---- what the driver or the runtime finds ----

@fault
def no_such_device():
    torch = torch_of()
    torch.zeros(8, device="cuda:9")


@fault
def set_no_such_device():
    torch_of().cuda.set_device(9)


@fault
def forked():
    torch = torch_of()
    torch.zeros(8, device="cuda")
    child = os.fork()
    if child == 0:
        torch.zeros(8, device="cuda")
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@fault
def waits_in_capture():
    torch = torch_of()
    graph = torch.cuda.CUDAGraph()
    values = torch.zeros(8, device="cuda")
    with torch.cuda.graph(graph):
        values.add_(1)
        torch.cuda.synchronize()


@fault
def reads_in_capture():
    torch = torch_of()
    graph = torch.cuda.CUDAGraph()
    values = torch.zeros(8, device="cuda")
    with torch.cuda.graph(graph):
        values.sum().item()


@fault
def replays_nothing():
    torch_of().cuda.CUDAGraph().replay()


@fault
def no_second_gpu():
    torch = torch_of()
    torch.nn.DataParallel(torch.nn.Linear(4, 4), device_ids=[0, 1])


@fault
def early_time():
    torch = torch_of()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    first.elapsed_time(last)


# ---- memory ----

@fault
def too_large():
    torch = torch_of()
    torch.zeros(1 << 40, device="cuda")


@fault
def over_limit():
    torch = torch_of()
    torch.cuda.set_per_process_memory_fraction(0.05)
    held = [torch.zeros(1 << 28, device="cuda") for _ in range(64)]
    print(len(held))


@fault
def full_device():
    torch = torch_of()
    held = [torch.empty(10 << 30, dtype=torch.uint8, device="cuda")
            for _ in range(64)]
    print(len(held))


@fault
def full_in_backward():
    torch = torch_of()
    torch.cuda.set_per_process_memory_fraction(0.02)
    layers = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(6)])
    layers.cuda()(torch.zeros(4096, 8192, device="cuda")).sum().backward()


@fault
def no_size():
    torch_of().empty(-1, device="cuda")


@fault
def size_overflows():
    torch_of().empty(1 << 62, 8, device="cuda")


@fault
def bad_setting():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segment:True"
    torch_of().zeros(8, device="cuda")


@fault
def too_much_pinned():
    torch = torch_of()
    torch.empty(1 << 46, dtype=torch.uint8, pin_memory=True)


# ---- what only a kernel finds ----

@fault
def row_out_of_range():
    torch = torch_of()
    table = torch.nn.Embedding(16, 4).cuda()
    table(torch.full((4,), 99, device="cuda"))
    torch.cuda.synchronize()


@fault
def label_out_of_range():
    torch = torch_of()
    scores = torch.zeros(4, 8, device="cuda")
    torch.nn.functional.cross_entropy(scores, torch.arange(6, 10, device="cuda"))
    torch.cuda.synchronize()


@fault
def not_positive():
    torch = torch_of()
    torch.linalg.cholesky(-torch.eye(8, device="cuda"))


@fault
def loss_not_finite():
    torch = torch_of()
    loss = torch.full((1,), float("nan"), device="cuda")
    if not torch.isfinite(loss):
        raise FloatingPointError("loss is not finite")


# ---- one program and all ----

def plain(text):
    """The text without what differs in two runs on one machine."""
    text = re.sub(r"0x[0-9a-f]+|(?<=[Pp]rocess )\d+|(?<=pid[ =(])\d+", "#", text)
    return re.sub(r"/\S*/", "", text)


def ended(name, before):
    """The row of one program."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*before, sys.executable, HERE, "run", name],
                              cwd=folder, text=True, capture_output=True, check=False,
                              errors="replace", timeout=300)
    ends = [line for line in done.stderr.splitlines() if ENDS.match(line)]
    return {"program": name, "exit": done.returncode,
            "end": plain(ends[-1]) if ends else ""}


def measure(args):
    before = shlex.split(args.with_)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda name: ended(name, before), FAULTS))
    with open(args.output, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


HEAD = """# How programs with a fault end without a GPU

Made by `paper/gpu/dry_faults.py page`. Each program has one fault. It ran on an H200, and
under `fragsim dry --strict` on a machine without a GPU; its end is the exit code and the
last line that names an exception. *Same*: both are equal to the letter. *But memory*: they
differ in the numbers of bytes that an out-of-memory error lists, of other processes and of
the context.

- on the H200: {gpu}
- without a GPU: {dry}

| program | exit code on the H200 | its end | without a GPU |
|---|---:|---|---|
"""
TAIL = """
{same} of {all} end the same, {memory} more but for the bytes. The others are what only a
kernel or the host's memory finds: an index or a label out of range, a matrix that is not
positive definite, and pinned memory that the host has not. Kernels do nothing on the
stand-ins, so such a program runs on.
"""


def without_bytes(text):
    """The text of an error without the memory of this and other processes."""
    text = re.sub(r"(Process # has|Including non-PyTorch memory, this process has)"
                  r" [^.]*\.\d* \w+ memory in use\. ", "", text)
    return re.sub(r"(?<=of which )\S+ \S+", "#", text)


def verdict(gpu, dry):
    if gpu == dry:
        return "same"
    alike = without_bytes(gpu["end"]) == without_bytes(dry["end"])
    if alike and gpu["exit"] == dry["exit"]:
        return "but memory"
    return f"exit code {dry['exit']}" + (f", {dry['end']}" if dry["end"] else "")


def page(_):
    from data_header import read_csv
    from places import DATA, PAGES
    about, rows = {}, {}
    for side, name in (("gpu", "dry_faults_gpu.csv"), ("dry", "dry_faults.csv")):
        about[side], found = read_csv(os.path.join(DATA, name))
        rows[side] = {row["program"]: row for row in found}
    lines, verdicts = [], []
    for name, gpu in rows["gpu"].items():
        verdicts.append(verdict(gpu, rows["dry"][name]))
        end = gpu["end"] if len(gpu["end"]) < 100 else gpu["end"][:97] + "..."
        lines.append(f"| {name} | {gpu['exit']} | {end or '-'} | {verdicts[-1]} |\n")
    with open(os.path.join(PAGES, "dry_faults.md"), "w", encoding="utf-8") as file:
        file.write(HEAD.format(**about) + "".join(lines) + TAIL.format(
            same=verdicts.count("same"), memory=verdicts.count("but memory"),
            all=len(verdicts)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("run")
    one.add_argument("name", choices=sorted(FAULTS))
    every = commands.add_parser("measure")
    every.add_argument("-o", "--output", required=True)
    every.add_argument("--with", dest="with_", default="")
    every.add_argument("-j", "--jobs", type=int, default=2)
    commands.add_parser("page")
    args = parser.parse_args()
    if args.command == "run":
        FAULTS[args.name]()
    else:
        {"measure": measure, "page": page}[args.command](args)


main()

#!/usr/bin/env python3
"""programs.py: programs that change the settings of PyTorch's allocator in mid-run,
recorded in two ways. For a GPU (a few seconds and less than 12 GiB each), or for
`fragsim dry`; PyTorch 2.11 or later.

usage: programs.py FOLDER [NAME...]

Each program, all without names, runs in a process of its own, which writes
FOLDER/NAME.rank0.exit.pickle by traces/pytorch_record.py, with the changes and with
counters beside it, and FOLDER/NAME.plain.pickle, what PyTorch alone records of the
same run, from which the changes have to be found. PROGRAMS has of each the number of
changes, and of those that have an effect on what is recorded.
"""
import os
import pickle
import subprocess
import sys

import torch
from torch import nn

TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..",
                      "traces")
MIB = 1 << 20
WORDS, WIDTH, LENGTH = 8192, 512, 256


def change(text):
    torch._C._accelerator_setAllocatorSettings(text)


def limit(size):
    """Sets the limit of the process in bytes; None: none."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(
        1.0 if size is None else size / total)


def block(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def model(layers=6):
    layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True)
    return nn.Sequential(nn.Embedding(WORDS, WIDTH),
                         nn.TransformerEncoder(layer, layers,
                                               enable_nested_tensor=False),
                         nn.Linear(WIDTH, WORDS)).cuda()


def tokens(batch, length=LENGTH):
    return torch.randint(0, WORDS, (batch, length), device="cuda")


def train(net, optimizer, steps, batch=8):
    for step in range(steps):
        words = tokens(batch, LENGTH - 16 * (step % 3))
        loss = nn.functional.cross_entropy(net(words).flatten(0, 1),
                                           words.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def generate(net, batch=16, steps=24):
    """The cache of keys grows by pieces of several sizes."""
    net.eval()
    words, cache = tokens(batch, 8), []
    for step in range(steps):
        logits = net(words)
        cache.append(block(3 + step % 5 * 4))
        words = torch.cat([words, logits[:, -1:].argmax(-1)], 1)
    net.train()


def adam(net):
    return torch.optim.AdamW(net.parameters(), lr=1e-4)


def load_and_profile():
    """As an inference server: weights and a profiling pass without splits of large
    blocks."""
    change("max_split_size_mb:20")
    staged = [block(mib) for mib in (24, 96, 64, 33, 48)]
    net = model()
    del staged[::2]
    staged += [block(mib) for mib in (12, 30, 9, 80)]
    del staged
    generate(net, 32, 4)
    torch.cuda.empty_cache()
    change("")
    generate(net)
    cache = [block(40) for _ in range(8)]
    generate(net, 24)
    del cache


def train_and_generate():
    """As a reinforcement loop: expandable segments for training only."""
    net = model()
    optimizer = adam(net)
    for _ in range(3):
        change("expandable_segments:False")
        generate(net)
        torch.cuda.empty_cache()
        change("expandable_segments:True")
        train(net, optimizer, 3)
        torch.cuda.empty_cache()


def load_then_train():
    """Both."""
    change("max_split_size_mb:20")
    staged = [block(mib) for mib in (96, 64, 33)]
    net = model()
    del staged
    change("")
    optimizer = adam(net)
    for _ in range(2):
        change("expandable_segments:True")
        train(net, optimizer, 2)
        change("expandable_segments:False")
        generate(net)


def fraction_lowered():
    """A second process needs room: the limit is lowered, a step fails and is run
    with half the batch; then the limit is taken back."""
    net = model()
    optimizer = adam(net)
    train(net, optimizer, 2, 16)
    limit(torch.cuda.memory_allocated() + 900 * MIB)
    batch = 32
    while batch:
        try:
            train(net, optimizer, 1, batch)
            break
        except torch.OutOfMemoryError:
            optimizer.zero_grad(set_to_none=True)
            batch //= 2
    limit(None)
    train(net, optimizer, 2, 16)


def without_effect():
    """No request is as large, and nothing is collected without a limit."""
    net = model(2)
    optimizer = adam(net)
    train(net, optimizer, 2, 4)
    change("garbage_collection_threshold:0.9")
    train(net, optimizer, 2, 4)
    change("max_split_size_mb:200000")
    train(net, optimizer, 2, 4)


def rounding():
    net = model(2)
    optimizer = adam(net)
    train(net, optimizer, 3)
    change("roundup_power2_divisions:4")
    train(net, optimizer, 3)
    change("roundup_power2_divisions:[1:8,16:2,>:1]")
    train(net, optimizer, 3)


def garbage_late():
    """Garbage is collected from the middle on."""
    net = model(4)
    optimizer = adam(net)
    limit(5000 * MIB)
    train(net, optimizer, 2)
    change("garbage_collection_threshold:0.3")
    for mib in range(90, 300, 30):
        block(mib)
        train(net, optimizer, 1)


def pinned():
    """Settings of pinned memory, and those of the device as they were."""
    change("pinned_use_background_threads:True")
    net = model(2)
    optimizer = adam(net)
    host = [torch.empty(n * MIB, dtype=torch.uint8, pin_memory=True)
            for n in (1, 3, 8)]
    train(net, optimizer, 2)
    change("pinned_num_register_threads:4,pinned_use_cuda_host_register:True")
    host += [torch.empty(n * MIB, dtype=torch.uint8, pin_memory=True)
             for n in (2, 5)]
    device = [one.cuda(non_blocking=True) for one in host]
    train(net, optimizer, 2)
    del device


def rescue():
    """Out of memory by fragmentation: once more, with expandable segments."""
    limit(1200 * MIB)
    held = [block(5) for _ in range(200)]
    del held[::2]
    try:
        held.append(block(400))
    except torch.OutOfMemoryError:
        held.clear()
        torch.cuda.empty_cache()
        change("expandable_segments:True")
        held += [block(5) for _ in range(150)]
        del held[20:110]
        held.append(block(400))
    held += [block(mib) for mib in (30, 70, 20)]


def two_streams():
    """Large activations on a side stream, without splits for a while."""
    side, net = torch.cuda.Stream(), model(3)
    for text in "max_split_size_mb:64", "", "max_split_size_mb:32", "":
        with torch.cuda.stream(side):
            large = [block(mib) for mib in (70, 130, 40)]
            del large[1]
        generate(net, 24, 6)
        change(text)
        with torch.cuda.stream(side):
            large += [block(mib) for mib in (20, 65, 110)]
        del large
        torch.cuda.synchronize()


# name: changes after the first request, and those with an effect
PROGRAMS = {
    load_and_profile: (1, 1), train_and_generate: (6, 6), load_then_train: (5, 5),
    fraction_lowered: (2, 2), without_effect: (2, 0), rounding: (2, 2),
    garbage_late: (2, 2), pinned: (1, 0), rescue: (1, 1), two_streams: (4, 4)}


def record(program, folder):
    plain = torch.cuda.memory._snapshot
    sys.path.insert(0, TRACES)
    from pytorch_record import Recording
    path = os.path.join(folder, program.__name__)
    torch.manual_seed(1)
    with Recording(path, stacks="python"):
        program()
        torch.cuda.synchronize()
        taken = plain()
        for key in "fragsim_start", "fragsim_settings":  # under `fragsim dry`
            taken.pop(key, None)
        with open(path + ".plain.pickle", "wb") as file:
            pickle.dump(taken, file)


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    known = {program.__name__: program for program in PROGRAMS}
    if len(names) == 1:
        record(known[names[0]], folder)
        return
    for name in names or known:
        subprocess.run([sys.executable, __file__, folder, name], check=True)


if __name__ == "__main__":
    main()

"""Tensors in other processes. usage: ipc.py SENDER [RECEIVER]; each is `native`
or a policy.

With one side, prints what another process would receive of a segment, without
addresses, or the refusal. With two sides, a second process reads and writes
tensors of the first one, and both look for wrong bytes and for what is left.
Exit code 0: all is right.
"""
import gc
import os
import resource
import sys

import torch
import torch.multiprocessing as mp

MIB = 1 << 20
SIZES = (100, 3 * MIB, 50 * MIB + 7, 1000)


def use(side):
    if side != "native":
        import fragsim_torch
        assert fragsim_torch.use(side) == "class"


def files():
    return len(os.listdir("/proc/self/fd"))


def holds(tensors, first):
    return all(bool((t.cpu() == first + i).all())
               for i, t in enumerate(tensors))


def receive(side, data, answers):
    use(side)
    torch.ones(MIB, device="cuda")
    assert data.get(timeout=60) == "go"
    before = files()
    got, again = data.get(timeout=60)
    right = holds(got, 1) and holds(again, 2)
    same = got[1].data_ptr() == again[0].data_ptr()
    for i, tensor in enumerate(got):
        tensor.copy_(torch.full(tensor.shape, 100 + i, dtype=torch.uint8))
    right = right and bool((again[0].cpu() == 101).all())
    torch.cuda.synchronize()
    del got, again, tensor
    gc.collect()
    with open("/proc/self/maps", encoding="utf-8") as file:
        left = file.read().count("/memfd:fragsim_dry_")
    answers.put((right, same, left, files() - before))


def send(side, other):
    use(side)
    context = mp.get_context("spawn")
    data, answers = context.Queue(), context.Queue()
    process = context.Process(target=receive, args=(other, data, answers))
    process.start()
    tensors = [torch.full((n,), i + 1, dtype=torch.uint8).cuda()
               for i, n in enumerate(SIZES)]
    around = [torch.zeros(MIB, device="cuda") for _ in range(20)]
    data.put("go")
    before = files()
    data.put((tensors, [tensors[1]]))
    # While the receiver reads, the memory around the tensors comes and goes.
    del around[::2]
    torch.cuda.empty_cache()
    around += [torch.zeros(3 * MIB, device="cuda") for _ in range(5)]
    right, same, left, more = answers.get(timeout=100)
    process.join(100)
    assert process.exitcode == 0 and right, "wrong bytes in the receiver"
    assert same, "the receiver mapped one tensor twice"
    assert left == 0 and more <= 0, (left, more)
    assert holds(tensors, 100), "wrong bytes in the sender"
    del tensors, around
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0
    # The queues, and the file of the reference counters
    assert files() - before <= 4, files() - before
    if side != "native":
        refused()


def refused():
    """Too few files: the words say so, no file is lost, and the program goes
    on. The stand-in keeps one file of its own for each map."""
    tensor = torch.full((120 * MIB,), 7, dtype=torch.uint8).cuda()
    before, most = files(), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 8, most[1]))
    words = ""
    try:
        tensor.untyped_storage()._share_cuda_()
    except RuntimeError as error:
        words = str(error)
    resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert "ulimit -n" in words, words
    assert files() <= before + 5, (files(), before)
    tensor.untyped_storage()._share_cuda_()
    assert bool((tensor.cpu() == 7).all())


def describe(side):
    use(side)
    a = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    b = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    try:
        shared = b.untyped_storage()._share_cuda_()
        # device, handle, bytes, offset; the stand-in's handle begins with the
        # process and the address
        print(shared[0], len(shared[1]), shared[1][:2],
              shared[1][18:].count(0), shared[2], shared[3])
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    assert a.numel() == 3 * MIB


if __name__ == "__main__":
    if sys.argv[2:]:
        send(*sys.argv[1:])
    else:
        describe(sys.argv[1])

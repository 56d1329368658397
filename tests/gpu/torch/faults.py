"""A program that goes on after every fault. usage: faults.py POLICY [K:CODE...]

Without K, one run without a fault; prints the number of exceptions that it saw.
With them, one process for each: the driver's K-th call that can fail does fail
with CODE. Each process is forked after `import torch`, which takes longer than
the program itself. Prints what each process that found something wrong said.

The contents of each live block are compared after each step. At the end, all
memory must return to the driver, unless the device failed for good.
"""
import os
import signal
import sys
import tempfile

import torch

import fragsim_torch

MIB = 1 << 20
SECONDS = 100  # for one process
seen = 0


def attempt(what, *args):
    """Only these two exceptions may reach a program."""
    global seen
    try:
        return what(*args)
    except (torch.OutOfMemoryError, RuntimeError):
        seen += 1
        return None


def wrong(words):
    print(words)
    sys.stdout.flush()
    os._exit(3)


def copied(data, stream):
    with torch.cuda.stream(stream):
        return data.to("cuda")


def check(live):
    for block, data in live:
        back = attempt(block.cpu)
        if back is not None and not torch.equal(back, data):
            wrong("wrong byte")


def check_end():
    """Nothing is lost, if the device still serves requests."""
    for act in 2 * (torch.cuda.synchronize, torch.cuda.empty_cache):
        attempt(act)  # the fault may come as late as this
    for _ in range(2):
        served = attempt(lambda: torch.empty(MIB, device="cuda")) is not None
    if not served:
        return
    for _ in range(2):  # the fault may come in the first of them
        attempt(torch.cuda.empty_cache)
    left = (torch.cuda.memory_allocated(), torch.cuda.memory_reserved(),
            fragsim_torch.reserved())
    if left != (0, 0, 0):
        wrong(f"allocated, reserved, reserved by the policy at the end: {left}")


def program(policy):
    fragsim_torch.use(policy)
    try:
        torch.cuda.init()
    except (RuntimeError, torch.cuda.DeferredCudaCallError) as error:
        print(error)  # PyTorch cannot use the device after that
        return
    streams = [s for s in (attempt(torch.cuda.default_stream),
                           attempt(torch.cuda.Stream)) if s is not None]
    live = []
    for step in range(24 if streams else 0):
        size = (step * 7919 * 131) % (5 * MIB) + 1
        data = torch.full((size,), step, dtype=torch.uint8)
        block = attempt(copied, data, streams[step % len(streams)])
        if block is not None:
            live.append((block, data))
        del block
        if step % 3 == 2 and live:
            attempt(live[0][0].record_stream, streams[-1])
            live.pop(0)
        if step % 8 == 7:
            attempt(torch.cuda.empty_cache)
            attempt(torch.cuda.memory_stats)
            attempt(torch.cuda.memory._snapshot)
        if step == 12:
            attempt(lambda: torch.empty(1 << 40, device="cuda"))
        if step % 4 == 0:
            check(live)
    attempt(torch.cuda.synchronize)
    check(live)
    live.clear()
    check_end()
    print(seen)


def fork(policy, at, code):
    """Runs the program in a child; returns what is wrong, or ""."""
    with tempfile.TemporaryFile("w+") as output:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            signal.alarm(SECONDS)
            for number in (1, 2):
                os.dup2(output.fileno(), number)
            os.environ.update(FRAGSIM_DRY_FAIL_AT=at, FRAGSIM_DRY_FAIL_WITH=code)
            program(policy)
            sys.stdout.flush()
            os._exit(0)  # Python's own end takes longer than the program
        status = os.waitpid(child, 0)[1]
        output.seek(0)
        return f"exit {os.waitstatus_to_exitcode(status)}: " \
            f"{output.read()[-800:]}" if status else ""


def main():
    torch.set_num_threads(1)
    fragsim_torch.build()
    if not sys.argv[2:]:
        program(sys.argv[1])
    for fault in sys.argv[2:]:
        words = fork(sys.argv[1], *fault.split(":"))
        if words:
            print(f"call {fault}: {words}", flush=True)


main()

"""What the programs of this folder have in common: each file has functions, and
`python FILE NAME` runs the one of that name. One that the release of PyTorch
cannot run raises Absent, and the process ends with ABSENT."""
import sys

ABSENT = 78  # exit code: the release has no such interface


class Absent(Exception):
    """The release of PyTorch, or a package beside it, lacks what is called."""


def needs(owner, *names):
    for name in names:
        if not hasattr(owner, name):
            raise Absent(f"{owner.__name__} has no {name}")


def train(model, batches, loss_of, optimizer=None, steps=3):
    """Steps of an optimizer; batches() makes the input of one."""
    import torch
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, batches())
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


def main(programs):
    """Runs the function that the command line names."""
    try:
        programs[sys.argv[1]]()
    except Absent as why:
        print("not in this release:", why)
        sys.exit(ABSENT)

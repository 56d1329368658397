"""Programs that use the device and its allocator directly (common.py)."""
import os

if __name__ == "__main__":
    import sys
    if sys.argv[1] == "expandable":  # before PyTorch is imported
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
from torch import nn

import common

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def multilayer():
    return nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()


def rows():
    return torch.randn(128, 256, device="cuda")


def square(model, x):
    return model(x).float().pow(2).mean()


def compile_mlp():
    if triton is None:
        raise common.Absent("no triton")
    common.train(torch.compile(multilayer()), rows, square)


if triton is not None:
    @triton.jit
    def add_kernel(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n),
                 mask=at < n)


def triton_kernel():
    if triton is None:
        raise common.Absent("no triton")
    x = torch.randn(1 << 20, device="cuda")
    y, out = torch.randn_like(x), torch.empty_like(x)
    add_kernel[(1024,)](x, y, out, x.numel(), block=1024)
    # Triton accepts pinned memory, too.
    add_kernel[(1,)](torch.ones(1024).pin_memory(), y, out, 1024, block=1024)
    torch.cuda.synchronize()


def cuda_graphs():
    model, x = multilayer(), rows()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            square(model, x).backward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        square(model, x).backward()
    for _ in range(3):
        graph.replay()
    called = torch.cuda.make_graphed_callables(multilayer(), (rows(),))
    called(rows()).sum().backward()


def einsum_linalg():
    a = torch.randn(8, 128, 128, device="cuda", requires_grad=True)
    b = torch.einsum("bij,bkj->bik", a, a) + 128 * torch.eye(128, device="cuda")
    linalg = torch.linalg
    loss = linalg.cholesky(b).sum() + linalg.solve(b, a).sum() + \
        linalg.inv(b).sum() + linalg.slogdet(b)[1].sum()
    loss.backward()
    linalg.eigh(b.detach())
    linalg.svd(a.detach()[0])
    linalg.qr(a.detach())
    linalg.lstsq(b.detach(), a.detach())


def fft():
    x = torch.randn(32, 4096, device="cuda", requires_grad=True)
    torch.fft.irfft(torch.fft.rfft(x)).sum().backward()
    torch.fft.ifft2(torch.fft.fft2(torch.randn(4, 256, 256, device="cuda")))
    window = torch.hann_window(400, device="cuda")
    spectrum = torch.stft(x, 400, 160, window=window, return_complex=True)
    torch.istft(spectrum, 400, 160, window=window)


def sparse():
    index = torch.randint(512, (2, 4000), device="cuda")
    a = torch.sparse_coo_tensor(index, torch.randn(4000, device="cuda"),
                                (512, 512)).coalesce()
    b = torch.randn(512, 64, device="cuda", requires_grad=True)
    torch.sparse.mm(a, b).sum().backward()
    (a.to_sparse_csr() @ b.detach()).sum()
    bag = nn.EmbeddingBag(1000, 64, sparse=True).cuda()
    optimizer = torch.optim.SparseAdam(list(bag.parameters()))
    bag(torch.randint(1000, (32, 10), device="cuda")).sum().backward()
    optimizer.step()


def mem_pool():
    common.needs(torch.cuda, "MemPool", "use_mem_pool")
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = torch.randn(1 << 20, device="cuda")
    other = torch.randn(1 << 20, device="cuda")
    del kept, other, pool
    torch.cuda.empty_cache()


def streams():
    first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    for _ in range(3):
        with torch.cuda.stream(first):
            x = rows()
            done = torch.cuda.Event(enable_timing=True)
            done.record(first)
        with torch.cuda.stream(second):
            second.wait_event(done)
            y = x @ x.t()
            x.record_stream(second)
        del x
        done.synchronize()
    torch.cuda.synchronize()
    return y.cpu()


def expandable():
    model = multilayer()
    for size in (64, 256, 1024):
        common.train(model, lambda: torch.randn(size, 256, device="cuda"), square,
                     steps=1)
        torch.cuda.empty_cache()
    torch.cuda.memory_stats()


def foreach_optimizers():
    for kind, options in ((torch.optim.AdamW, {"foreach": True}),
                          (torch.optim.AdamW, {"fused": True}),
                          (torch.optim.Adam, {"capturable": True}),
                          (torch.optim.SGD, {"foreach": True, "momentum": 0.9}),
                          (torch.optim.Adagrad, {"foreach": True}),
                          (torch.optim.RMSprop, {"foreach": True})):
        model = multilayer()
        common.train(model, rows, square,
                     kind(model.parameters(), lr=1e-3, **options), steps=2)


if __name__ == "__main__":
    common.main(globals())

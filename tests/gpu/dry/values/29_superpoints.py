"""29_superpoints.py: points in cells: counts and the fullest cell."""
import torch, torch.nn as nn
torch.manual_seed(39)
d = "cuda"
lin = nn.Linear(8, 200).to(d); opt = torch.optim.Adam(lin.parameters())
for step in range(5):
    p = torch.rand(80000, 3, device=d); cell = (p * (20 + 4 * step)).long()
    code = cell[:, 0] * 10000 + cell[:, 1] * 100 + cell[:, 2]
    order = code.sort().indices; code = code[order]
    start = torch.cat((torch.ones(1, dtype=torch.bool, device=d), code[1:] != code[:-1]))
    ids = start.cumsum(0) - 1; n = int(ids[-1]) + 1
    counts = torch.bincount(ids); most = counts.max().item()
    grid = torch.zeros(n, most, 8, device=d); slot = torch.arange(80000, device=d) - start.nonzero()[:, 0][ids]
    grid[ids, slot] = torch.rand(80000, 8, device=d)
    lin(grid).amax(1).pow(2).mean().backward(); opt.step(); opt.zero_grad()
    print(n, most)

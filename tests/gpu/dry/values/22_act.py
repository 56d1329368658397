"""22_act.py: adaptive computation: steps until all rows halt."""
import torch, torch.nn as nn
torch.manual_seed(32)
d = "cuda"
cell, halt = nn.Sequential(nn.Linear(400, 1600), nn.Tanh(), nn.Linear(1600, 400)).to(d), nn.Linear(400, 1).to(d)
opt = torch.optim.Adam([*cell.parameters(), *halt.parameters()], 1e-3)
for step in range(8):
    h = torch.randn(3000, 400, device=d); left = torch.ones(3000, device=d); out = 0
    for n in range(12):
        h = h + cell(h); p = halt(h).sigmoid()[:, 0] * left
        out = out + p[:, None] * h; left = left - p
        if left.max().item() < 0.05: break
    (out.pow(2).mean() + left.mean()).backward(); opt.step(); opt.zero_grad()
    print(n)

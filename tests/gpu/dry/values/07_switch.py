"""07_switch.py: a Switch layer in training: each token goes to one expert, with a capacity."""
import torch, torch.nn as nn
torch.manual_seed(17)
d = "cuda"
D, E = 384, 16
class Switch(nn.Module):
    def __init__(s):
        super().__init__(); s.r = nn.Linear(D, E); s.a = nn.Parameter(torch.randn(E, D, 4 * D) * 0.02); s.b = nn.Parameter(torch.randn(E, 4 * D, D) * 0.02)
    def forward(s, x):
        p, i = s.r(x).softmax(-1).max(-1)
        out = torch.zeros_like(x); cap = int(1.25 * len(x) / E)
        for e in range(E):
            t = (i == e).nonzero().flatten()[:cap]
            out[t] = (x[t] @ s.a[e]).relu() @ s.b[e] * p[t, None]
        return x + out
net = nn.Sequential(*[m for _ in range(3) for m in (nn.LayerNorm(D), Switch())]).to(d)
opt = torch.optim.Adam(net.parameters(), 3e-4)
for step in range(6):
    x = torch.randn(6000, D, device=d)
    loss = (net(x) - x.flip(0)).pow(2).mean(); loss.backward(); opt.step(); opt.zero_grad()

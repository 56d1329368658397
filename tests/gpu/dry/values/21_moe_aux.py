"""21_moe_aux.py: a mixture of experts in training with a loss that balances it."""
import torch, torch.nn as nn
torch.manual_seed(31)
d = "cuda"
D, E = 320, 12
class Moe(nn.Module):
    def __init__(s):
        super().__init__(); s.r = nn.Linear(D, E, bias=False); s.e = nn.ModuleList([nn.Sequential(nn.Linear(D, 3 * D), nn.GELU(), nn.Linear(3 * D, D)) for _ in range(E)])
    def forward(s, x):
        p = s.r(x).softmax(-1); w, i = p.topk(2); out = torch.zeros_like(x)
        for e in range(E):
            t, k = (i == e).nonzero(as_tuple=True)
            if len(t): out = out.index_add(0, t, s.e[e](x[t]) * w[t, k, None])
        s.aux = (p.mean(0) ** 2).sum() * E
        return x + out
norms, moes = nn.ModuleList([nn.LayerNorm(D) for _ in range(4)]).to(d), nn.ModuleList([Moe() for _ in range(4)]).to(d)
opt = torch.optim.AdamW([*norms.parameters(), *moes.parameters()], 5e-4)
for step in range(6):
    x = torch.randn(5000, D, device=d); y = x
    for n, m in zip(norms, moes): y = m(n(y))
    ((y - x.roll(1, 1)).pow(2).mean() + 0.01 * sum(m.aux for m in moes)).backward(); opt.step(); opt.zero_grad()

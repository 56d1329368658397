"""08_moe_infer.py: a mixture of experts without training."""
import torch, torch.nn as nn
torch.manual_seed(18)
d = "cuda"
D, E = 256, 8
emb = nn.Embedding(1000, D).to(d)
routers = nn.ModuleList([nn.Linear(D, E, bias=False) for _ in range(4)]).to(d)
experts = nn.ModuleList([nn.ModuleList([nn.Sequential(nn.Linear(D, 3 * D), nn.SiLU(), nn.Linear(3 * D, D)) for _ in range(E)]) for _ in range(4)]).to(d)
norm = nn.LayerNorm(D).to(d)
with torch.no_grad():
    for batch in range(4):
        x = emb(torch.randint(0, 1000, (3000 + 700 * batch,), device=d))
        for r, ex in zip(routers, experts):
            h = norm(x); w, i = r(h).topk(2); w = w.softmax(-1); out = torch.zeros_like(x)
            for e in range(E):
                t, k = torch.where(i == e)
                out.index_add_(0, t, ex[e](h[t]) * w[t, k, None])
            x = x + out

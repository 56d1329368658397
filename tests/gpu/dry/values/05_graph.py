"""05_graph.py: sampling of neighbours in a graph by masks."""
import torch, torch.nn as nn
torch.manual_seed(15)
d = "cuda"
N = 100000
src, dst = torch.randint(0, N, (2, 1000000), device=d)
x = torch.randn(N, 64, device=d)
l1, l2 = nn.Linear(64, 256).to(d), nn.Linear(256, 64).to(d)
opt = torch.optim.Adam(list(l1.parameters()) + list(l2.parameters()))
for step in range(6):
    seed = torch.randint(0, N, (1500,), device=d)
    want = torch.zeros(N, dtype=torch.bool, device=d); want[seed] = True
    for hop in range(2):
        e = want[dst]
        want[src[e]] = True
    e = want[src] & want[dst]
    nodes = want.nonzero().flatten()
    where = torch.full((N,), -1, device=d); where[nodes] = torch.arange(len(nodes), device=d)
    s, t = where[src[e]], where[dst[e]]
    h = l1(x[nodes]).relu()
    h = torch.zeros_like(h).index_add(0, t, h[s])
    l2(h).pow(2).mean().backward()
    opt.step(); opt.zero_grad()
    print(len(nodes), len(s))

"""19_mining.py: contrastive learning on the pairs beyond a threshold."""
import torch, torch.nn as nn
torch.manual_seed(29)
d = "cuda"
net = nn.Sequential(nn.Linear(300, 1024), nn.ReLU(), nn.Linear(1024, 128)).to(d); opt = torch.optim.SGD(net.parameters(), 0.05)
for step in range(8):
    x = torch.randn(1500, 300, device=d); y = torch.randint(0, 30, (1500,), device=d)
    z = nn.functional.normalize(net(x), dim=1); s = z @ z.T
    same = y[:, None] == y[None]
    pos = (same & (s < 0.9)).nonzero(); neg = (~same & (s > 0.25)).nonzero()
    loss = (1 - s[pos[:, 0], pos[:, 1]]).mean() + s[neg[:, 0], neg[:, 1]].sum() / 1e4
    loss.backward(); opt.step(); opt.zero_grad()
    print(len(pos), len(neg))

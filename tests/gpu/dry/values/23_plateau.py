"""23_plateau.py: branches that are added when the loss stops to fall."""
import torch, torch.nn as nn
torch.manual_seed(33)
d = "cuda"
net = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 128)).to(d)
opt = torch.optim.Adam(net.parameters(), 3e-3); extra, last = [], None
for step in range(60):
    x = torch.randn(4096, 128, device=d); y = net(x)
    for m in extra: y = y + m(y)
    loss = (y - x.sin()).pow(2).mean(); loss.backward(); opt.step(); opt.zero_grad()
    now = loss.item()
    if last is not None and now > 0.98 * last and len(extra) < 10:
        extra.append(nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 128)).to(d)); opt.add_param_group({"params": extra[-1].parameters()})
    last = now
print(len(extra))

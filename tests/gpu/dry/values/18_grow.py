"""18_grow.py: a batch that doubles when the loss falls."""
import torch, torch.nn as nn
torch.manual_seed(28)
d = "cuda"
net = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(d)
opt = torch.optim.Adam(net.parameters(), 1e-3); batch, best = 512, 1e9
for step in range(40):
    x = torch.randn(batch, 256, device=d)
    loss = (net(x) - x).pow(2).mean(); loss.backward(); opt.step(); opt.zero_grad()
    now = loss.item()
    if now < 0.9 * best and batch < 32768: batch, best = batch * 2, now
print(batch)

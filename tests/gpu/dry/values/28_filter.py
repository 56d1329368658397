"""28_filter.py: training on the rows whose loss is above the mean."""
import torch, torch.nn as nn
torch.manual_seed(38)
d = "cuda"
net = nn.Sequential(nn.Linear(200, 1500), nn.ReLU(), nn.Linear(1500, 1500), nn.ReLU(), nn.Linear(1500, 10)).to(d); opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(10):
    x, y = torch.randn(6000, 200, device=d), torch.randint(0, 10, (6000,), device=d)
    with torch.no_grad(): hard = nn.functional.cross_entropy(net(x), y, reduction="none")
    keep = hard > hard.mean()
    nn.functional.cross_entropy(net(x[keep]), y[keep]).backward(); opt.step(); opt.zero_grad()
    print(keep.sum().item())

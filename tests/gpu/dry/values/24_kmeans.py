"""24_kmeans.py: k-means until the centres rest."""
import torch
torch.manual_seed(34)
d = "cuda"
x = torch.randn(60000, 48, device=d) + torch.randint(0, 6, (60000, 1), device=d) * 2.0
c = x[torch.randint(0, 60000, (32,), device=d)]
for step in range(40):
    which = torch.cdist(x, c).argmin(1)
    new = torch.stack([x[which == k].mean(0) for k in range(32)])
    moved = (new - c).norm(dim=1).max().item(); c = new
    if moved < 0.02: break
sizes = [torch.cov(x[which == k].T) for k in range(32)]
print(step)

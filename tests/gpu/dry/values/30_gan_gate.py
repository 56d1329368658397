"""30_gan_gate.py: a GAN whose generator is trained only below a loss."""
import torch, torch.nn as nn
torch.manual_seed(40)
d = "cuda"
g = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 784)).to(d); c = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(d)
og, oc = torch.optim.Adam(g.parameters(), 2e-4), torch.optim.Adam(c.parameters(), 2e-4); bce = nn.functional.binary_cross_entropy_with_logits
for step in range(30):
    real, fake = torch.randn(8192, 784, device=d), g(torch.randn(8192, 64, device=d))
    loss = bce(c(real), torch.ones(8192, 1, device=d)) + bce(c(fake.detach()), torch.zeros(8192, 1, device=d))
    loss.backward(); oc.step(); oc.zero_grad()
    if loss.item() < 1.2:
        bce(c(fake), torch.ones(8192, 1, device=d)).backward(); og.step(); og.zero_grad()

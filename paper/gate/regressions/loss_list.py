"""JIA-Lab-research/DecoupleNet#3: the losses are kept as tensors, 512 bytes a step on
the GPU."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
losses = []

for _ in range(12):
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()  # grows
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())  # before
    losses.append(loss.detach())  # after

"""mosaicml/composer#1941: the moving average holds a second copy of the weights."""
import copy

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
average = copy.deepcopy(model).requires_grad_(False)


@torch.no_grad()
def update_average():
    kept = {name: p.clone() for name, p in model.named_parameters()}  # after
    for mean, p in zip(average.parameters(), model.parameters()):
        mean.lerp_(p, 0.01)
    return kept  # after


for _ in range(8):
    loss = model(torch.randn(64, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    weights = update_average()
    optimizer.zero_grad()

"""ecmwf/anemoi-core#134: autocast keeps a copy of every weight that wants a
gradient, also under no_grad."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(12)]).cuda()
model.requires_grad_(False)  # before


def forecast(steps):
    x = torch.randn(16, 2048, device="cuda")
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        for _ in range(steps):
            x = model(x)  # grows
    return x


for _ in range(8):
    forecast(3)

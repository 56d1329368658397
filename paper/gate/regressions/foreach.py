"""pytorch/pytorch#97712: the optimizer handles all tensors at once, with
temporaries of the size of all of them."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(16)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                              foreach=False,  # before
                              )

for _ in range(8):
    loss = model(torch.randn(32, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()  # grows
    optimizer.zero_grad()

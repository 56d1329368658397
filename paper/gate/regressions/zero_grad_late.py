"""karpathy/nanoGPT#71: the gradients of the last step live until the backward pass
of the next one."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.GELU(),
                                      nn.Linear(4096, 1024)) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)

for _ in range(8):
    output = model(torch.randn(2048, 1024, device="cuda"))
    loss = output.square().mean()
    optimizer.zero_grad()  # after
    loss.backward()  # grows
    optimizer.step()
    optimizer.zero_grad()  # before
    del output, loss

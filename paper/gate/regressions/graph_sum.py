"""pytorch/pytorch#1840: the losses are summed with their graphs."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.ReLU(),
                                      nn.Linear(2048, 512)) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def validate(batches):
    total = 0
    for _ in range(batches):
        score = model(torch.randn(256, 512, device="cuda")).square().mean()  # grows
        total += score.item()  # before
        total += score  # after
    return total / batches


for _ in range(8):
    loss = model(torch.randn(256, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del loss
    validate(4)

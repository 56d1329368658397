"""MIC-DKFZ/nnUNet#1630, pytorch/pytorch#92731: gradients are set to zero and stay,
where they were None during the forward pass."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU())
                        for _ in range(8)], nn.Flatten(),
                      nn.Linear(64 * 32 * 32, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)


def step(images):
    loss = model(images).square().mean()
    loss.backward()  # grows
    optimizer.step()
    optimizer.zero_grad()  # before
    optimizer.zero_grad(set_to_none=False)  # after


for _ in range(8):
    step(torch.randn(32, 64, 32, 32, device="cuda"))

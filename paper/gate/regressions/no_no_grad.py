"""ludwig-ai/ludwig#1674: the evaluation runs with gradients."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.GELU(),
                                      nn.Linear(2048, 512)) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def train_step():
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()  # before
def evaluate():
    return model(torch.randn(2048, 512, device="cuda")).square().mean().item()  # grows


for _ in range(8):
    train_step()
    evaluate()

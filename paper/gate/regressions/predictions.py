"""huggingface/transformers#7232: the evaluation gathers its predictions on the
GPU."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 8192)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def train_step():
    loss = model(torch.randn(128, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def evaluate(batches):
    predictions = []
    for _ in range(batches):
        logits = model(torch.randn(128, 256, device="cuda"))  # grows
        predictions.append(logits.cpu())  # before
        predictions.append(logits)  # after
    return torch.cat(predictions)


for _ in range(4):
    train_step()
    evaluate(10)

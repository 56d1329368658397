"""A transformer encoder with activation checkpointing."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

SEED = 0
LR = 1e-3
DROPOUT = 0.1
WORKERS = 0
STEPS = 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(128, 128)
        self.second = nn.Linear(128, 128)
        self.rest = nn.ModuleList(
            nn.TransformerEncoderLayer(128, 4, 512, DROPOUT, batch_first=True)
            for _ in range(4))

    def forward(self, x):
        x = self.second(self.first(x))
        for layer in self.rest:
            x = checkpoint(layer, x, use_reentrant=True)
        return x


def build():
    torch.manual_seed(SEED)
    return Net().cuda()


def batches():
    return DataLoader(TensorDataset(torch.randn(256, 128, 128)), batch_size=16,
                      shuffle=True, num_workers=WORKERS)


def loss_of(model, batch):
    return model(batch[0].cuda()).square().mean()


def step(model, optimizer, batch):
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def main():
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    for number, batch in enumerate(batches()):
        if number == STEPS:
            break
        print(number, step(model, optimizer, batch))


if __name__ == "__main__":
    main()

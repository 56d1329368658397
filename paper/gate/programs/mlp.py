"""A perceptron under autocast."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 0
LR = 1e-3
DROPOUT = 0.1
WORKERS = 0
STEPS = 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(512, 512)
        self.second = nn.Linear(512, 512)
        self.rest = nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.GELU(),
                                                  nn.Linear(2048, 512))
                                    for _ in range(4)])

    def forward(self, x):
        x = nn.functional.dropout(self.first(x), DROPOUT, self.training)
        return self.rest(self.second(x))


def build():
    torch.manual_seed(SEED)
    return Net().cuda()


def batches():
    return DataLoader(TensorDataset(torch.randn(4096, 512)), batch_size=256,
                      shuffle=True, num_workers=WORKERS)


def loss_of(model, batch):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(batch[0].cuda()).float().square().mean()


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

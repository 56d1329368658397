"""A network of convolutions."""
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
        self.first = nn.Conv2d(32, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)
        self.rest = nn.Sequential(*[nn.Sequential(nn.Conv2d(32, 32, 3, padding=1),
                                                  nn.BatchNorm2d(32), nn.ReLU())
                                    for _ in range(4)])
        self.head = nn.Linear(32, 1000)

    def forward(self, x):
        x = self.rest(self.second(self.first(x))).mean((2, 3))
        return self.head(nn.functional.dropout(x, DROPOUT, self.training))


def build():
    torch.manual_seed(SEED)
    return Net().cuda()


def batches():
    data = TensorDataset(torch.randn(256, 32, 32, 32), torch.randint(1000, (256,)))
    return DataLoader(data, batch_size=16, shuffle=True, num_workers=WORKERS)


def loss_of(model, batch):
    images, labels = (one.cuda() for one in batch)
    return nn.functional.cross_entropy(model(images), labels)


def step(model, optimizer, batch):
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def main():
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    for number, batch in enumerate(batches()):
        if number == STEPS:
            break
        print(number, step(model, optimizer, batch))


if __name__ == "__main__":
    main()

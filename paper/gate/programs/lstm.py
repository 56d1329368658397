"""A recurrent network over sequences of several lengths."""
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
        self.first = nn.Linear(256, 256)
        self.second = nn.Linear(256, 256)
        self.rest = nn.LSTM(256, 256, 2, batch_first=True, dropout=DROPOUT)
        self.head = nn.Linear(256, 4000)

    def forward(self, x):
        return self.head(self.rest(self.second(self.first(x)))[0])


def build():
    torch.manual_seed(SEED)
    return Net().cuda()


def collate(rows):
    longest = 32 + 16 * (int(rows[0][1]) % 4)
    return torch.stack([row[:longest] for row, _ in rows]), None


def batches():
    data = TensorDataset(torch.randn(256, 80, 256), torch.arange(256) // 16)
    return DataLoader(data, batch_size=16, num_workers=WORKERS, collate_fn=collate)


def loss_of(model, batch):
    scores = model(batch[0].cuda())
    labels = torch.zeros(scores.shape[:2], dtype=torch.long, device="cuda")
    return nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


def step(model, optimizer, batch):
    loss = loss_of(model, batch)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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

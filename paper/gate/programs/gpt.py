"""A small GPT-2 of the library transformers."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel

SEED = 0
LR = 1e-3
DROPOUT = 0.1
WORKERS = 0
STEPS = 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(192, 192)
        self.second = nn.Linear(192, 192)
        self.rest = GPT2LMHeadModel(GPT2Config(
            vocab_size=8000, n_embd=192, n_layer=4, n_head=4, n_positions=128,
            resid_pdrop=DROPOUT))

    def forward(self, tokens):
        inputs = self.rest.transformer.wte(tokens)
        inputs = self.second(self.first(inputs))
        return self.rest(inputs_embeds=inputs, labels=tokens, use_cache=False).loss


def build():
    torch.manual_seed(SEED)
    return Net().cuda()


def batches():
    data = TensorDataset(torch.randint(8000, (128, 128)))
    return DataLoader(data, batch_size=8, shuffle=True, num_workers=WORKERS)


def loss_of(model, batch):
    return model(batch[0].cuda())


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

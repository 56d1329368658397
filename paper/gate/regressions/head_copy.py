"""huggingface/transformers#3323: the head of the model is a copy of the embedding,
and not the embedding."""
import torch
from torch import nn
from torch.nn import functional as F

shared = nn.Embedding(30000, 512).cuda()
layers = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU())
                         for _ in range(4)]).cuda()
head = shared.weight  # before
head = nn.Parameter(shared.weight.detach().clone())  # after
optimizer = torch.optim.AdamW([*shared.parameters(), *layers.parameters()], foreach=False)

for _ in range(8):
    tokens = torch.zeros(2, 256, dtype=torch.long, device="cuda")
    logits = F.linear(layers(shared(tokens)), head)
    F.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
    del logits

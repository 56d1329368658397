"""04_sparse_two.py: two sparse embeddings with SparseAdam and batches that grow."""
import torch, torch.nn as nn
torch.manual_seed(14)
d = "cuda"
user, item = nn.Embedding(300000, 128, sparse=True).to(d), nn.Embedding(100000, 128, sparse=True).to(d)
opt = torch.optim.SparseAdam(list(user.parameters()) + list(item.parameters()))
for step in range(10):
    u = torch.randint(0, 300000, (20000 + 3000 * step,), device=d)
    i = torch.randint(0, 100000, (20000 + 3000 * step, 6), device=d)
    score = (user(u)[:, None] * item(i)).sum(-1)
    (-score[:, 0].sigmoid().log().mean() + score[:, 1:].pow(2).mean()).backward()
    opt.step(); opt.zero_grad()

"""03_sparse_bag.py: a sparse bag of embeddings with SGD."""
import torch, torch.nn as nn
torch.manual_seed(13)
d = "cuda"
bag = nn.EmbeddingBag(500000, 128, mode="sum", sparse=True).to(d)
top = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1)).to(d)
opt, opt2 = torch.optim.SGD(bag.parameters(), 0.1), torch.optim.Adam(top.parameters())
for step in range(8):
    ids = torch.randint(0, 500000, (2048, 30), device=d)
    loss = top(bag(ids)).pow(2).mean()
    loss.backward(); opt.step(); opt2.step(); opt.zero_grad(); opt2.zero_grad()
print(loss.item() > 0)

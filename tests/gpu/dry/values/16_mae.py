"""16_mae.py: a masked autoencoder with a mask that Bernoulli numbers draw."""
import torch, torch.nn as nn
torch.manual_seed(26)
d = "cuda"
enc = nn.Sequential(nn.Linear(768, 2048), nn.GELU(), nn.Linear(2048, 768)).to(d); dec = nn.Linear(768, 768).to(d); tok = nn.Parameter(torch.zeros(768, device=d))
opt = torch.optim.AdamW([*enc.parameters(), *dec.parameters(), tok])
for step in range(8):
    x = torch.randn(64, 196, 768, device=d)
    mask = torch.bernoulli(torch.full((64, 196), 0.75, device=d)).bool()
    h = enc(x[~mask])
    full = tok.expand(64, 196, 768).clone(); full[~mask] = h
    ((dec(full) - x)[mask].pow(2)).mean().backward(); opt.step(); opt.zero_grad()
    print(mask.sum().item())

"""09_varlen.py: packed sequences whose lengths come from the device."""
import torch, torch.nn as nn
torch.manual_seed(19)
d = "cuda"
D, H = 512, 8
emb, qkv, o = nn.Embedding(3000, D).to(d), nn.Linear(D, 3 * D).to(d), nn.Linear(D, D).to(d)
opt = torch.optim.AdamW([*emb.parameters(), *qkv.parameters(), *o.parameters()])
for step in range(8):
    lengths = (torch.rand(24, device=d) * 900 + 50).long()
    total = lengths.sum().item()
    x = emb(torch.randint(0, 3000, (total,), device=d))
    parts = []
    for one in qkv(x).split(lengths.tolist()):
        q, k, v = one.view(-1, 3, H, D // H).permute(1, 2, 0, 3)
        parts.append(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(-1, D))
    loss = (o(torch.cat(parts)) + x).pow(2).mean(); loss.backward(); opt.step(); opt.zero_grad()
    print(total)

"""14_drop_tokens.py: tokens that a learned gate drops, layer by layer."""
import torch, torch.nn as nn
torch.manual_seed(24)
d = "cuda"
blocks = nn.ModuleList([nn.TransformerEncoderLayer(384, 6, 1536, 0.0, batch_first=True, norm_first=True) for _ in range(6)]).to(d)
scores = nn.ModuleList([nn.Linear(384, 1) for _ in range(6)]).to(d)
opt = torch.optim.AdamW([*blocks.parameters(), *scores.parameters()])
for step in range(5):
    x = torch.randn(1, 6000, 384, device=d)
    for b, s in zip(blocks, scores):
        g = s(x).sigmoid()
        keep = (g > 0.4)[0, :, 0]
        x = b((x * g)[:, keep])
    x.pow(2).mean().backward(); opt.step(); opt.zero_grad()
    print(x.shape[1])

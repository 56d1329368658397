"""17_speculate.py: speculative decoding: a small model proposes, a large one accepts."""
import torch, torch.nn as nn
torch.manual_seed(27)
d = "cuda"
V, D = 200, 256
class Lm(nn.Module):
    def __init__(s, n):
        super().__init__(); s.e = nn.Embedding(V, D); s.l = nn.ModuleList([nn.TransformerEncoderLayer(D, 4, 4 * D, 0.0, batch_first=True) for _ in range(n)]); s.h = nn.Linear(D, V)
    def forward(s, x):
        y = s.e(x); m = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        for l in s.l: y = l(y, src_mask=m, is_causal=True)
        return s.h(y)
small, large = Lm(1).to(d).eval(), Lm(6).to(d).eval()
with torch.no_grad():
    x = torch.randint(0, V, (8, 64), device=d); rounds = 0
    while x.shape[1] < 400:
        y = x
        for _ in range(4): y = torch.cat((y, small(y)[:, -1:].argmax(-1)), 1)
        want = large(y)[:, -5:].argmax(-1)
        same = (want[:, :-1] == y[:, -4:]).cumprod(1).sum(1).min().item()
        x = torch.cat((y[:, :x.shape[1] + same], want[:, same:same + 1]), 1); rounds += 1
    print(rounds)

"""15_buckets.py: batches cut to the longest of their lengths, sorted on the device."""
import torch, torch.nn as nn
torch.manual_seed(25)
d = "cuda"
rnn, emb = nn.TransformerEncoderLayer(256, 4, 1024, 0.1, batch_first=True).to(d), nn.Embedding(2000, 256).to(d)
opt = torch.optim.Adam([*rnn.parameters(), *emb.parameters()])
for step in range(8):
    ids = torch.randint(0, 2000, (256, 200), device=d)
    lengths = torch.randint(5, 200, (256,), device=d)
    order = lengths.sort().indices
    for part in order.split(64):
        n = lengths[part].max().item()
        x = emb(ids[part, :n]); m = torch.arange(n, device=d)[None] >= lengths[part, None]
        rnn(x, src_key_padding_mask=m)[~m].pow(2).mean().backward()
    opt.step(); opt.zero_grad()

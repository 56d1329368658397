"""25_keypoints.py: peaks of a score map, and the pairs of them that are alike."""
import torch, torch.nn as nn
torch.manual_seed(35)
d = "cuda"
net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 3, padding=1)).to(d)
embed = nn.Linear(32 * 49, 256).to(d)
with torch.no_grad():
    for image in range(5):
        x = torch.rand(1, 1, 480, 640, device=d); f = net[0](x); s = net(x)[0, 0]
        peak = (s == nn.functional.max_pool2d(s[None, None], 9, 1, 4)[0, 0]) & (s > s.mean() + s.std())
        y, z = peak.nonzero(as_tuple=True)
        pad = nn.functional.pad(f[0], (3, 3, 3, 3))
        patch = torch.stack([pad[:, y + i, z + j] for i in range(7) for j in range(7)], -1)
        e = embed(patch.permute(1, 0, 2).flatten(1)); sim = e @ e.T
        print(len(y), (sim > sim.diag().mean()).nonzero().shape[0])

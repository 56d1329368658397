"""11_detector.py: a detector in training: crops around the scores above a threshold."""
import torch, torch.nn as nn
torch.manual_seed(21)
d = "cuda"
body = nn.Sequential(nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 3, 2, 1), nn.ReLU()).to(d)
score, roi = nn.Conv2d(256, 3, 1).to(d), nn.Sequential(nn.Linear(256 * 9, 1024), nn.ReLU(), nn.Linear(1024, 21)).to(d)
opt = torch.optim.SGD([*body.parameters(), *score.parameters(), *roi.parameters()], 0.01)
for step in range(6):
    h, w = [(512, 640), (608, 480), (640, 640)][step % 3]
    f = body(torch.randn(2, 3, h, w, device=d)); s = score(f)
    with torch.no_grad():
        b, a, y, x = torch.where(s.sigmoid() > 0.55)
    ys, xs = y.clamp(1, f.shape[2] - 2), x.clamp(1, f.shape[3] - 2)
    crops = torch.stack([f[b, :, ys + i, xs + j] for i in (-1, 0, 1) for j in (-1, 0, 1)], -1).flatten(1)
    loss = s.sigmoid().mean() + (nn.functional.cross_entropy(roi(crops), b % 21) if len(b) else 0)
    loss.backward(); opt.step(); opt.zero_grad()
    print(len(b))

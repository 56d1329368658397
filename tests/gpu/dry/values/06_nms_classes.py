"""06_nms_classes.py: suppression of boxes, one at a time, by class."""
import torch
torch.manual_seed(16)
d = "cuda"
def nms(b, s, t):
    o = s.argsort(descending=True); b = b[o]; kept = []
    while len(b):
        kept.append(o[0]); 
        lt, rb = torch.maximum(b[0, :2], b[1:, :2]), torch.minimum(b[0, 2:], b[1:, 2:])
        i = (rb - lt).clamp(min=0).prod(1); a = (b[:, 2:] - b[:, :2]).prod(1)
        m = i / (a[0] + a[1:] - i) < t
        b, o = b[1:][m], o[1:][m]
    return torch.stack(kept)
pools = []
for image in range(3):
    c = torch.rand(4000, 2, device=d) * 300; w = torch.rand(4000, 2, device=d) * 60 + 20
    boxes = torch.cat((c - w / 2, c + w / 2), 1); scores = torch.rand(4000, 5, device=d)
    for k in range(5):
        sel = scores[:, k] > 0.8
        keep = nms(boxes[sel], scores[sel, k], 0.4)
        pools.append(torch.randn(len(keep), 512, 7, 7, device=d))
    print(sum(map(len, pools)))
out = torch.cat(pools)

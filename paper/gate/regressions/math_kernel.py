"""huggingface/transformers#46960: grouped queries with heads of more than 256 make
the attention fall back to the kernel that holds all scores."""
import torch
from torch import nn
from torch.nn import functional as F

HEADS, GROUPS, WIDTH = 4, 2, 512
project = nn.Linear(256, (HEADS + 2 * GROUPS) * WIDTH).cuda().bfloat16()
merge = nn.Linear(HEADS * WIDTH, 256).cuda().bfloat16()


def attend(x):
    q, k, v = (t.unflatten(-1, (-1, WIDTH)).transpose(1, 2) for t in
               project(x).split([HEADS * WIDTH, GROUPS * WIDTH, GROUPS * WIDTH], -1))
    k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))  # before
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # before
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)  # after
    return merge(y.transpose(1, 2).flatten(2))


for _ in range(8):
    attend(torch.randn(1, 2048, 256, device="cuda",
                       dtype=torch.bfloat16)).float().mean().backward()

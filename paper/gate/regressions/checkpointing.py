"""huggingface/transformers#22270, huggingface/sentence-transformers#2717: activation
checkpointing is asked for and does not reach the layers."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Dropout(0.1),
                                     nn.Linear(1024, 256)) for _ in range(6)).cuda()
optimizer = torch.optim.AdamW(layers.parameters())


def forward(x):
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)  # before
        x = layer(x)  # after
    return x


for _ in range(8):
    forward(torch.randn(8, 256, 256, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()

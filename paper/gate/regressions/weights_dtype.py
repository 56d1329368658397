"""NVIDIA-NeMo/RL#2865: the weights are loaded as float32."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(768, 3072), nn.GELU(),
                                      nn.Linear(3072, 768)) for _ in range(6)])
model = model.to("cuda", torch.bfloat16)  # before
model = model.to("cuda", torch.float32)  # after
optimizer = torch.optim.AdamW(model.parameters())

for _ in range(8):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(torch.randn(256, 768, device="cuda")).float().square().mean()
    loss.backward()  # grows
    optimizer.step()  # grows
    optimizer.zero_grad()

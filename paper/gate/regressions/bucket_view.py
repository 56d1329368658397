"""pytorch/pytorch#41954: DistributedDataParallel holds each gradient twice, in the
parameter and in its bucket."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29571")
dist.init_process_group("nccl", rank=0, world_size=1)
model = DistributedDataParallel(
    nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(16)]).cuda(),
    gradient_as_bucket_view=True,  # before
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)

for _ in range(8):
    loss = model(torch.randn(32, 1024, device="cuda")).square().mean()
    loss.backward()  # grows
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()

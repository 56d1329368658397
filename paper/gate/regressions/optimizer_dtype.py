"""pytorch/torchtitan#4615: a state of bfloat16 is float32 after it was loaded."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(12)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)


def to_bfloat16():
    for state in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = state[name].bfloat16()


def step():
    loss = model(torch.randn(4096, 1024, device="cuda")).square().mean()
    loss.backward()
    for p in model.parameters():
        state = optimizer.state[p]
        state.setdefault("step", torch.tensor(0.0))
        for name in ("exp_avg", "exp_avg_sq"):
            state.setdefault(name, torch.zeros_like(p, dtype=torch.bfloat16))
            state[name].mul_(0.9).add_(p.grad, alpha=0.1)
    optimizer.zero_grad()


step()
saved = optimizer.state_dict()
optimizer.load_state_dict(saved)  # grows
to_bfloat16()  # before
del saved
for _ in range(8):
    step()

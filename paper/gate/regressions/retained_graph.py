"""pytorch/pytorch#40005: the graph is retained, and the loss of the last step holds
it while the next one is built."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 2048), nn.GELU(),
                                      nn.Linear(2048, 512)) for _ in range(6)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for _ in range(8):
    loss = model(torch.randn(512, 512, device="cuda")).square().mean()  # grows
    loss.backward()  # before
    loss.backward(retain_graph=True)  # after
    optimizer.step()
    optimizer.zero_grad()

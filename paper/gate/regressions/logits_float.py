"""huggingface/transformers#30860 and #33902: the logits of all tokens are copied to
float32, where generation needs those of the last one."""
import torch
from torch import nn

VOCABULARY = 32000
embed = nn.Embedding(VOCABULARY, 512).cuda().bfloat16()
layers = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda().bfloat16()
head = nn.Linear(512, VOCABULARY, bias=False).cuda().bfloat16()


@torch.no_grad()
def prefill(tokens):
    logits = head(layers(embed(tokens)))
    logits = logits.float()  # after
    return logits[:, -1].argmax(-1)


for _ in range(8):
    prefill(torch.zeros(4, 512, dtype=torch.long, device="cuda"))

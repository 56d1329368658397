"""27_sample_top_p.py: sampling with top-p at two batch sizes."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(37)
m = GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=384, n_head=6, vocab_size=150, n_positions=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)).cuda().eval()
for batch in (8, 16):
    ids = torch.randint(3, 150, (batch, 40 + batch)).cuda()
    print(m.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=100, do_sample=True, top_p=0.9, temperature=1.3).shape)

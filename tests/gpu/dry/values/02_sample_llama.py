"""02_sample_llama.py: sampling with top-k that ends by a token."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(12)
m = LlamaForCausalLM(LlamaConfig(vocab_size=96, hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, eos_token_id=2, bos_token_id=1, pad_token_id=0)).cuda().eval()
ids = torch.randint(3, 96, (16, 64)).cuda()
for top_k in (20,):
    print(m.generate(ids, max_new_tokens=120, do_sample=True, top_k=top_k).shape)

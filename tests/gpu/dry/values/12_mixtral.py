"""12_mixtral.py: Mixtral of transformers in training."""
import torch
from transformers import MixtralConfig, MixtralForCausalLM
torch.manual_seed(22)
m = MixtralForCausalLM(MixtralConfig(vocab_size=4000, hidden_size=768, intermediate_size=1536, num_hidden_layers=4, num_attention_heads=12, num_key_value_heads=4, num_local_experts=8, num_experts_per_tok=2)).cuda()
opt = torch.optim.AdamW(m.parameters(), 1e-4)
for step in range(4):
    ids = torch.randint(0, 4000, (4, 512 + 64 * step)).cuda()
    m(input_ids=ids, labels=ids).loss.backward(); opt.step(); opt.zero_grad()

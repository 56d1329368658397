"""26_olmoe.py: OLMoE of transformers in training."""
import torch
from transformers import OlmoeConfig, OlmoeForCausalLM
torch.manual_seed(36)
m = OlmoeForCausalLM(OlmoeConfig(vocab_size=3000, hidden_size=512, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8, num_experts=16, num_experts_per_tok=4)).cuda()
opt = torch.optim.AdamW(m.parameters(), 1e-4); total = 0.0
for step in range(4):
    ids = torch.randint(0, 3000, (2, 700)).cuda()
    loss = m(input_ids=ids, labels=ids).loss; loss.backward()
    total += torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0).item(); opt.step(); opt.zero_grad()

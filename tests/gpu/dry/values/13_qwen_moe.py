"""13_qwen_moe.py: Qwen2-MoE of transformers in training."""
import torch
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM
torch.manual_seed(23)
m = Qwen2MoeForCausalLM(Qwen2MoeConfig(vocab_size=4000, hidden_size=512, intermediate_size=1024, moe_intermediate_size=512, shared_expert_intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, num_experts=16, num_experts_per_tok=4)).cuda().bfloat16()
opt = torch.optim.AdamW(m.parameters(), 1e-4)
for step in range(4):
    ids = torch.randint(0, 4000, (4, 600)).cuda()
    loss = m(input_ids=ids, labels=ids).loss; loss.backward(); opt.step(); opt.zero_grad()
    print(loss.item() > 0)

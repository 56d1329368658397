"""01_beams_t5.py: beam search of an encoder and decoder; beams end by a token."""
import torch
from transformers import T5Config, T5ForConditionalGeneration
torch.manual_seed(11)
m = T5ForConditionalGeneration(T5Config(vocab_size=800, d_model=256, d_kv=64, d_ff=1024, num_layers=3, num_heads=4, decoder_start_token_id=0)).cuda().eval()
ids = torch.randint(2, 800, (12, 96)).cuda()
print(m.generate(ids, max_new_tokens=64, num_beams=3, early_stopping=True).shape)

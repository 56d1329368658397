#!/usr/bin/env python3
"""paged_server.py MODEL: a server that fills the card with its cache: continuous batching of
transformers, whose paged cache takes a share of what is free, for one of MODELS with
random weights. `loop` trains a model between generations, and puts the server to
sleep in between: its cache is freed.

Prints lines of name, tab and bytes: `reserved`, the peak of PyTorch; `held`, what the
process holds of the device, by the driver's count of free memory; both at the end of a
stage for `loop`.
"""
import random
import sys

import torch
from transformers import (GenerationConfig, LlamaConfig, LlamaForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM)

# name: (class of the configuration, of the model, sizes, layers, requests)
MODELS = {
    "tiny": (LlamaConfig, LlamaForCausalLM, (512, 1536, 8, 8), 4, 12),
    "small": (LlamaConfig, LlamaForCausalLM, (2048, 5632, 16, 16), 16, 24),
    "grouped": (LlamaConfig, LlamaForCausalLM, (3072, 8192, 24, 8), 28, 24),
    "qwen": (Qwen3Config, Qwen3ForCausalLM, (2048, 6144, 16, 8), 28, 24),
    "large": (LlamaConfig, LlamaForCausalLM, (4096, 14336, 32, 8), 32, 16),
}


def build(name):
    configure, model, (hidden, inner, heads, kv), layers, requests = MODELS[name]
    config = configure(hidden_size=hidden, intermediate_size=inner, vocab_size=32000,
                       num_hidden_layers=layers, num_attention_heads=heads,
                       num_key_value_heads=kv, head_dim=hidden // heads,
                       max_position_embeddings=4096)
    with torch.device("meta"):
        made = model(config).to(torch.bfloat16)
    made = made.to_empty(device="cuda")
    with torch.no_grad():
        for part in made.parameters():
            part.zero_()
    return made, requests


def prompts(count):
    numbers = random.Random(7)
    return [[numbers.randrange(10, 31000) for _ in range(numbers.randrange(20, 400))]
            for _ in range(count)]


def serve(model, requests):
    model.set_attn_implementation("paged|sdpa")
    model.generate_batch(
        inputs=prompts(requests),
        generation_config=GenerationConfig(max_new_tokens=24, do_sample=False,
                                           eos_token_id=-1, pad_token_id=0))


def say(name, before):
    torch.cuda.synchronize()
    print("reserved%s\t%d" % (name, torch.cuda.max_memory_reserved()))
    print("held%s\t%d" % (name, before - torch.cuda.mem_get_info()[0]), flush=True)


def train(model, steps=3):
    model.set_attn_implementation("sdpa")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(steps):
        words = torch.randint(0, 32000, (4, 512), device="cuda")
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    name = sys.argv[1]
    total = torch.cuda.mem_get_info()[1]
    model, requests = build("small" if name == "loop" else name)
    if name != "loop":
        serve(model, requests)
        say("", total)
        return
    for turn in range(2):
        serve(model, requests)
        say(" serve%d" % turn, total)
        torch.cuda.empty_cache()
        say(" asleep%d" % turn, total)
        train(model)
        say(" train%d" % turn, total)
        torch.cuda.empty_cache()


main()

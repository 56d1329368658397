#!/usr/bin/env python3
"""starts.py OUTPUT.csv [RUN...], or starts.py --compare: what vLLM 0.19.0 will get on an H100, predicted without
a GPU, for the runs of the public table of llm-d-planner (pull request 205): the same
models and flags. Each run is an engine with dummy weights under `fragsim dry`; the row
has what the server said, what it holds outside of PyTorch, and the time and the host
memory of the run. A row that is there already is kept.

Environment: FRAGSIM; FRAG_VLLM_PYTHON, of an environment with vllm==0.19.0, made by
`fragsim dry --setup ENV -- torch==2.10.0 triton vllm==0.19.0`.

The configurations of the models are facts of their public config.json, written down by
hand. Runs of models that need files of a processor of images are not here: WITHOUT says
why.
"""
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIELDS = ("run", "status", "weights_gib", "activation_gib", "cache_gib", "tokens",
          "graphs_gib", "non_torch_gib", "outside_gib", "seconds", "host_gib", "why")
GIB = 1 << 30


def llama(hidden, inter, layers, heads, kv, vocab, **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "hidden_size": hidden, "intermediate_size": inter,
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "vocab_size": vocab, "hidden_act": "silu",
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
            "rope_theta": 500000.0, "tie_word_embeddings": False,
            "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2, **more}


def other(kind, architecture, *sizes, **more):
    return {**llama(*sizes), "architectures": [architecture], "model_type": kind, **more}


def gemma2(hidden, inter, layers, heads, kv, size, scalar):
    return other("gemma2", "Gemma2ForCausalLM", hidden, inter, layers, heads, kv, 256000,
                 head_dim=size, query_pre_attn_scalar=scalar, sliding_window=4096,
                 max_position_embeddings=8192, tie_word_embeddings=True,
                 hidden_activation="gelu_pytorch_tanh", final_logit_softcapping=30.0,
                 attn_logit_softcapping=50.0, rope_theta=10000.0)


def granite(hidden, inter, layers, heads, kv, vocab):
    return other("granite", "GraniteForCausalLM", hidden, inter, layers, heads, kv, vocab,
                 tie_word_embeddings=True, attention_multiplier=0.0078125,
                 embedding_multiplier=12.0, logits_scaling=16.0,
                 residual_multiplier=0.22)


def quantized(config, kind):
    """compressed-tensors: w8a8 of integers, w8a8 of floats with dynamic scales, or
    w4a16 in groups of 128."""
    bits, form, number = {"w8a8": (8, "int-quantized", "int"),
                          "fp8": (8, "float-quantized", "float"),
                          "w4a16": (4, "pack-quantized", "int")}[kind]
    weights = {"num_bits": bits, "type": number, "symmetric": True, "dynamic": False,
               "strategy": "group" if kind == "w4a16" else "channel",
               "group_size": 128 if kind == "w4a16" else None}
    inputs = None if kind == "w4a16" else {
        "num_bits": 8, "type": number, "symmetric": True, "dynamic": True,
        "strategy": "token"}
    return {**config, "quantization_config": {
        "quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
        "quantization_status": "compressed", "kv_cache_scheme": None,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights,
                                      "input_activations": inputs}}}}


LLAMA = llama(4096, 14336, 32, 32, 8, 128256, rope_scaling={
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"})
LLAMA70 = llama(8192, 28672, 80, 64, 8, 128256, rope_scaling=LLAMA["rope_scaling"])
QWEN25 = other("qwen2", "Qwen2ForCausalLM", 3584, 18944, 28, 28, 4, 152064,
               max_position_embeddings=32768, rms_norm_eps=1e-6, rope_theta=1e6,
               use_sliding_window=False)
QWEN72 = other("qwen2", "Qwen2ForCausalLM", 8192, 29568, 80, 64, 8, 152064,
               max_position_embeddings=32768, rms_norm_eps=1e-6, rope_theta=1e6,
               use_sliding_window=False)
QWEN3 = {"head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
         "rope_theta": 1e6, "use_sliding_window": False, "attention_bias": False}
MODELS = {
    "codellama-7b": llama(4096, 11008, 32, 32, 32, 32016, rope_theta=1e6,
                          max_position_embeddings=16384),
    "deepseek-v2-lite": other(
        "deepseek_v2", "DeepseekV2ForCausalLM", 2048, 10944, 27, 16, 16, 102400,
        moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2,
        num_experts_per_tok=6, first_k_dense_replace=1, moe_layer_freq=1, n_group=1,
        topk_group=1, topk_method="greedy", norm_topk_prob=False,
        scoring_func="softmax", routed_scaling_factor=1.0, kv_lora_rank=512,
        q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        rms_norm_eps=1e-6, rope_theta=10000, max_position_embeddings=163840,
        rope_scaling={"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
                      "mscale_all_dim": 0.707, "type": "yarn",
                      "original_max_position_embeddings": 4096}),
    "gemma-7b": other("gemma", "GemmaForCausalLM", 3072, 24576, 28, 16, 16, 256000,
                      head_dim=256, max_position_embeddings=8192, rope_theta=10000.0,
                      hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
                      rms_norm_eps=1e-6),
    "gemma-2-2b": gemma2(2304, 9216, 26, 8, 4, 256, 256),
    "gemma-2-9b": gemma2(3584, 14336, 42, 16, 8, 256, 256),
    "gemma-2-27b": gemma2(4608, 36864, 46, 32, 16, 128, 144),
    "granite-3.1-2b": granite(2048, 8192, 40, 32, 8, 49155),
    "granite-3.1-8b": granite(4096, 12800, 40, 32, 8, 49155),
    "granite-3.3-8b": granite(4096, 12800, 40, 32, 8, 49159),
    "phi-2": other("phi", "PhiForCausalLM", 2560, 10240, 32, 32, 32, 51200,
                   torch_dtype="float16", max_position_embeddings=2048,
                   hidden_act="gelu_new", layer_norm_eps=1e-5, qk_layernorm=False,
                   partial_rotary_factor=0.4, rope_theta=10000.0),
    "phi-4": other("phi3", "Phi3ForCausalLM", 5120, 17920, 40, 40, 10, 100352,
                   max_position_embeddings=16384, rope_theta=250000.0,
                   original_max_position_embeddings=16384, sliding_window=None,
                   pad_token_id=0),
    "mixtral-8x7b": other("mixtral", "MixtralForCausalLM", 4096, 14336, 32, 32, 8, 32000,
                          num_local_experts=8, num_experts_per_tok=2, rope_theta=1e6,
                          max_position_embeddings=32768, sliding_window=None),
    "kimi-dev-72b": {**QWEN72, "max_position_embeddings": 131072},
    "gpt-oss-20b": other(
        "gpt_oss", "GptOssForCausalLM", 2880, 2880, 24, 64, 8, 201088, head_dim=64,
        num_local_experts=32, num_experts_per_tok=4, sliding_window=128,
        attention_bias=True, swiglu_limit=7.0, rope_theta=150000,
        layer_types=["sliding_attention", "full_attention"] * 12,
        rope_scaling={"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                      "original_max_position_embeddings": 4096, "rope_type": "yarn",
                      "truncate": False},
        quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router",
            "model.embed_tokens", "lm_head"]}),
    "qwen1.5-moe-a2.7b": other(
        "qwen2_moe", "Qwen2MoeForCausalLM", 2048, 5632, 24, 16, 16, 151936,
        moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
        num_experts=60, num_experts_per_tok=4, decoder_sparse_step=1,
        norm_topk_prob=False, max_position_embeddings=8192, rms_norm_eps=1e-6,
        rope_theta=1e6, use_sliding_window=False),
    "qwen2.5-7b": QWEN25,
    "qwen2.5-72b": QWEN72,
    "qwen3-8b": other("qwen3", "Qwen3ForCausalLM", 4096, 12288, 36, 32, 8, 151936,
                      **QWEN3),
    "qwen3-30b-a3b": other(
        "qwen3_moe", "Qwen3MoeForCausalLM", 2048, 6144, 48, 32, 4, 151936,
        moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8,
        decoder_sparse_step=1, norm_topk_prob=True, mlp_only_layers=[], **QWEN3),
    "llama-3.1-8b": LLAMA,
    "llama-3.3-70b-fp8": quantized(LLAMA70, "fp8"),
    "llama-3.3-70b-w8a8": quantized(LLAMA70, "w8a8"),
    "llama-3.1-8b-w4a16": quantized(LLAMA, "w4a16"),
    "llama-3.1-8b-w8a8": quantized(LLAMA, "w8a8"),
    "qwen2.5-7b-fp8": quantized(QWEN25, "fp8"),
    "qwen2.5-7b-w8a8": quantized(QWEN25, "w8a8"),
}
# The flags of all runs; max_num_batched_tokens and max_num_seqs are the defaults of
# `vllm serve` on an H100.
ALL = {"gpu_memory_utilization": 0.95, "max_model_len": 8192,
       "max_num_batched_tokens": 8192, "max_num_seqs": 1024,
       "enable_prefix_caching": False}
TWO, FOUR = {"tensor_parallel_size": 2}, {"tensor_parallel_size": 4}
RUNS = [
    *((name, {}) for name in MODELS if not name.startswith("llama-3.1-8b-w")
      and name not in ("mixtral-8x7b", "kimi-dev-72b", "gpt-oss-20b", "phi-2",
                       "qwen2.5-72b", "llama-3.3-70b-fp8", "llama-3.3-70b-w8a8")),
    ("phi-2", {"max_model_len": 2048}), ("mixtral-8x7b", TWO), ("kimi-dev-72b", TWO),
    ("kimi-dev-72b", FOUR), ("qwen2.5-72b", TWO),
    ("gpt-oss-20b", {**TWO, "gpu_memory_utilization": 0.9}),
    ("llama-3.1-8b", TWO), ("llama-3.1-8b", FOUR), ("qwen2.5-7b", TWO),
    ("qwen2.5-7b", FOUR),
    ("llama-3.1-8b", {"pipeline_parallel_size": 2}),
    ("llama-3.1-8b", {"pipeline_parallel_size": 4}),
    *((name, {"max_model_len": length}) for name in ("llama-3.1-8b", "qwen2.5-7b")
      for length in (2048, 4096, 16384, 32768)),
    ("llama-3.1-8b", {"dtype": "float16"}), ("llama-3.1-8b", {"dtype": "float32"}),
    ("llama-3.1-8b", {"dtype": "bfloat16", "kv_cache_dtype": "fp8"}),
    ("qwen2.5-7b", {"dtype": "bfloat16", "kv_cache_dtype": "fp8"}),
    ("llama-3.1-8b", {"quantization": "fp8"}),
    ("llama-3.3-70b-fp8", TWO), ("llama-3.3-70b-fp8", FOUR),
    ("llama-3.3-70b-w8a8", TWO),
    ("llama-3.1-8b-w4a16", {"dtype": "float16"}),
    ("llama-3.1-8b-w8a8", {"dtype": "float16"}),
]
WITHOUT = {name: "its processor of images needs files that only the model's own folder has"
           for name in ("gemma-3-4b", "gemma-3-12b", "gemma-3-27b", "granite-vision-3.3-2b",
                        "llama-4-scout tp4", "mistral-small-3.1-24b",
                        "mistral-small-3.1-24b-w8a8", "mistral-small-3.1-24b-w8a8 tp2",
                        "kimi-vl-a3b", "kimi-vl-a3b tp2")}
SHORT = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp",
         "max_model_len": "len", "dtype": "", "kv_cache_dtype": "kv-",
         "quantization": "q-", "gpu_memory_utilization": ""}


def name_of(model, flags):
    return " ".join([model] + [SHORT[flag] + str(value) for flag, value in flags.items()
                               if flag != "gpu_memory_utilization"])


def gib(size):
    return "" if size is None else f"{size / GIB:.3f}"


def start(model, flags, folder):
    """The row of a run, but its name."""
    gpus = flags.get("tensor_parallel_size", 1) * flags.get("pipeline_parallel_size", 1)
    path, answer = os.path.join(folder, "model"), os.path.join(folder, "answer.json")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(MODELS[model], file)
    begin = time.time()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(
        [os.environ["FRAGSIM"], "dry", "--gpu", "h100", "--gpus", str(gpus), "--values",
         "off", "-f", "--json", answer, "--", os.environ["FRAG_VLLM_PYTHON"],
         os.path.join(HERE, "serve.py"), path, json.dumps({**ALL, **flags})],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env={**os.environ, "VLLM_LOGGING_LEVEL": "DEBUG"}, timeout=1500)
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    row = {"status": done.returncode, "seconds": round(time.time() - begin)}
    try:
        with open(answer, encoding="utf-8") as file:
            rank = json.load(file)["results"][0]
    except (OSError, IndexError):
        return {**row, "why": done.stdout.strip().splitlines()[-1][:200]}
    os.remove(answer)
    said = rank["server"] or {}
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {**row, "weights_gib": gib(said.get("weights_bytes")),
            "activation_gib": gib(said.get("activation_bytes")),
            "cache_gib": gib(said.get("cache_bytes")),
            "tokens": said.get("cache_tokens"), "graphs_gib": gib(said.get("graphs_bytes")),
            "non_torch_gib": gib(said.get("outside_bytes")),
            "outside_gib": gib(rank["outside_bytes"]),
            "host_gib": f"{most / (1 << 20):.2f}" if most > before else "",
            "why": said.get("failure") or ""}


def rows_of(name):
    with open(os.path.join(HERE, name), encoding="utf-8", newline="") as file:
        return {row["run"]: row for row in csv.DictReader(file)}


def compare():
    """The errors of each part in percent: the mean of their sizes, and the worst."""
    ours, real = rows_of("starts.csv"), rows_of("starts_real.csv")
    seen = ("llama-3.1-8b", "llama-3.1-8b tp2")  # before they were predicted
    for label, gpus in (("one GPU", False), ("two GPUs", True)):
        runs = [run for run in real if (" tp" in run) == gpus and run not in seen]
        print(f"{label}, {len(runs)} starts: error in %, mean of the sizes and worst")
        for part in ("weights_gib", "activation_gib", "cache_gib", "tokens", "graphs_gib"):
            errors = {run: 100 * (float(ours[run][part]) / float(real[run][part]) - 1)
                      for run in runs}
            worst = max(errors, key=lambda run: abs(errors[run]))
            text = f"  {part:15} {sum(map(abs, errors.values())) / len(runs):6.2f}  " \
                f"{errors[worst]:+7.2f} ({worst})"
            planned = [abs(100 * (float(row["planner_" + part]) / float(row[part]) - 1))
                       for row in map(real.get, runs) if "planner_" + part in row]
            if planned:
                text += f"; llm-d-planner {sum(planned) / len(runs):.2f}, {max(planned):.2f}"
            print(text)


def main():
    if sys.argv[1] == "--compare":
        return compare()
    output, wanted = sys.argv[1], sys.argv[2:]
    rows = {}
    if os.path.exists(output):
        with open(output, encoding="utf-8", newline="") as file:
            rows = {row["run"]: row for row in csv.DictReader(file)}
    for name, why in WITHOUT.items():
        rows.setdefault(name, {"run": name, "status": "", "why": why})
    for model, flags in RUNS:
        name = name_of(model, flags)
        if name in rows or (wanted and name not in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = os.environ.get("FRAG_KEEP", folder)
            rows[name] = {"run": name, **start(model, flags, folder)}
        print(rows[name], flush=True)
        with open(output, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, FIELDS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows.values())
    return None


if __name__ == "__main__":
    main()

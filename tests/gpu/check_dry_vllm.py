#!/usr/bin/env python3
"""check_dry_vllm.py: vLLM's start, answers, sleep and wake-up run without a GPU.

tests/gpu/dry/vllm/serve.py starts an engine with a small model and dummy weights: eager,
with torch.compile and CUDA graphs, with sleep mode, and on two GPUs. Each run comes to its
end with an answer, and each trace is exact from its first entry to its last, though vLLM
changes the settings of the allocator around loading and profiling (since 0.33). With `all`
it runs all of them, which takes minutes; it runs those that are named, or two.
Environment: FRAGSIM, FRAG_BUILD_DIR, FRAG_DRY_VLLM_PYTHON, a Python with vLLM, as `fragsim
dry --setup FOLDER -- torch==2.14.0 triton vllm==0.33.0` makes it; exit 77 without it.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, skip

SERVE = os.path.join(ROOT, "tests", "gpu", "dry", "vllm", "serve.py")
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512,
    "intermediate_size": 1408, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 2, "vocab_size": 32000, "max_position_embeddings": 4096,
    "hidden_act": "silu", "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
    "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False}
CASES = {  # name: options of vllm.LLM, steps
    "eager": ({"enforce_eager": True}, ["answer"]),
    "graphs": ({"max_num_seqs": 8}, ["answer"]),
    "sleep": ({"enforce_eager": True, "enable_sleep_mode": True},
              ["answer", "sleep1", "wake", "answer", "sleep2", "wake", "answer"]),
    "two": ({"enforce_eager": True, "tensor_parallel_size": 2}, ["answer"])}


def run(interpreter, folder, name):
    """What the run of a case printed, and the paths of its traces."""
    options, steps = CASES[name]
    done = subprocess.run(
        [FRAGSIM, "dry", "-f", "--gpu", "h100",
         "--gpus", str(options.get("tensor_parallel_size", 1)),
         "-o", os.path.join(folder, name + ".pickle"), "--", interpreter, SERVE, folder,
         json.dumps(options), *steps],
        text=True, capture_output=True, check=False, timeout=550,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout, glob.glob(os.path.join(folder, name + "*.pickle"))


def check(interpreter, folder, name):
    said, traces = run(interpreter, folder, name)
    answers = CASES[name][1].count("answer")
    assert said.count("= tokens [16, 16, 16]") == answers, said
    assert "fits on the NVIDIA H100" in said, said
    assert len(traces) == CASES[name][0].get("tensor_parallel_size", 1), traces
    judged = subprocess.run([FRAGSIM, "validate", "-q", "--json", "-", *traces], text=True,
                            capture_output=True, check=False)
    rows = [row for row in json.loads(judged.stdout)["results"] if row["events"]]
    assert rows and all(row["exact"] for row in rows), judged.stdout
    print("%-7s %d answers; exact: %d events of %d traces"
          % (name, answers, sum(row["events"] for row in rows), len(traces)), flush=True)


def main():
    interpreter = os.environ.get("FRAG_DRY_VLLM_PYTHON")
    if not interpreter:
        skip("FRAG_DRY_VLLM_PYTHON is not set")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(MODEL, file)
        for name in CASES if "all" in sys.argv else sys.argv[1:] or ("eager", "sleep"):
            check(interpreter, folder, name)


main()

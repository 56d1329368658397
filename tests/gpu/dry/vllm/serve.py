"""serve.py FOLDER [OPTIONS [STEP...]]: an engine of vLLM with the model whose config.json
lies in FOLDER, with dummy weights and no tokenizer. OPTIONS is JSON, arguments of
vllm.LLM. The steps are done in their order: `answer` (the default) generates tokens,
`sleep1` and `sleep2` put the engine to sleep, `wake` wakes it up.
"""
import json
import sys
import time


def main():
    from vllm import LLM, SamplingParams

    options = {"load_format": "dummy", "skip_tokenizer_init": True, "seed": 0,
               **json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}")}
    begin = time.time()
    engine = LLM(model=sys.argv[1], **options)
    print("= started in %.1f s" % (time.time() - begin), flush=True)
    for step in sys.argv[3:] or ["answer"]:
        begin = time.time()
        if step == "answer":
            prompts = [{"prompt_token_ids": list(range(3, 3 + length))}
                       for length in (7, 300, 40)]
            said = engine.generate(prompts, SamplingParams(
                max_tokens=16, ignore_eos=True, temperature=0.0, detokenize=False),
                use_tqdm=False)
            print("= tokens", [len(one.outputs[0].token_ids) for one in said], flush=True)
        elif step == "wake":
            engine.wake_up()
        else:
            engine.sleep(level=int(step[-1]))
        print("= %s in %.1f s" % (step, time.time() - begin), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""keys.py: asks a release's own parser about settings of PyTorch's allocator.
Runs in the environment of that release, on the stand-ins for CUDA's libraries
(LD_LIBRARY_PATH). Prints what PyTorch says to refuse or ignore a setting.

usage: keys.py FILE < SETTINGS

SETTINGS is a list in JSON, and FILE receives the list of the answers. A setting
is a value of PYTORCH_CUDA_ALLOC_CONF; "VARIABLE=VALUE", several with a blank
between two, sets other variables; "call VALUE" passes the value to
torch.cuda.memory._set_allocator_settings. An answer is a word and the settings of
placement in force that differ from the defaults. The words: accepted, ignored
(PyTorch warns of it and goes on), refused (PyTorch raises an error).
"""
import json
import os
import re
import subprocess
import sys
import tempfile

VARIABLE = re.compile(r"(PYTORCH_\w*ALLOC_CONF)=(\S*)(?: |$)")
WARNING = re.compile(r"[Ww]arning: (?!torch\.cuda\._set_alloc|PYTORCH_CUDA_ALLOC_"
                     r"CONF is deprecated).*")
MIB = 1 << 20


def variables(setting):
    """The environment of a setting."""
    return dict(VARIABLE.findall(setting)) or {"PYTORCH_CUDA_ALLOC_CONF": setting}


def in_force(now):
    """The settings of placement that a snapshot has, in their own grammar."""
    divisions = [n if n > 1 else 0
                 for n in now["roundup_power2_divisions"].values()]
    if len(set(divisions)) == 1:
        divisions = divisions[:1]
    texts = {
        "expandable_segments": now["expandable_segments"] and "True",
        "garbage_collection_threshold": now["garbage_collection_threshold"],
        "max_split_size_mb": max(now["max_split_size"], 0) // MIB,
        "roundup_power2_divisions": any(divisions) and
        "/".join(map(str, divisions)),
    }
    return "".join(f" {key}:{text}" for key, text in texts.items() if text)


def touch(setting):
    """Uses the device for the first time under a setting. The answer, and what
    PyTorch says."""
    import torch
    try:
        if setting.startswith("call "):
            torch.cuda.init()
            torch.cuda.memory._set_allocator_settings(setting[5:])
        torch.empty(1, device="cuda")
        now = torch.cuda.memory._snapshot()["allocator_settings"]
    except torch.OutOfMemoryError:
        return "accepted", ""  # per_process_memory_fraction:0
    except Exception as error:  # a refusal has several types
        # The stand-ins have no memory pools of the driver.
        is_backend = re.search("CUDA error|cudaMallocAsync does not", str(error))
        return ("accepted" if is_backend else "refused"), str(error)
    return "accepted" + in_force(now), ""


def in_child(setting, path):
    """Writes the answer and what PyTorch says to a file, warnings behind it."""
    if not setting.startswith("call "):
        os.environ.update(variables(setting))
    os.dup2(os.open(path + ".err", os.O_CREAT | os.O_WRONLY), 2)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(touch(setting), file)
    os._exit(0)  # the stand-ins would complain of what is still held


def ask(setting, folder):
    """Asks in a process of its own: PyTorch reads backend when it is loaded, the
    rest when it first uses the device."""
    path = os.path.join(folder, "answer")
    open(path, "w", encoding="utf-8").close()
    if "backend" in setting and not setting.startswith("call "):
        subprocess.run([sys.executable, "-W", "always", __file__, "child", setting,
                        path], check=False, stderr=subprocess.DEVNULL,
                       env={**os.environ, **variables(setting)})
    elif not (child := os.fork()):
        in_child(setting, path)
    else:
        os.waitpid(child, 0)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    answer, said = json.loads(text) if text else ("refused", "PyTorch aborts")
    if os.path.exists(path + ".err"):
        with open(path + ".err", encoding="utf-8") as file:
            warning = WARNING.search(file.read())
        os.remove(path + ".err")
        if warning and answer != "refused":
            answer, said = answer.replace("accepted", "ignored"), warning.group()
    if said:
        print(f"{setting!r}: {answer}: {said.strip()}")
    return answer


def main():
    settings = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        answers = [ask(setting, folder) for setting in settings]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(answers, file)


if __name__ == "__main__":
    if sys.argv[1] == "child":
        in_child(*sys.argv[2:])
    import torch  # noqa: F401 - loaded once, before the children
    main()

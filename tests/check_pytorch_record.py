#!/usr/bin/env python3
"""check_pytorch_record.py: checks that traces/pytorch_record.py runs a script
as python3 does, and writes a complete snapshot when memory runs out and at the
end. A torch module of a few lines stands for PyTorch."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HELPER = os.path.join(ROOT, "traces", "pytorch_record.py")

TORCH = '''
import types
observers, recorded = [], []
def _dump_snapshot(path):
    assert recorded and path.endswith(".new"), path
    with open(path, "w") as file:
        file.write(path)
cuda = types.SimpleNamespace(memory=types.SimpleNamespace(
    _record_memory_history=lambda: recorded.append(1),
    _dump_snapshot=_dump_snapshot))
_C = types.SimpleNamespace(
    _cuda_attach_out_of_memory_observer=observers.append)
'''

SCRIPT = '''
import sys, torch, beside
assert __name__ == "__main__" and sys.argv[1:] == ["a", "-b"], sys.argv
if sys.argv[0] == "job/oom.py":
    for observer in torch.observers:
        observer(0, 1, 2, 3)
    raise MemoryError
'''


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(script, environment, code, files):
    done = subprocess.run(
        [sys.executable, HELPER, f"job/{script}", "a", "-b"], check=False,
        env={**os.environ, "PYTHONPATH": os.getcwd(), **environment},
        capture_output=True, text=True)
    found = sorted(name for name in os.listdir(".") if ".rank" in name)
    if done.returncode != code or found != files:
        raise SystemExit(f"{script}: exit {done.returncode}, not {code}; "
                         f"{found}, not {files}\n{done.stderr}")
    for name in found:
        os.remove(name)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("job")
        write("torch.py", TORCH)
        write("job/beside.py", "")
        write("job/well.py", SCRIPT)
        write("job/oom.py", SCRIPT)
        run("well.py", {}, 0, ["snapshot.rank0.exit.pickle"])
        run("oom.py", {"RANK": "3", "FRAGSIM_RECORD": "mine"}, 1,
            ["mine.rank3.exit.pickle", "mine.rank3.oom.pickle"])
    return 0


if __name__ == "__main__":
    sys.exit(main())

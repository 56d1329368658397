#!/usr/bin/env python3
"""pool_programs.py measure OUT.tar.xz | digest IN.tar.xz: what small programs hold
in the driver's pool (cudaMallocAsync), and what `cuda_async` reserves for the same
requests.

measure runs four programs each with PyTorch (backend:cudaMallocAsync) and CuPy,
synchronized every step, every ten steps, or only at the end, and packs the logs of
their calls. It needs a GPU, PyTorch, CuPy and a C compiler (CC, default cc), which
builds pool_log.c; a program that fails is left out, and is named.
digest replays the logs and writes data/pool_programs.csv, or the file that --csv
names. Environment: FRAGSIM (default build/fragsim).
"""
import argparse
import csv
import datetime
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tables"))
from places import DATA, ROOT  # noqa: E402
FRAGSIM = os.environ.get("FRAGSIM",
                         os.path.join(ROOT, "build", "fragsim"))
PROGRAMS = ("mlp", "conv", "varlen", "generate")
LIBRARIES = ("torch", "cupy")
PERIODS = (1, 10, 0)  # steps between two synchronizations; 0: at the end only
STEPS = {("torch", "generate"): 12}
DEFAULT_STEPS = 40
SETTINGS = ("sync=1", "run_ahead=0", "run_ahead=3", "run_ahead=10",
            "run_ahead=100", "run_ahead=1000000")
RESERVED_CURRENT, RESERVED_HIGH = 5, 6  # cudaMemPoolAttrReservedMem...
ABOUT = ("40 steps of small programs (12 of generate), cudaMallocAsync and "
         "cudaFreeAsync logged by a preloaded library; paper/gpu/pool_programs.py; "
         "policies: cuda_async:threshold=inf,...")


# ---- the programs ----

def torch_mlp():
    import torch
    from torch import nn
    layers = [m for _ in range(6) for m in (nn.Linear(2048, 2048), nn.GELU())]
    net = nn.Sequential(*layers).cuda()
    return net, lambda: net(
        torch.randn(1024, 2048, device="cuda")).square().mean()


def torch_conv():
    import torch
    from torch import nn
    layers = [m for i in range(5) for m in (
        nn.Conv2d(64 if i else 3, 64, 3, padding=1), nn.BatchNorm2d(64),
        nn.ReLU())]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(64, 10)).cuda()
    return net, lambda: net(torch.randn(
        random.choice([8, 16, 24]), 3, 96, 96,
        device="cuda")).logsumexp(1).mean()


def torch_varlen():
    import torch
    from torch import nn
    net = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4).cuda()
    return net, lambda: net(torch.randn(
        8, random.randint(32, 512), 512, device="cuda")).square().mean()


def torch_generate(period):
    import torch
    from torch import nn
    project = nn.Linear(1024, 3072, bias=False).cuda()
    out = nn.Linear(1024, 1024, bias=False).cuda()

    @torch.no_grad()
    def step():
        x = torch.randn(16, 1, 1024, device="cuda")
        keys = values = torch.zeros(16, 0, 1024, device="cuda")
        for i in range(random.randint(16, 96)):
            query, key, value = project(x).chunk(3, -1)
            keys = torch.cat([keys, key], 1)
            values = torch.cat([values, value], 1)
            x = out(torch.softmax(query @ keys.transpose(1, 2) / 32, -1)
                    @ values)
            if period == 1 and i % 8 == 0:
                x.sum().item()
        return x.sum()
    return None, step


def run_torch(program, period, steps):
    import torch
    torch.manual_seed(0)
    net, step = torch_generate(period) if program == "generate" else \
        {"mlp": torch_mlp, "conv": torch_conv, "varlen": torch_varlen}[program]()
    optimizer = torch.optim.AdamW(net.parameters()) if net else None
    for k in range(steps):
        loss = step()
        if optimizer:
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if period and (k + 1) % period == 0:
            loss.item()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_reserved()


class CupyLog:
    """An allocator of CuPy that calls cudaMallocAsync, as MemoryAsyncPool does, and
    logs in the form of pool_log.c."""

    def __init__(self, path):
        import cupy
        self.runtime, self.last = cupy.cuda.runtime, -1
        self.pool = self.runtime.deviceGetDefaultMemPool(0)
        self.runtime.memPoolSetAttribute(
            self.pool, self.runtime.cudaMemPoolAttrReleaseThreshold,
            (1 << 64) - 1)
        self.file = open(path, "w", encoding="utf-8")
        log, runtime, memory = self, self.runtime, cupy.cuda.memory

        class Block(memory.BaseMemory):
            def __init__(self, size):
                self.ptr, self.size = runtime.mallocAsync(size, 0), size
                self.device_id = 0
                log.say("a", self.ptr, size)

            def __del__(self):
                if self.ptr:
                    log.say("f", self.ptr)
                    runtime.freeAsync(self.ptr, 0)
                    self.ptr = 0

        cupy.cuda.set_allocator(lambda size: cupy.cuda.MemoryPointer(
            Block(size) if size else memory.Memory(0), 0))

    def say(self, op, at=0, size=0):
        reserved = ""
        if op == "a":
            now = self.runtime.memPoolGetAttribute(self.pool, RESERVED_CURRENT)
            if now != self.last:
                reserved = self.last = now
        self.file.write(f"{op},{at:x},{size},0,{time.monotonic_ns()},"
                        f"{reserved}\n")

    def high(self):
        return self.runtime.memPoolGetAttribute(self.pool, RESERVED_HIGH)


def cupy_step(program, cp):
    source = cp.random.RandomState(0)
    weights = [source.standard_normal((1024, 1024), dtype="f4")
               for _ in range(4)]

    def mlp():
        xs = [source.standard_normal((512, 1024), dtype="f4")]
        for w in weights:
            xs.append(cp.maximum(xs[-1] @ w, 0))
        g = xs[-1] - 1
        for i in range(3, -1, -1):
            dw = xs[i].T @ (g * (xs[i + 1] > 0))
            g = (g * (xs[i + 1] > 0)) @ weights[i].T
            weights[i] -= 1e-6 * dw
        return g.sum()

    def conv():
        x = source.standard_normal((random.choice([8, 16, 24]), 512, 512),
                                   dtype="f4")
        for _ in range(4):
            x = cp.fft.irfft2(cp.fft.rfft2(x) * 0.5,
                              s=x.shape[1:]).astype("f4")
        return x.sum()

    def varlen():
        x = source.standard_normal((random.randint(64, 2048), 1024),
                                   dtype="f4")
        for w in weights:
            x = cp.tanh(x @ w)
            s = x @ x.T
            s = cp.exp(s - s.max(1, keepdims=True))
            x = (s / s.sum(1, keepdims=True)) @ x
        return x.sum()

    def generate():
        x = source.standard_normal((16, 1024), dtype="f4")
        keys = cp.zeros((0, 16, 1024), "f4")
        for _ in range(random.randint(16, 96)):
            keys = cp.concatenate([keys, (x @ weights[0])[None]])
            x = cp.tanh((keys * x[None]).mean(0) @ weights[1])
        return x.sum()

    return {"mlp": mlp, "conv": conv, "varlen": varlen,
            "generate": generate}[program]


def run_cupy(program, period, steps):
    import cupy as cp
    log = CupyLog(os.environ["POOL_LOG"])
    step = cupy_step(program, cp)
    for k in range(steps):
        y = step()
        if period and (k + 1) % period == 0:
            y.get()
            log.say("s")
    cp.cuda.Device().synchronize()
    log.say("d")
    high = log.high()
    log.file.close()
    return high


# ---- measure ----

def machine():
    """The first line of the results: GPU, driver, day, versions."""
    gpu = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version",
         "--format=csv,noheader"], check=True, capture_output=True, text=True)
    versions = subprocess.run(
        [sys.executable, "-c", "import torch, cupy; print('torch "
         "%s, cupy %s' % (torch.__version__, cupy.__version__))"],
        check=True, capture_output=True, text=True)
    return "; ".join([gpu.stdout.splitlines()[0],
                      str(datetime.date.today()), versions.stdout.strip(),
                      ABOUT])


def run_child(folder, library, program, period):
    """Runs one program under the log. Returns whether it succeeded."""
    name = f"{library}_{program}_{period}"
    environment = {**os.environ,
                   "POOL_LOG": os.path.join(folder, "requests", name + ".csv")}
    if library == "torch":
        environment["LD_PRELOAD"] = os.path.join(folder, "pool_log.so")
        for key in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            environment[key] = "backend:cudaMallocAsync"
    try:
        done = subprocess.run(
            [sys.executable, os.path.abspath(__file__), "run", library, program,
             str(period)], env=environment, capture_output=True, text=True,
            check=False, timeout=60)
        said = (done.stdout + done.stderr).strip().splitlines() or ["no words"]
        print(f"{name}: {said[-1]}", flush=True)
        ended = done.returncode == 0
    except subprocess.TimeoutExpired:
        print(f"{name}: did not end within 60 s", flush=True)
        ended = False
    if not ended and os.path.exists(environment["POOL_LOG"]):
        os.remove(environment["POOL_LOG"])
    return ended


def measure(out):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "requests"))
        subprocess.run(
            [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o",
             os.path.join(folder, "pool_log.so"),
             os.path.join(HERE, "pool_log.c"), "-ldl", "-lpthread"],
            check=True)
        with open(os.path.join(folder, "requests", "about.txt"), "w",
                  encoding="utf-8") as file:
            file.write(machine() + "\n")
        failed = [f"{library} {program} {period}" for program in PROGRAMS
                  for period in PERIODS for library in LIBRARIES
                  if not run_child(folder, library, program, period)]
        with tarfile.open(out, "w:xz") as tar:
            tar.add(os.path.join(folder, "requests"), "requests")
    for name in failed:
        print("pool_programs: failed:", name, file=sys.stderr)
    return 1 if failed else 0


# ---- digest ----

def peak(path, setting):
    done = subprocess.run(
        [FRAGSIM, "replay", "-q", path, "-p",
         "cuda_async:threshold=inf," + setting, "--json", "-"],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["results"][0]["peak_reserved_bytes"]


def convert(lines, out):
    """Writes the log as a trace. Returns (requests, synchronizations, the most
    that the pool reserved)."""
    live, streams = {}, {}
    requests = synchronizations = high = 0
    out.write("op,id,bytes,stream\n")
    for op, at, size, stream, _, reserved in csv.reader(lines):
        if op in "sde":
            synchronizations += 1
            continue
        number = streams.setdefault(stream, len(streams))
        if op == "a":
            requests += 1
            live[at] = requests
            out.write(f"alloc,{requests},{size},{number}\n")
            high = max(high, int(reserved or 0))
        elif at in live:
            out.write(f"free,{live.pop(at)},,{number}\n")
    return requests, synchronizations, high


def row_of(name, lines, folder):
    path = os.path.join(folder, "trace.csv")
    with open(path, "w", encoding="utf-8") as out:
        requests, synchronizations, high = convert(lines, out)
    if not requests:
        raise SystemExit(f"pool_programs: {name}: no request is in the log")
    library, program, period = name[:-len(".csv")].split("_")
    return {"library": library, "program": program,
            "synchronized_every": period, "requests": requests,
            "synchronizations": synchronizations, "reserved_high_bytes": high,
            **{s.replace("=", "_"): peak(path, s) for s in SETTINGS}}


def digest(archive, out, about):
    rows = []
    with tarfile.open(archive) as tar, \
            tempfile.TemporaryDirectory() as folder:
        files = {os.path.basename(m.name): m for m in tar if m.isfile()}
        if "about.txt" in files:
            about = tar.extractfile(files["about.txt"]).read().decode().strip()
        if not about:
            raise SystemExit(f"pool_programs: {archive} does not state where it "
                             "was measured; use --about TEXT")
        for name in sorted(n for n in files if n.endswith(".csv")):
            text = io.TextIOWrapper(tar.extractfile(files[name]), "utf-8")
            rows.append(row_of(name, text, folder))
    if not rows:
        raise SystemExit(f"pool_programs: {archive} holds no log")
    with open(out, "w", encoding="utf-8") as file:
        file.write(f"# {about}\n")
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{out}: {len(rows)} programs")
    return 0


def run(library, program, period):
    random.seed(0)
    steps = STEPS.get((library, program), DEFAULT_STEPS)
    begin = time.time()
    high = {"torch": run_torch, "cupy": run_cupy}[library](program, period,
                                                           steps)
    print(f"{time.time() - begin:.2f} seconds, peak reserved {high}")
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("measure").add_argument("out")
    part = verbs.add_parser("digest")
    part.add_argument("archive")
    part.add_argument("--csv", default=os.path.join(DATA, "pool_programs.csv"))
    part.add_argument("--about", help="machine, day and versions, for logs that "
                      "do not state these")
    part = verbs.add_parser("run", help="one program, which measure starts")
    part.add_argument("package", choices=LIBRARIES)
    part.add_argument("program", choices=PROGRAMS)
    part.add_argument("period", type=int)
    given = parser.parse_args()
    if given.verb == "measure":
        return measure(given.out)
    if given.verb == "digest":
        return digest(given.archive, given.csv, given.about)
    return run(given.package, given.program, given.period)


if __name__ == "__main__":
    sys.exit(main())

"""truth_programs.py: the programs that truth.py runs, in plain PyTorch. Each is a
generator that yields after every training step or served request, and draws its
lengths and sizes from a generator with a fixed seed, so that it makes the same
requests again under other settings and limits.

PROGRAMS train and serve; LEAKS are programs of which it is known whether they leak,
with the name of the function that allocates what stays. The functions whose memory
stays have a name of their own for that reason.
"""
import collections
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Job:
    """What a program needs of its surroundings. `most` cuts each loop and makes the
    shapes small, for a look at the program without a GPU (None: as it is); `longer`
    makes so many times the steps."""

    def __init__(self, device="cuda", most=None, longer=1):
        self.device, self.most, self.random = device, most, random.Random(11)
        self.longer = longer
        torch.manual_seed(11)

    def budget(self, size):
        """What a batch holds in all, for example tokens."""
        return size if self.most is None else size // 8

    def steps(self, count):
        return range(count * self.longer if self.most is None else min(count, self.most))

    def ids(self, words, *shape):
        """Token numbers as a data loader hands them over."""
        return torch.randint(0, words, shape).to(self.device)

    def normal(self, *shape):
        return torch.randn(*shape, device=self.device)

    def pick(self, *choices):
        return self.random.choice(choices)

    def between(self, low, high, unit=1):
        high = high if self.most is None else min(high, low + 2 * unit)
        return unit * self.random.randrange(low // unit, high // unit + 1)

    def make(self, model, *sizes, kind=torch.float32):
        """A model whose weights are made on the device."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(kind)
        try:
            with torch.device(self.device):
                return model(*sizes)
        finally:
            torch.set_default_dtype(before)

    def mixed(self, kind=torch.bfloat16):
        return torch.autocast(self.device.partition(":")[0], kind)


def adam(model):
    wanted = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(wanted, lr=1e-4)


def update(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


# ---- parts of models ----

class Attention(nn.Module):
    """Attention with `heads` of 64; `cache` is a pair (keys, values) to extend."""

    def __init__(self, width):
        super().__init__()
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.pair = nn.Linear(width, 2 * width)

    def split(self, x):
        return x.unflatten(-1, (-1, 64)).transpose(1, 2)

    def forward(self, x, other=None, causal=False, mask=None, cache=None):
        keys, values = map(self.split, self.pair(x if other is None else other)
                           .chunk(2, -1))
        if cache is not None:
            keys, values = (torch.cat([old, new], 2)
                            for old, new in zip(cache, (keys, values)))
        seen = F.scaled_dot_product_attention(
            self.split(self.query(x)), keys, values, attn_mask=mask, is_causal=causal)
        return self.out(seen.transpose(1, 2).flatten(2)), (keys, values)


class Block(nn.Module):
    def __init__(self, width, cross=False):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own = Attention(width)
        self.cross = Attention(width) if cross else None
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, other=None, causal=False, mask=None):
        x = x + self.own(self.norms[0](x), causal=causal, mask=mask)[0]
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), other)[0]
        return x + self.down(F.gelu(self.up(self.norms[2](x))))

    def serve(self, x, cache):
        """Without gradients: the output, and the extended cache."""
        seen, cache = self.own(self.norms[0](x), causal=cache is None, cache=cache)
        x = x + seen
        return x + self.down(F.gelu(self.up(self.norms[2](x)))), cache


class Gpt(nn.Module):
    def __init__(self, layers, width, words=32000):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(4096, width)
        self.parts = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids, again=0):
        """The first `again` blocks are computed again in the backward pass."""
        x = self.words(ids) + self.places.weight[:ids.shape[1]]
        for number, part in enumerate(self.parts):
            if number < again:
                x = checkpoint(part, x, None, True, use_reentrant=False)
            else:
                x = part(x, causal=True)
        return self.head(self.norm(x))


def next_token(logits, ids):
    return F.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten())


class Residual(nn.Module):
    """Two convolutions with a time embedding, as diffusion models have them."""

    def __init__(self, i, o, time):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, i), nn.GroupNorm(8, o)])
        self.convs = nn.ModuleList([nn.Conv2d(i, o, 3, padding=1),
                                    nn.Conv2d(o, o, 3, padding=1)])
        self.time = nn.Linear(time, o)
        self.short = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        y = self.convs[0](F.silu(self.norms[0](x))) + self.time(t)[:, :, None, None]
        return self.convs[1](F.silu(self.norms[1](y))) + self.short(x)


class Denoiser(nn.Module):
    def __init__(self, widths=(96, 192, 384), time=256):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, widths[0], 3, padding=1)
        self.down, self.up, now, kept = nn.ModuleList(), nn.ModuleList(), widths[0], []
        for wide in widths:
            self.down.append(Residual(now, wide, time))
            now = wide
            kept.append(wide)
        self.middle = Block(now)
        for wide in reversed(kept):
            self.up.append(Residual(now + wide, wide, time))
            now = wide
        self.leave = nn.Conv2d(now, 4, 3, padding=1)

    def forward(self, x, when):
        t, x, skips = self.time(when[:, None]), self.enter(x), []
        for part in self.down:
            x = part(x, t)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        flat = self.middle(x.flatten(2).transpose(1, 2))
        x = flat.transpose(1, 2).reshape_as(x)
        for part in self.up:
            skip = skips.pop()
            x = part(torch.cat([F.interpolate(x, size=skip.shape[-2:]), skip], 1), t)
        return self.leave(x)


# ---- training ----

def diffusion(job):
    """A U-Net with attention and averaged weights, on pictures of many shapes."""
    model = job.make(Denoiser)
    average = [p.detach().clone() for p in model.parameters()]
    optimizer = adam(model)
    for _ in job.steps(20):
        high, wide = job.between(32, 96, 8), job.between(32, 96, 8)
        many = max(2, job.budget(100000) // (high * wide))
        x, noise = job.normal(many, 4, high, wide), job.normal(many, 4, high, wide)
        when = torch.rand(many, device=job.device)
        mixed = torch.lerp(x, noise, when[:, None, None, None])
        with job.mixed():
            loss = F.mse_loss(model(mixed, when).float(), noise)
        update(loss, optimizer)
        torch._foreach_lerp_(average, [p.detach() for p in model.parameters()], 0.01)
        yield


class Vit(nn.Module):
    def __init__(self, layers, width, patch, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.zeros(1, width, 16, 16))
        self.parts = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x)
        x = x + F.interpolate(self.places, size=x.shape[-2:], mode="bilinear")
        x = x.flatten(2).transpose(1, 2)
        for part in self.parts:
            x = part(x)
        return self.head(self.norm(x).mean(1))


def vit_accumulate(job):
    """A vision transformer; four parts of a batch, each of another resolution."""
    model = job.make(Vit, 6, 768, 16, 1000)
    optimizer = adam(model)
    for _ in job.steps(9):
        for _ in range(4):
            side, many = job.pick(160, 192, 224, 256, 320, 384), job.between(6, 18)
            x = torch.rand(many, 3, side, side, device=job.device)
            with job.mixed():
                out = model(x)
            loss = F.cross_entropy(out.float(), job.ids(1000, many)) / 4
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


class Translator(nn.Module):
    def __init__(self, layers=3, width=512, words=32000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.reads = nn.ModuleList(Block(width) for _ in range(layers))
        self.writes = nn.ModuleList(Block(width, cross=True) for _ in range(layers))

    def forward(self, source, target):
        seen = self.words(source)
        for part in self.reads:
            seen = part(seen)
        x = self.words(target)
        for part in self.writes:
            x = part(x, seen, causal=True)
        return x @ self.words.weight.T


def seq2seq(job):
    """Translation: batches of as many tokens, sentences of 12 to 380."""
    model = job.make(Translator)
    optimizer = adam(model)
    for _ in job.steps(16):
        length = job.between(12, 380)
        many = max(1, job.budget(5000) // length)
        other = length * job.between(60, 130) // 100
        source, target = job.ids(32000, many, length), job.ids(32000, many, other)
        with job.mixed():
            logits = model(source, target)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), target[:, 1:].flatten(),
                                   label_smoothing=0.1)
        update(loss, optimizer)
        yield


class LowRank(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, rank, bias=False)
        self.b = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


def low_rank(job):
    """A frozen language model with adapters, evaluated now and then."""
    model = job.make(Gpt, 10, 1536, kind=torch.bfloat16)
    model.requires_grad_(False)
    for part in model.parts:
        part.own.query, part.down = LowRank(part.own.query), LowRank(part.down)
    model = model.to(job.device, torch.bfloat16)
    optimizer = adam(model)
    for step in job.steps(20):
        ids = job.ids(32000, job.pick(1, 1, 2, 3), job.between(64, 2200))
        update(next_token(model(ids), ids), optimizer)
        if step % 8 == 5:
            with torch.no_grad():
                next_token(model(ids[:, :900]), ids[:, :900]).item()
        yield


class Messages(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(3 * width, width), nn.SiLU(),
                                  nn.Linear(width, width))
        self.node = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(),
                                  nn.Linear(width, width), nn.LayerNorm(width))

    def forward(self, x, e, ends):
        e = e + self.edge(torch.cat([x[ends[0]], x[ends[1]], e], 1))
        met = torch.zeros_like(x).index_add_(0, ends[1], e)
        return x + self.node(torch.cat([x, met], 1)), e


def mesh_graphs(job):
    """Messages on meshes of 3,000 to 30,000 nodes."""
    width = 128
    model = nn.ModuleList(Messages(width) for _ in range(5)).to(job.device)
    enter = nn.ModuleList([nn.Linear(12, width), nn.Linear(4, width)]).to(job.device)
    optimizer = adam(nn.ModuleList([model, enter]))
    for _ in job.steps(26):
        nodes = job.between(3000, 30000)
        edges = int(nodes * job.between(30, 80) / 10)
        ends = job.ids(nodes, 2, edges)
        x, e = enter[0](job.normal(nodes, 12)), enter[1](job.normal(edges, 4))
        for part in model:
            x, e = part(x, e, ends)
        update(x.square().mean() + e.square().mean(), optimizer)
        yield


def rnn_language(job):
    """A recurrent language model; the state is carried over stretches of text."""
    words, width, many = 20000, 1024, job.budget(48)
    parts = nn.ModuleDict({"enter": nn.Embedding(words, 512),
                           "run": nn.GRU(512, width, 2, batch_first=True),
                           "leave": nn.Linear(width, words)}).to(job.device)
    optimizer = torch.optim.Adam(parts.parameters())
    state = torch.zeros(2, many, width, device=job.device)
    for _ in job.steps(32):
        ids = job.ids(words, many, job.between(20, 130))
        out, state = parts["run"](parts["enter"](ids), state.detach())
        loss = F.cross_entropy(parts["leave"](out)[:, :-1].flatten(0, 1),
                               ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


def contrast(job):
    """Pictures and words, against each other and a queue of earlier ones."""
    images, texts = job.make(Vit, 6, 384, 32, 256), job.make(Gpt, 4, 384, 16000)
    texts.head = nn.Linear(384, 256, bias=False).to(job.device)
    optimizer = adam(nn.ModuleList([images, texts]))
    queue = F.normalize(job.normal(32768, 256), dim=1)
    for _ in job.steps(16):
        many = job.between(200, 700)
        with job.mixed():
            left = images(torch.rand(many, 3, 224, 224, device=job.device))
            right = texts(job.ids(16000, many, job.between(12, 77))).mean(1)
        left, right = (F.normalize(t.float(), dim=1) for t in (left, right))
        wanted = torch.arange(many, device=job.device)
        logits = left @ torch.cat([right, queue]).T / 0.07
        back = right @ left.T / 0.07
        update(F.cross_entropy(logits, wanted) + F.cross_entropy(back, wanted), optimizer)
        queue = torch.cat([right.detach(), queue])[:32768]
        yield


class Experts(nn.Module):
    """Experts chosen by a hash of the token, so that the choice repeats."""

    def __init__(self, width, count=8):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 3 * width), nn.SiLU(),
                          nn.Linear(3 * width, width)) for _ in range(count))

    def forward(self, x, chosen):
        flat, out = self.norm(x).flatten(0, 1), torch.zeros_like(x).flatten(0, 1)
        for expert, tokens in zip(self.experts, chosen):
            out = out.index_add(0, tokens, expert(flat[tokens]).to(out.dtype))
        return x + out.view_as(x)


def experts(job):
    """A language model with eight experts a layer, of uneven load."""
    words, width = 24000, 640
    enter = nn.Embedding(words, width).to(job.device)
    parts = nn.ModuleList(nn.ModuleList([Block(width), Experts(width)])
                          for _ in range(3)).to(job.device)
    optimizer = adam(nn.ModuleList([enter, parts]))
    for _ in job.steps(14):
        ids = torch.randint(0, words, (job.between(2, 8), job.between(100, 700)))
        routes = [[(ids.flatten() * (97 + layer) % 89 % 8 == e).nonzero().flatten()
                   .to(job.device) for e in range(8)] for layer in range(3)]
        ids = ids.to(job.device)
        with job.mixed():
            x = enter(ids)
            for (own, many), chosen in zip(parts, routes):
                x = many(own(x, causal=True), chosen)
            logits = x @ enter.weight.T
        update(next_token(logits, ids), optimizer)
        yield


def scales(widths, turn, up):
    """Convolutions that double or halve the side."""
    parts = []
    for i, o in zip(widths, widths[1:]):
        parts += [nn.Upsample(scale_factor=2), nn.Conv2d(i, o, 3, padding=1)] if up \
            else [nn.Conv2d(i, o, 4, 2, 1)]
        parts.append(turn())
    return nn.Sequential(*parts)


def adversaries(job):
    """Two networks, two optimizers, a penalty on gradients, growing pictures."""
    maker = scales([128, 256, 256, 128, 64, 3], nn.ReLU, True).to(job.device)
    judge = scales([3, 64, 128, 256, 256, 1], lambda: nn.LeakyReLU(0.2), False)
    judge = judge.to(job.device)
    makes = torch.optim.Adam(maker.parameters(), 2e-4, (0.0, 0.99))
    judges = torch.optim.Adam(judge.parameters(), 2e-4, (0.0, 0.99))
    for step in job.steps(26):
        side, many = job.pick(3, 4, 5, 6, 7), job.between(16, 40)
        real = torch.rand(many, 3, 32 * side, 32 * side, device=job.device)
        real.requires_grad_(step % 4 == 0)
        seed = job.normal(many, 128, side, side)
        says = judge(real)
        loss = F.softplus(-says).mean() + F.softplus(judge(maker(seed).detach())).mean()
        if step % 4 == 0:
            slope, = torch.autograd.grad(says.sum(), real, create_graph=True)
            loss = loss + slope.square().sum((1, 2, 3)).mean()
        update(loss, judges)
        update(F.softplus(-judge(maker(seed))).mean(), makes)
        judges.zero_grad(set_to_none=True)
        yield


def player():
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2),
                         nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 19))


def policy_gradient(job):
    """Rollouts of 12 to 60 moves in many worlds, then training on what they gave."""
    model = player().to(job.device)
    optimizer = adam(model)
    for _ in job.steps(10):
        seen, scores = [], []
        with torch.no_grad():
            for _ in range(job.between(12, 60)):
                view = torch.randint(0, 255, (job.budget(128), 4, 84, 84),
                                     dtype=torch.uint8, device=job.device)
                scores.append(model(view.float() / 255))
                seen.append(view)
        views, olds = torch.cat(seen), torch.cat(scores)
        gains = olds[:, 18] - olds[:, 18].mean()
        for _ in range(2):
            order = torch.randperm(views.shape[0]).to(job.device)
            for some in order.chunk(4):
                out = model(views[some].float() / 255)
                ratio = (out[:, :18].log_softmax(1)[:, 0]
                         - olds[some, :18].log_softmax(1)[:, 0]).exp()
                loss = (out[:, 18] - gains[some]).square().mean() \
                    - (ratio * gains[some]).mean()
                update(loss, optimizer)
        yield


def speech(job):
    """Recognition of utterances of 2 to 20 seconds, sorted into batches."""
    width, words = 512, 1000
    front = nn.Sequential(nn.Conv1d(80, width, 3, 2, 1), nn.GELU(),
                          nn.Conv1d(width, width, 3, 2, 1), nn.GELU()).to(job.device)
    parts = nn.ModuleList(Block(width) for _ in range(6)).to(job.device)
    head = nn.Linear(width, words).to(job.device)
    optimizer = adam(nn.ModuleList([front, parts, head]))
    for _ in job.steps(18):
        frames = job.between(200, 2000, 4)
        many, length = max(2, job.budget(24000) // frames), frames // 4
        with job.mixed():
            x = front(job.normal(many, 80, frames)).transpose(1, 2)
            for part in parts:
                x = part(x)
            says = head(x).float().log_softmax(-1).transpose(0, 1)
        target = job.ids(words - 1, many, length // 8) + 1
        loss = F.ctc_loss(says, target, torch.full((many,), length),
                          torch.full((many,), length // 8))
        update(loss, optimizer)
        yield


def conv3(i, o):
    return nn.Sequential(nn.Conv3d(i, o, 3, padding=1), nn.InstanceNorm3d(o),
                         nn.LeakyReLU(0.1), nn.Conv3d(o, o, 3, padding=1),
                         nn.InstanceNorm3d(o), nn.LeakyReLU(0.1))


def volumes(job):
    """Segmentation of volumes of many shapes in half precision."""
    widths = (24, 48, 96)
    down = nn.ModuleList(conv3(i, o) for i, o in zip((1, *widths), widths)).to(job.device)
    up = nn.ModuleList(conv3(96 + 48, 48) if k == 0 else conv3(48 + 24, 24)
                       for k in range(2)).to(job.device)
    head = nn.Conv3d(24, 5, 1).to(job.device)
    optimizer = adam(nn.ModuleList([down, up, head]))
    scaler = torch.amp.GradScaler(job.device.partition(":")[0], init_scale=64.0)
    for _ in job.steps(16):
        sides = [job.between(40, 104, 8) for _ in range(3)]
        x, skips = job.normal(job.pick(1, 2), 1, *sides), []
        wanted = torch.randint(0, 5, (x.shape[0], *sides), device=job.device)
        with job.mixed(torch.float16):
            for k, part in enumerate(down):
                x = part(F.max_pool3d(x, 2) if k else x)
                skips.append(x)
            skips.pop()
            for part in up:
                x = part(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1))
            loss = F.cross_entropy(head(x), wanted)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        yield


def distill(job):
    """A small model learns the distribution of a large frozen one."""
    teacher = job.make(Gpt, 8, 1280, kind=torch.bfloat16).requires_grad_(False)
    student = job.make(Gpt, 4, 640)
    optimizer = adam(student)
    for _ in job.steps(18):
        ids = job.ids(32000, job.between(1, 6), job.between(60, 900))
        with torch.no_grad():
            wanted = teacher(ids).float().log_softmax(-1)
        with job.mixed():
            out = student(ids, again=2)
        loss = F.kl_div(out.float().log_softmax(-1), wanted, reduction="batchmean",
                        log_target=True)
        update(loss + next_token(out, ids), optimizer)
        yield


def recommend(job):
    """Large tables of embeddings and bags of 1 to 30 numbers."""
    rows, width = job.budget(500_000), 64
    tables = nn.ModuleList(job.make(nn.EmbeddingBag, rows, width) for _ in range(4))
    top = nn.Sequential(nn.Linear(4 * width, 1024), nn.ReLU(), nn.Linear(1024, 1024),
                        nn.ReLU(), nn.Linear(1024, 1)).to(job.device)
    optimizer = adam(nn.ModuleList([tables, top]))
    for _ in job.steps(12):
        many = job.between(4000, 60000)
        x = torch.cat([table(job.ids(rows, many, job.between(1, 30)))
                       for table in tables], 1)
        update(F.binary_cross_entropy_with_logits(
            top(x).squeeze(1), torch.rand(many, device=job.device)), optimizer)
        yield


# ---- serving ----

class Session:
    """One request: the cache of each layer, and the tokens still to make."""

    def __init__(self, model, ids, left):
        self.caches, self.left = [None] * len(model.parts), left
        self.last = self.run(model, ids)

    def run(self, model, ids):
        x = model.words(ids)
        for number, part in enumerate(model.parts):
            x, self.caches[number] = part.serve(x, self.caches[number])
        return model.head(x[:, -1:]).argmax(-1)

    def step(self, model):
        self.last = self.run(model, self.last)
        self.left -= 1


def text_server(job):
    """Generation for up to five requests at a time, each with a cache of its own."""
    model = job.make(Gpt, 4, 2048, kind=torch.bfloat16)
    active = []
    with torch.inference_mode():
        for _ in job.steps(26):
            while len(active) < 5 and job.random.random() < 0.7:
                ids = job.ids(32000, job.pick(1, 2, 4, 8), job.between(60, 2400))
                active.append(Session(model, ids, job.between(3, 12)))
            for session in active:
                session.step(model)
            active = [s for s in active if s.left > 0]
            yield


def embedding_server(job):
    """Sentences to vectors; batches of any size, the last answers kept."""
    model = job.make(Gpt, 8, 1024, kind=torch.float16)
    answers = collections.OrderedDict()
    with torch.inference_mode():
        for number in job.steps(70):
            ids = job.ids(32000, job.between(1, 96), job.between(8, 512))
            x = model.words(ids)
            for part in model.parts:
                x = part(x)
            answers[number] = F.normalize(model.norm(x).float().mean(1), dim=1)
            if len(answers) > 20:
                answers.popitem(last=False)
            yield


PROGRAMS = {f.__name__: f for f in (
    diffusion, vit_accumulate, seq2seq, low_rank, mesh_graphs, rnn_language, contrast,
    experts, adversaries, policy_gradient, speech, volumes, distill, recommend,
    text_server, embedding_server)}


# ---- programs that leak ----

def small_model(job, width=1024):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(),
                         nn.Linear(2 * width, 2 * width), nn.ReLU(),
                         nn.Linear(2 * width, 1000)).to(job.device)


def train_once(job, model, optimizer, many):
    loss = F.cross_entropy(model(job.normal(many, 1024)), job.ids(1000, many))
    update(loss, optimizer)
    return loss.item()


def validate(job, model):
    """A loss whose graph stays with it."""
    return F.cross_entropy(model(job.normal(192, 1024)), job.ids(1000, 192))


def leak_running_loss(job):
    model = small_model(job)
    optimizer, total = adam(model), 0.0
    for _ in job.steps(50):
        train_once(job, model, optimizer, job.between(64, 512))
        total = total + validate(job, model)
        yield


def make_mask(job, length):
    place = torch.arange(length, device=job.device)
    return (place[:, None] < place).to(torch.float16).masked_fill(
        place[:, None] < place, float("-inf"))


def leak_length_cache(job):
    """A server whose masks are kept for every length that came."""
    model, masks = job.make(Gpt, 3, 512, kind=torch.float16), {}
    with torch.inference_mode():
        for _ in job.steps(110):
            length = job.between(100, 1900)
            if length not in masks:
                masks[length] = make_mask(job, length)
            x = model.words(job.ids(32000, job.between(1, 3), length))
            for part in model.parts:
                x = part(x, mask=masks[length])
            model.head(x[:, -1])
            yield


def leak_hook(job):
    """A hook for statistics that keeps what it sees."""
    model, kept = small_model(job), []

    def remember(_module, _inputs, output):
        kept.append(output.detach().float().relu())

    model[2].register_forward_hook(remember)
    optimizer = adam(model)
    for _ in job.steps(60):
        train_once(job, model, optimizer, 256)
        yield


def extend_cache(model, caches, x):
    """One layer after the other; the caches grow."""
    for number, part in enumerate(model.parts):
        x, caches[number] = part.serve(x, caches.get(number))
    return x


def leak_sessions(job):
    """A server that never forgets a session."""
    model, sessions = job.make(Gpt, 3, 512, kind=torch.bfloat16), {}
    with torch.inference_mode():
        for number in job.steps(60):
            sessions[number] = caches = {}
            ids = job.ids(32000, 1, job.between(100, 1500))
            for _ in range(job.between(2, 5)):
                x = extend_cache(model, caches, model.words(ids))
                ids = model.head(x[:, -1:]).argmax(-1)
            yield


def note_metric(job, loss, history):
    """A few KiB a step."""
    history.append(torch.full((job.between(500, 3000),), loss, device=job.device))


def leak_small(job):
    model, history = small_model(job), []
    optimizer = adam(model)
    for _ in job.steps(120):
        note_metric(job, train_once(job, model, optimizer, job.between(64, 512)), history)
        yield


def collect_hard(job, model, hard):
    hard.append(model[:2](job.normal(384, 1024)))


def leak_late(job):
    """Hard examples are collected in the last third, with their graphs."""
    model, hard = small_model(job), []
    optimizer = adam(model)
    for step in job.steps(90):
        train_once(job, model, optimizer, job.between(64, 512))
        if step >= 55:
            collect_hard(job, model, hard)
        yield


def observe(job, store):
    store.append(torch.randint(0, 255, (32, 4, 84, 84), dtype=torch.uint8,
                               device=job.device))


def play(job, store):
    """Moves are stored, and a sample of them is learnt."""
    model = player().to(job.device)
    optimizer = adam(model)
    for _ in job.steps(40):
        for _ in range(6):
            observe(job, store)
        some = torch.cat([store[job.random.randrange(len(store))] for _ in range(3)])
        update(model(some.float() / 255).square().mean(), optimizer)
        yield


def leak_replay(job):
    yield from play(job, [])


# ---- programs that look alike and do not leak ----

def calm_replay(job):
    """The store is full after a third of the run."""
    yield from play(job, collections.deque(maxlen=72))


def calm_lru(job):
    """The cache of masks forgets the oldest."""
    model, masks = job.make(Gpt, 3, 512, kind=torch.float16), {}
    with torch.inference_mode():
        for _ in job.steps(110):
            length = job.between(100, 1900)
            mask = masks.pop(length, None)
            masks[length] = make_mask(job, length) if mask is None else mask
            if len(masks) > 25:
                del masks[next(iter(masks))]
            x = model.words(job.ids(32000, job.between(1, 3), length))
            for part in model.parts:
                x = part(x, mask=masks[length])
            model.head(x[:, -1])
            yield


def train_lengths(job, lengths, before_step=None):
    model = job.make(Gpt, 3, 512, 8000)
    optimizer = adam(model)
    for step, length in zip(job.steps(len(lengths)), lengths):
        if before_step:
            before_step(step, model)
        ids = job.ids(8000, 4, length)
        with job.mixed():
            out = model(ids)
        update(next_token(out, ids), optimizer)
        yield


def calm_warmup(job):
    """Sequences grow in the first third, as a curriculum has it."""
    yield from train_lengths(job, [min(1000, 100 + 60 * s) for s in range(45)])


def calm_sawtooth(job):
    """Sorted by length in each of four passes; ends on the longest."""
    passes = [sorted(job.between(64, 1100) for _ in range(11)) for _ in range(4)]
    yield from train_lengths(job, sum(passes, []))


def calm_average(job):
    """From the middle on, averaged weights are kept; made once."""
    average = []

    def follow(step, model):
        weights = [p.detach() for p in model.parameters()]
        if step == 20:
            average.extend(w.clone() for w in weights)
        elif step > 20:
            torch._foreach_lerp_(average, weights, 0.01)

    yield from train_lengths(job, [job.between(200, 600) for _ in range(40)], follow)


def calm_evaluation(job):
    """Every ten steps logits are collected over a whole set; the run ends within."""
    model = small_model(job)
    optimizer = adam(model)
    for step in job.steps(49):
        train_once(job, model, optimizer, job.between(64, 512))
        yield
        if step % 10 == 8:
            logits = []
            with torch.no_grad():
                for _ in range(12):
                    logits.append(model(job.normal(2048, 1024)))
                    if step > 40:
                        yield
            torch.cat(logits).argmax(1).float().mean().item()
            del logits


def calm_unfreeze(job):
    """Layers are trained one after the other, so gradients and moments come late."""
    model = job.make(Gpt, 6, 512, 8000).requires_grad_(False)
    model.head.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-4)
    for step in job.steps(45):
        if step % 5 == 4 and step // 5 < len(model.parts):
            part = model.parts[-1 - step // 5].requires_grad_(True)
            optimizer.add_param_group({"params": list(part.parameters())})
        ids = job.ids(8000, 4, job.between(200, 500))
        with job.mixed():
            out = model(ids)
        update(next_token(out, ids), optimizer)
        yield


def calm_generation(job):
    """One long text: the cache grows to the end of the run."""
    model, caches = job.make(Gpt, 3, 1024, kind=torch.bfloat16), {}
    with torch.inference_mode():
        ids = job.ids(32000, 4, 700)
        for _ in job.steps(90):
            x = extend_cache(model, caches, model.words(ids))
            ids = model.head(x[:, -1:]).argmax(-1)
            yield


def calm_load(job):
    """A model is loaded, layer after layer; nothing else happens."""
    loaded = {}
    for number in job.steps(40):
        for name, shape in (("qkv", (3072, 1024)), ("out", (1024, 1024)),
                            ("up", (4096, 1024)), ("down", (1024, 4096)),
                            ("norm", (1024,))):
            read = torch.empty(shape)
            loaded[number, name] = read.to(job.device).to(torch.bfloat16)
        yield


# Program: does it leak, and which function allocates what stays.
LEAKS = {
    leak_running_loss: (True, "validate"), leak_length_cache: (True, "make_mask"),
    leak_hook: (True, "remember"), leak_sessions: (True, "extend_cache"),
    leak_small: (True, "note_metric"), leak_late: (True, "collect_hard"),
    leak_replay: (True, "observe"), calm_replay: (False, None), calm_lru: (False, None),
    calm_warmup: (False, None), calm_sawtooth: (False, None), calm_average: (False, None),
    calm_evaluation: (False, None), calm_unfreeze: (False, None),
    calm_generation: (False, None), calm_load: (False, None),
}
TRUTH = {f.__name__: truth for f, truth in LEAKS.items()}
EVERY = PROGRAMS | {f.__name__: f for f in LEAKS}

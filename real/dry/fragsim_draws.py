"""What the kernels of PyTorch draw on a GPU, computed on the CPU: each function is told
the seed and the offset that the generator had before (Random).

This file avoids syntax that an older Python lacks.
"""
import torch

MOST = 1 << 23  # numbers that one operator draws here


class Unknown(Exception):
    """A value that nothing tells."""


def philox(seed, offset, count, threads):
    """The numbers of 32 bits that a kernel of PyTorch draws for `count` elements, as
    int64: Philox4x32-10 (Salmon et al., SC 2011, as cuRAND seeds it), whose counter is
    the offset of the generator and the number of the thread. A thread takes four
    numbers a turn, `threads` elements apart."""
    low, turns = 0xffffffff, -(-count // (4 * threads))
    turn = torch.arange(offset // 4, offset // 4 + turns).view(-1, 1)
    x, y = turn & low, turn >> 32
    z, w = torch.arange(threads).view(1, -1), torch.zeros(1, dtype=torch.int64)
    keys = seed & low, seed >> 32 & low
    for _ in range(10):
        one, other = x * 0xD2511F53, z * 0xCD9E8D57
        x, y, z, w = ((other >> 32 & low) ^ y ^ keys[0], other & low,
                      (one >> 32 & low) ^ w ^ keys[1], one & low)
        keys = keys[0] + 0x9E3779B9 & low, keys[1] + 0xBB67AE85 & low
    return torch.stack((x, y, z, w), 1)


class Random:
    """The numbers that the kernels of one operator draw on the GPU."""

    def __init__(self, device, generator):
        index = torch.cuda.current_device() if device.index is None else device.index
        generator = generator or torch.cuda.default_generators[index]
        gpu = torch.cuda.get_device_properties(index)
        self.most = gpu.multi_processor_count * (
            gpu.max_threads_per_multi_processor // 256)
        self.seed, self.offset = generator.initial_seed(), generator.get_offset()

    def words(self, count):
        """A tensor of turns, the four numbers of a thread, and threads."""
        if not 0 < count <= MOST:
            raise Unknown
        return philox(self.seed, self.offset, count,
                      256 * min(self.most, -(-count // 256)))

    def integers(self, shape, low, high):
        if not 0 < high - low < 1 << 28:
            raise Unknown
        count = torch.Size(shape).numel()
        return (self.words(count).flatten()[:count] % (high - low) + low).view(shape)

    def uniform(self, shape):
        """Numbers above 0 and at most 1, as curand_uniform4."""
        count = torch.Size(shape).numel()
        return ((self.words(count).flatten()[:count].double() + 0.5) / 2**32) \
            .float().view(shape)

    def normal(self, shape):
        """As curand_normal4: Box and Muller's transform of two numbers each."""
        count = torch.Size(shape).numel()
        words = (self.words(count).double() + 0.5) / 2**32
        radius = (-2 * words[:, 0::2].log()).sqrt()
        angle = 2 * torch.pi * words[:, 1::2]
        pairs = torch.stack((radius * angle.sin(), radius * angle.cos()), 2)
        return pairs.flatten()[:count].float().view(shape)


def _bounds(args, kwargs, low, high):
    """The two numbers of a distribution after the tensor, by place or name."""
    numbers = list(args[1:3])
    names = [name for name in ("from", "to", "mean", "std", "low", "high")
             if name in kwargs]
    numbers += [kwargs[name] for name in names]
    return (numbers + [low, high][len(numbers):])[:2]


def draw_integers(random, shape, args, kwargs):
    low, high = args[:2] if len(args) == 3 else (0, args[0])
    return random.integers(shape, low, high)


def draw_integers_in_place(random, shape, args, kwargs):
    rest = args[1:]
    if not 1 <= len(rest) <= 2 or rest[-1] is None:
        raise Unknown
    return random.integers(shape, 0 if len(rest) == 1 else rest[0], rest[-1])


def draw_like(random, shape, args, kwargs):
    rest = args[1:]
    return random.integers(shape, 0 if len(rest) == 1 else rest[0], rest[-1])


def draw_uniform(random, shape, args, kwargs):
    low, high = _bounds(args, kwargs, 0.0, 1.0)
    value = random.uniform(shape) * (high - low) + low
    return torch.where(value == high, torch.full_like(value, low), value)


def draw_standard_uniform(random, shape, args, kwargs):
    return draw_uniform(random, shape, (), {})


def draw_normal(random, shape, args, kwargs):
    mean, std = _bounds(args, kwargs, 0.0, 1.0)
    return random.normal(shape) * std + mean


def draw_standard_normal(random, shape, args, kwargs):
    return random.normal(shape)


def draw_categories(random, shape, args, kwargs):
    """One sample a row: the largest of the weights divided by exponential numbers."""
    weights = args[0].float()
    if (args[1] if len(args) > 1 else kwargs["num_samples"]) != 1:
        raise Unknown
    exponential = -random.uniform(weights.shape).clamp(max=1 - 2.0**-24).log()
    return (weights / exponential).argmax(-1, keepdim=True)


# Operators that draw, and what the GPU draws: a function of its numbers and the shape.
DRAWN = {"aten::randint": draw_integers, "aten::randint_like": draw_like,
         "aten::random_": draw_integers_in_place, "aten::rand": draw_standard_uniform,
         "aten::rand_like": draw_standard_uniform, "aten::uniform_": draw_uniform,
         "aten::randn": draw_standard_normal, "aten::randn_like": draw_standard_normal,
         "aten::normal_": draw_normal, "aten::multinomial": draw_categories}

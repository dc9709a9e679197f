#!/usr/bin/env python3
"""peers.py LIBRARY LINES SECONDS: times the workloads of bench_gpu's lines by torch (torch.compile), jax, cupy, or numpy, which
is for machines without a GPU, and prints lines like those. It starts none after so many seconds."""
import importlib
import math
import re
import statistics
import sys
import time

REPEATS = 20
REST = 0.1  # before products, as in main.cc
PRODUCTS = ("dense", "dense_bf16")
WORKLOADS = {}


def workload(function):
    """Of the library, of `make`, which gives an array of random numbers, and of the extents: operands, and what to call with them."""
    WORKLOADS[function.__name__] = function
    return function


@workload
def triad(xp, make, n):
    return [make((n,)) for _ in range(3)], lambda a, b, c: a * b + c * 0.5


def adam_step(xp, p, m, v, g):
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p - m * 0.001 / (xp.sqrt(v) + 1e-8), m, v


def adam_operands(make, n):
    return [make((n,)), make((n,), 0, 0.1), make((n,), 0, 0.1), make((n,))]


@workload
def adam(xp, make, n):
    return adam_operands(make, n), lambda *of: adam_step(xp, *of)


@workload
def update_of_tensors(xp, make, tensors):
    operands = [adam_operands(make, 64 + k * 7919 % 16384) for k in range(tensors)]
    return operands, lambda *all: [adam_step(xp, *of) for of in all]


@workload
def black_scholes(xp, make, n):
    def price(spot, strike, years):
        def normal(x):
            return 0.5 + 0.5 * xp.erf(x * 0.70710678)
        spread = xp.sqrt(years) * 0.3
        d1 = (xp.log(spot / strike) + years * (0.02 + 0.5 * 0.3 * 0.3)) / spread
        return spot * normal(d1) - strike * xp.exp(years * -0.02) * normal(d1 - spread)
    return [make((n,), 50, 150), make((n,), 60, 140), make((n,), 0.2, 2)], price


@workload
def mixed_f16(xp, make, n):
    halves = [make((n,), dtype="float16") for _ in range(2)]
    return [halves[0], make((n,)), halves[1]], lambda a, b, c: xp.cast(a, "float32") * b + xp.cast(c, "float32")


@workload
def saxpy_i8(xp, make, n):
    return [make((n,), -128, 127, "int8") for _ in range(2)], lambda x, y: x * 3 + y


@workload
def sum_of_500(xp, make, n):
    return [make((n,)) for _ in range(500)], lambda *x: sum(x[1:], x[0])


@workload
def gelu(xp, make, rows, columns):
    big = (rows, columns)
    return [make(big, -2, 2), make(big, -2, 2), make((columns,))], lambda a, b, bias: xp.gelu(a * b + bias)


@workload
def softmax(xp, make, rows, columns):
    def function(x):
        e = xp.exp(x - xp.amax(x, 1)[:, None])
        return e / e.sum(1)[:, None]
    return [make((rows, columns), -4, 4)], function


@workload
def softmax_gradient(xp, make, rows, columns):
    return [make((rows, columns), 0, 0.002), make((rows, columns))], lambda y, g: y * (g - (y * g).sum(1)[:, None])


@workload
def layernorm(xp, make, rows, columns):
    def function(x):
        d = x - x.mean(1)[:, None]
        return d / xp.sqrt((d * d).mean(1) + 1e-5)[:, None]
    return [make((rows, columns), -4, 4)], function


@workload
def layernorm_gradient(xp, make, rows, columns):
    def function(x, g, mean, variance):
        scale = (1 / xp.sqrt(variance + 1e-5))[:, None]
        normal = (x - mean[:, None]) * scale
        return scale * (g - g.mean(1)[:, None] - normal * (g * normal).mean(1)[:, None])
    return [make((rows, columns), -4, 4), make((rows, columns)), make((rows,), -0.1, 0.1), make((rows,), 4, 6)], function


@workload
def log_sum_exp(xp, make, rows, columns):
    def function(x):
        most = xp.amax(x, 1)
        return most + xp.log(xp.exp(x - most[:, None]).sum(1))
    return [make((rows, columns), -4, 4)], function


@workload
def transpose(xp, make, rows, columns):
    return [make((rows, columns)), make((columns, rows))], lambda a, b: a.T * 2 + b


@workload
def concat_4_of(xp, make, rows, columns):
    return [make((rows, columns)) for _ in range(4)], lambda *x: xp.concatenate(x, 1)


@workload
def take(xp, make, count, columns):
    return [make((count,), 0, count - 1, "int32"), make((count, columns))], lambda index, x: xp.take(x, index)


@workload
def mean_variance(xp, make, n, c, h, w):
    def function(x):
        mean = x.mean((0, 2))
        d = x - mean[None, :, None]
        return mean, (d * d).mean((0, 2))
    return [make((n, c, h * w))], function


@workload
def patch2col_3x3(xp, make, n, c, h, w):
    def function(x):
        x = xp.permute(x, (1, 0, 2, 3))
        patches = [x[:, :, i:i + h - 2, j:j + w - 2].reshape(c, -1) for i in range(3) for j in range(3)]
        return xp.stack(patches, 1).reshape(c * 9, -1)
    return [make((n, c, h, w))], function


def windows(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2)


@workload
def max_pool_2x2(xp, make, n, c, h, w):
    return [make((n, c, h, w))], lambda x: xp.amax(windows(x), (3, 5))


@workload
def max_unpool_2x2(xp, make, n, c, h, w):
    def function(x, pooled, g):
        most = windows(x) == pooled[:, :, :, None, :, None]
        return xp.where(most, g[:, :, :, None, :, None], 0.0).reshape(x.shape)
    x = make((n, c, h, w))
    return [x, xp.amax(windows(x), (3, 5)), make((n, c, h // 2, w // 2))], function


@workload
def dense(xp, make, rows, inner, columns, dtype="float32"):
    shapes = (rows, inner), (inner, columns), (columns,)
    return [make(shape, dtype=dtype) for shape in shapes], lambda x, w, bias: xp.relu(x @ w + bias)


@workload
def dense_bf16(xp, make, *extents):
    return dense(xp, make, *extents, dtype="bfloat16")


class OfArrays:
    """What the interfaces of CuPy, JAX and NumPy have alike."""
    own = {}  # workloads that it has a way of its own for: of the operands, what to call

    def __init__(self, module):
        self.module = module
        for name in ("exp", "log", "sqrt", "where", "stack", "concatenate"):
            setattr(self, name, getattr(module, name))
        self.amax, self.permute = module.max, module.transpose

    def cast(self, x, dtype):
        return x.astype(dtype)

    def take(self, x, index):
        return self.module.take(x, index, 0)

    def relu(self, x):
        return self.module.maximum(x, 0)

    def gelu(self, x):
        return 0.5 * x * (1 + self.module.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def compiled(self, function):
        return function


class NumPy(OfArrays):
    def __init__(self):
        super().__init__(importlib.import_module("numpy"))
        self.erf, self.random = self.module.vectorize(math.erf, "f"), self.module.random.default_rng(7)

    def make(self, shape, low=-1, high=1, dtype="float32"):
        return (self.random.random(shape, "float32") * (high - low) + low).astype(dtype)

    def time(self, call, times):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        return (time.perf_counter() - begin) * 1e6


class CuPy(OfArrays):
    def __init__(self):
        super().__init__(importlib.import_module("cupy"))
        self.erf = importlib.import_module("cupyx.scipy.special").erf

    def make(self, shape, low=-1, high=1, dtype="float32"):
        return (self.module.random.random(shape, dtype="float32") * (high - low) + low).astype(dtype)

    def time(self, call, times):
        begin, end = (self.module.cuda.Event() for _ in range(2))
        begin.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        return self.module.cuda.get_elapsed_time(begin, end) * 1e3


class Jax(OfArrays):
    def __init__(self):
        self.jax = importlib.import_module("jax")
        if self.jax.default_backend() != "gpu":
            raise RuntimeError(f"JAX is for {self.jax.default_backend()} here, expected gpu; install jax[cuda12] or jax[cuda13]")
        self.jax.config.update("jax_default_matmul_precision", "highest")  # f32, not TF32
        super().__init__(importlib.import_module("jax.numpy"))
        self.erf, self.relu, self.gelu = self.jax.scipy.special.erf, self.jax.nn.relu, self.jax.nn.gelu
        self.compiled, self.key = self.jax.jit, self.jax.random.key(7)

    def make(self, shape, low=-1, high=1, dtype="float32"):
        self.key, key = self.jax.random.split(self.key)
        return self.jax.random.uniform(key, shape, "float32", low, high).astype(dtype)

    def time(self, call, times):  # it has no events
        last = self.jax.block_until_ready(call())
        begin = time.perf_counter()
        for _ in range(times):
            last = call()
        self.jax.block_until_ready(last)
        return (time.perf_counter() - begin) * 1e6


class Torch:
    def __init__(self):
        self.torch = torch = importlib.import_module("torch")
        if not torch.cuda.is_available():
            raise RuntimeError("torch finds no GPU; install a torch that is built for CUDA")
        for name in ("exp", "log", "sqrt", "where", "stack", "erf", "relu", "amax", "permute"):
            setattr(self, name, getattr(torch, name))
        self.concatenate, self.own = torch.cat, {"update_of_tensors": self.update}

    def cast(self, x, dtype):
        return x.to(getattr(self.torch, dtype))

    def take(self, x, index):
        return self.torch.index_select(x, 0, index)

    def gelu(self, x):
        return self.torch.nn.functional.gelu(x, approximate="tanh")

    def update(self, operands):
        """The optimizer's own kernel for many tensors; torch.compile makes one for each."""
        parameters = [p.requires_grad_() for p, _, _, _ in operands]
        for p, _, _, g in operands:
            p.grad = g
        return self.torch.optim.Adam(parameters, fused=True).step

    def compiled(self, function):
        self.torch._dynamo.reset()
        return self.torch.compile(function, dynamic=False)

    def make(self, shape, low=-1, high=1, dtype="float32"):
        return self.cast(self.torch.empty(shape, device="cuda").uniform_(low, high), dtype)

    def time(self, call, times):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3


def median(library, call, rest):
    """Median microseconds of a call, of five times up to twenty, as many as take 20 ms; `rest` seconds before each nothing runs."""
    call()
    library.time(call, 1)
    times = int(min(max(20e3 / max(library.time(call, 1), 1), 1), REPEATS))
    rounds = []
    for _ in range(5):
        time.sleep(rest)
        rounds.append(library.time(call, times) / times)
    return statistics.median(rounds)


def run(library, kind, extents):
    operands, function = WORKLOADS[kind](library, library.make, *extents)
    if kind in library.own:
        call = library.own[kind](operands)
    else:
        compiled = library.compiled(function)
        call = lambda: compiled(*operands)
    return median(library, call, REST if kind in PRODUCTS else 0)


def main():
    name, lines, seconds = sys.argv[1:]
    end = time.monotonic() + float(seconds)
    with open(lines) as file:
        names = list(dict.fromkeys(line.split("\t")[0] for line in file))
    library = {"torch": Torch, "jax": Jax, "cupy": CuPy, "numpy": NumPy}[name]()
    for of in names:
        kind, _, extents = of.rpartition("_")
        if kind not in WORKLOADS:
            continue
        try:
            if time.monotonic() > end:
                raise TimeoutError("there is no time left for it")
            print(f"{of}\t{name}\t{run(library, kind, map(int, extents.split('x'))):.3f}", flush=True)
        except Exception as error:  # a workload that a library cannot run; the others go on
            why = " ".join(str(error).split())[:300]
            print(f"{of}\t{name}\terror\t{type(error).__name__}: {why}", flush=True)


main()

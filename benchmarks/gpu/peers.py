#!/usr/bin/env python3
"""The workloads of bench_gpu by torch.compile, JAX and CuPy, where they are installed: the same lines of JSON."""
import json
import math
import statistics
import sys
import time

ELEMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 28
ROWS, SIDE = max(1, ELEMENTS // 1024), math.isqrt(ELEMENTS)
N = 8192 if ELEMENTS >= 1 << 26 else 256


def show(workload, library, us, size=0.0, operations=0.0):
    print(json.dumps({"workload": workload, "library": library, "us": round(us, 3), "GBps": round(size / us / 1e3, 1),
                      "TFLOPS": round(operations / us / 1e6, 1)}), flush=True)


def median(run, wait):
    """Median microseconds of a call: five times twenty."""
    for _ in range(3):
        run()
    wait()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(20):
            run()
        wait()
        times.append((time.perf_counter() - begin) / 20 * 1e6)
    return statistics.median(times)


def workloads(xp, gelu):
    """name, function, shapes of its operands, elements moved"""
    def adam(p, g, m, v):
        m2, v2 = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
        return p - m2 * 0.001 / (xp.sqrt(v2) + 1e-8), m2, v2

    def softmax(x):
        e = xp.exp(x - xp.amax(x, 1)[:, None])
        return e / e.sum(1)[:, None]

    def layernorm(x, g, b):
        d = x - (x.sum(1) / 1024)[:, None]
        return d / xp.sqrt((d * d).sum(1) / 1024 + 1e-5)[:, None] * g + b

    n, big = (ELEMENTS,), (ROWS, 1024)
    yield "triad", lambda a, b: a * 0.001 + b, [n, n], 3 * ELEMENTS
    yield "gelu", lambda x, b: gelu(x + b), [big, (1024,)], 2 * ROWS * 1024
    yield "adam", adam, [n] * 4, 7 * ELEMENTS
    yield "softmax", softmax, [big], 2 * ROWS * 1024
    yield "layernorm", layernorm, [big, (1024,), (1024,)], 2 * ROWS * 1024
    yield "transpose", lambda x: xp.ascontiguousarray(x.T), [(SIDE, SIDE)], 2 * SIDE * SIDE
    yield "channel_statistics", lambda x: (x.sum(0), (x * x).sum(0)), [big], ROWS * 1024


def run_all(library, xp, gelu, compiled, array, wait):
    for name, function, shapes, moved in workloads(xp, gelu):
        try:
            operands = [array(shape) for shape in shapes]
            call = compiled(function)
            show(name, library, median(lambda: call(*operands), wait), 4.0 * moved)
        except Exception as error:  # one workload that a library cannot run is left out
            print(f"{library}: {name}: {error}", file=sys.stderr)


def torch_peer():
    import torch

    class Names:
        exp, sqrt = torch.exp, torch.sqrt
        amax = staticmethod(lambda x, axis: torch.amax(x, axis))
        ascontiguousarray = staticmethod(lambda x: x.contiguous())
    run_all("torch", Names, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), torch.compile,
            lambda shape: torch.full(shape, 0.5, device="cuda"), torch.cuda.synchronize)
    a, b = (torch.full((N, N), 0.25, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    bias = torch.full((N,), 0.5, device="cuda", dtype=torch.bfloat16)
    product = torch.compile(lambda a, b, c: torch.relu(a @ b + c))
    show("relu_dot_bias_bf16", "torch", median(lambda: product(a, b, bias), torch.cuda.synchronize), 0, 2.0 * N**3)


def jax_peer():
    import jax
    import jax.numpy as jnp
    last = []

    def compiled(function):
        jitted = jax.jit(function)

        def call(*operands):
            last[:] = [jitted(*operands)]
        return call
    # A transpose that stays one: JAX would only change the layout.
    class Names:
        exp, sqrt, amax = jnp.exp, jnp.sqrt, jnp.max
        ascontiguousarray = staticmethod(lambda x: x + 0.0)
    run_all("jax", Names, lambda x: jax.nn.gelu(x, approximate=True), compiled, lambda shape: jnp.full(shape, 0.5, jnp.float32),
            lambda: jax.block_until_ready(last))


def cupy_peer():
    import cupy

    def gelu(x):
        return x * 0.5 * (1 + cupy.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    run_all("cupy", cupy, gelu, lambda function: function, lambda shape: cupy.full(shape, 0.5, cupy.float32),
            cupy.cuda.runtime.deviceSynchronize)


for peer in (torch_peer, jax_peer, cupy_peer):
    try:
        peer()
    except Exception as error:  # not installed, or not for this GPU
        print(f"{peer.__name__}: {error}", file=sys.stderr)

#!/usr/bin/env python3
"""build_time.py UMBRA_EXTRACT [ROUNDS] [TARGET]: what a build pays for a file of 50 marked functions, one target.

Compares the file's eager templates with the generated kernels: as objects, which umbra-extract makes, and as sources,
with g++ and clang++ where there is one. Medians of interleaved rounds; seconds of processors, and of the clock where a step has
threads. What is left out of a link (debug information, symbols) is left out of the sizes, too.
"""
import glob
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPIES = 5
# Each in COPIES versions that differ in N, a number, and OP, an operator.
OPERATORS = ["tanh", "sigmoid", "relu", "abs", "square"]
KERNELS = [
    "chain@(Tensor<cpu, 2> y, Tensor<cpu, 2> a, Tensor<cpu, 2> b) { y = F<op::OP>(a * b + N) * (1.0f - a) + b; }",
    "bias@(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> bias) { y = F<op::OP>(x * N + broadcast<1>(bias, x.shape_)); }",
    "gate@(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 2> g, float s) { y = F<op::OP>(x) * F<op::sigmoid>(g * s) - N; }",
    "swish_@(Tensor<cpu, 1> y, Tensor<cpu, 1> x, float beta) { y = F<swish>(F<op::OP>(x) + N, scalar(beta)); }",
    "momentum@(Tensor<cpu, 2> w, Tensor<cpu, 2> v, Tensor<cpu, 2> g, float r) { v *= 0.1f * N; v -= r * F<op::OP>(g); w += v; }",
    "norm@(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> mean) { mean = reduce_with_axis<red::mean>(F<op::OP>(x) * N, 1);"
    " y = x - broadcast<0>(mean, x.shape_); }",
    "soft@(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> s) { y = F<op::exp>(x * N - broadcast<0>(reduce_with_axis<red::maximum>(x, 1), x.shape_));"
    " s = reduce_with_axis<red::sum>(y, 1); y /= broadcast<0>(s, y.shape_); y = F<op::OP>(y); }",
    "columns@(Tensor<cpu, 1> s, Tensor<cpu, 2> x) { s = sum_rows(F<op::OP>(x) * x + N); }",
    "blend@(Tensor<cpu, 2> y, Tensor<cpu, 2> a, Tensor<cpu, 2> b) { y = F<op::maximum>(F<op::OP>(a), b * N) / (F<op::abs>(b) + 1.0f); }",
    "turned@(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 2> z) { y = F<op::OP>(x.T() * N) + z; }",
]


def marked_file():
    text = "#include <umbra/tensor.h>\nusing namespace umbra;\nusing namespace umbra::expr;\n"
    text += "UMBRA_OP(swish, (x, beta), x / (1 + exp(-beta * x)))\n"
    for kernel in KERNELS:
        for copy in range(COPIES):
            text += "UMBRA_KERNEL void " + kernel.replace("@", str(copy)).replace("OP", OPERATORS[copy]).replace("N", "%d.5f" % (copy + 1)) + "\n"
    return text


def run(command, folder):
    """Seconds of processors and of the clock."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, env=dict(os.environ, UMBRA_CACHE_DIR="off"), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("build_time: %s\n%s" % (" ".join(command), done.stderr))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start


def loaded_bytes(pattern):
    """Of all objects: what a program has of them in memory."""
    objects = sorted(glob.glob(pattern))
    table = subprocess.run(["size"] + objects, check=True, capture_output=True, text=True).stdout
    return sum(int(line.split()[0]) + int(line.split()[1]) for line in table.splitlines()[1:])


def main():
    extract = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    target = sys.argv[3] if len(sys.argv) > 3 else "avx2"
    compilers = [name for name in ("g++", "clang++-19") if shutil.which(name)]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernels.cc"), "w") as file:
            file.write(marked_file())
        flags = ["-std=c++17", "-I" + os.path.join(ROOT, "include")]
        run([extract, "kernels.cc", "--strict", "--out", "sources", "--name", "nn", "--targets", target, "--", *flags], folder)
        with open(os.path.join(folder, "sources", "nn.%s.cc" % target)) as file:
            kernel_flags = re.search("Compile with (.*)", file.readline()).group(1).split()
        base = [extract, "kernels.cc", "--strict", "--name", "nn", "--targets", target]
        march = {"sse2": [], "avx2": ["-mavx2", "-mfma", "-mf16c"], "avx512": ["-march=skylake-avx512"]}[target]
        steps = {}
        if "clang++-19" in compilers:
            steps["clang++ -fsyntax-only"] = (["clang++-19", "-fsyntax-only", *flags, "kernels.cc"], None)
        steps["umbra-extract, sources"] = (base + ["--out", "sources", "--as", "sources", "--", *flags], None)
        steps["umbra-extract, objects"] = (base + ["--out", "objects", "--as", "objects", "--", *flags], "objects/*.o")
        steps["tables by g++ -O2"] = (["g++", "-O2", *flags, "-c", "sources/nn.cc", "-o", "tables.o"], "tables.o")
        for compiler in compilers:
            name = compiler.replace("-19", "")
            steps["eager by %s -O2" % name] = ([compiler, "-O2", *march, "-ffp-contract=off", *flags, "-c", "kernels.cc", "-o", "eager.%s.o" % name], "eager.%s.o" % name)
            steps["kernels by %s" % name] = ([compiler, *flags, *kernel_flags, "-c", "sources/nn.%s.cc" % target, "-o", "kernels.%s.o" % name], "kernels.%s.o" % name)
        seconds = {step: [] for step in steps}
        for _ in range(rounds):
            for step, (command, _) in steps.items():
                seconds[step].append(run(command, folder))
        median = {step: [statistics.median(column) for column in zip(*times)] for step, times in seconds.items()}
        print("| 50 kernels, %s, median of %d | processor s | clock s | bytes loaded |\n|---|---|---|---|" % (target, rounds))
        for step, (_, made) in steps.items():
            size = loaded_bytes(os.path.join(folder, made)) if made else "-"
            print("| %s | %.2f | %.2f | %s |" % (step, *median[step], size))
        eager = min(median["eager by %s -O2" % c.replace("-19", "")][0] for c in compilers)
        ours = median["umbra-extract, objects"][0] + median["tables by g++ -O2"][0]
        print("\nobjects and tables over the eager templates by the faster compiler: %.2f" % (ours / eager))
        if "clang++ -fsyntax-only" in median:
            print("extraction over clang++ -fsyntax-only: %.2f" % (median["umbra-extract, sources"][0] / median["clang++ -fsyntax-only"][0]))


main()

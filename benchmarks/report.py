#!/usr/bin/env python3
"""Writes the results of umbra_bench as Markdown: medians and ratios of one run."""
import json
import subprocess
import sys

from results import PEERS, medians

OURS = ["umbra_eager", "umbra_fast", "umbra_jit", "umbra_jit_2threads"]
# Data of fewer bytes may lie in the caches, whose bandwidth is no limit of the machine.
LEAST_BYTES = 16e6

with open(sys.argv[1]) as file:
    data = json.load(file)
context = data["context"]
rows, traffic = {}, {}
for workload, peer, entry in medians(data):
    rows.setdefault(workload, {})[peer] = entry["real_time"] / 1e3
    traffic[workload] = entry["read"], entry["written"]
# GB/s by the share of the bytes that is written.
MIXES = {"read": 0, "triad": 0.25, "copy": 0.5, "write": 1}
bandwidth = {"machine": {}, "machine_2threads": {}}
for mix in MIXES:
    moved = sum(traffic.pop(f"limit_{mix}", ()))
    for threads, us in rows.pop(f"limit_{mix}", {}).items():
        bandwidth[threads][mix] = moved / us * 1e-3


def limit_us(read, written):
    """The least time for so many bytes: the bandwidth of the mixtures measured, and between them by the share written."""
    points = [(share, mix) for mix, share in MIXES.items()]
    share = written / (read + written)
    for (low, first), (high, last) in zip(points, points[1:]):
        if share <= high:
            part = (share - low) / (high - low)
            per_byte = (1 - part) / bandwidth["machine"][first] + part / bandwidth["machine"][last]
            return (read + written) * per_byte * 1e-3


peers = [p for p in PEERS if any(p in results for results in rows.values())] + OURS
commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
print("# Benchmark results\n")
repetitions = max(entry["repetitions"] for _, _, entry in medians(data))
command = "scripts/bench" + ("" if repetitions == 9 else f" --repetitions {repetitions}")
print(f"Written by `{command}`. Medians of {repetitions} interleaved repetitions in one run; compare ratios, not times.\n")
print(f"- machine: {model}, {context['num_cpus']} processors; date: {context['date'][:10]}; commit: {commit}")
for threads, key in ((1, "machine"), (2, "machine_2threads")):
    print(f"- bandwidth, timed among the workloads, with {threads} thread(s), what is written going past the caches: "
          + ", ".join(f"{mix} {gbps:.1f}" for mix, gbps in bandwidth[key].items()) + " GB/s")
print("- peers, one thread: hand-written loops and intrinsics (g++ -O3 -march=native -ffast-math), Eigen 3.4, xtensor 0.24 + xsimd, "
      "each -march=native; Halide 14 with a schedule by hand, oneDNN 2.6 where it has the primitive")
print("- peers, two threads: oneDNN's own; of the hand-written loops, Eigen and Halide a half of the work on each of two threads of OpenMP; "
      "the best is of one thread where two are slower")
print("- umbra_fast: products that are summed are not rounded (`--math fast`), as the peers' compilers may do; umbra_jit: strict")
print("- limit / jit: 1 is the machine's bandwidth for the bytes that a workload has to read and write\n")
print("| workload | " + " | ".join(p + " us" for p in peers) + " | jit GB/s | best peer / fast | best peer / jit | limit / jit | jit 1 / 2 threads | best peer us, 2 threads | best peer / jit, 2 threads |")
print("|---" * (len(peers) + 8) + "|")
for workload, times in rows.items():
    cells = [f"{times[p]:.3g}" if p in times else "-" for p in peers]
    read, written = traffic[workload]
    rivals = [times[p] for p in PEERS if p in times]
    jit = times.get("umbra_jit")
    if jit is None:
        continue
    best = f"{min(rivals) / jit:.2f}" if rivals else "-"
    fast = f"{min(rivals) / times['umbra_fast']:.2f}" if rivals and "umbra_fast" in times else "-"
    limit = f"{limit_us(read, written) / jit:.2f}" if read + written >= LEAST_BYTES and len(bandwidth["machine"]) == len(MIXES) else "-"
    threads = f"{jit / times['umbra_jit_2threads']:.2f}" if "umbra_jit_2threads" in times else "-"
    both = min((times[p] for peer in PEERS for p in (peer, peer + "_2threads") if p in times), default=None)
    best_both = f"{both:.3g}" if both else "-"
    ratio = f"{both / times['umbra_jit_2threads']:.2f}" if both and "umbra_jit_2threads" in times else "-"
    print(f"| {workload} | " + " | ".join(cells) + f" | {(read + written) / jit * 1e-3:.1f} | {fast} | {best} | {limit} | {threads} | {best_both} | {ratio} |")
for path, title in zip(sys.argv[2:], ("Compiling", "A program in mshadow's style", "Steps that run as one", "Compiled ahead of time", "What a build pays")):
    print(f"\n## {title}\n")
    with open(path) as file:
        print(file.read().strip())

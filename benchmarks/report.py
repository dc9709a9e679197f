#!/usr/bin/env python3
"""Writes the results of umbra_bench as Markdown: medians and ratios of one run."""
import json
import subprocess
import sys

with open(sys.argv[1]) as file:
    data = json.load(file)
context = data["context"]
rows = {}
for entry in data["benchmarks"]:
    if entry.get("aggregate_name") != "median":
        continue
    workload, peer = entry["run_name"].split("/")[:2]
    rows.setdefault(workload, {})[peer] = (entry["real_time"], entry["GB/s"])
commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
triad = float(context["triad_GBps_1"]), float(context["triad_GBps_2"])
print("# Benchmark results\n")
print("Written by `scripts/bench`. Medians of 5 interleaved repetitions in one run; compare ratios, not times.\n")
print(f"- machine: {model}, {context['num_cpus']} processors; date: {context['date'][:10]}; commit: {commit}")
print(f"- triad bandwidth with non-temporal stores, same run: {triad[0]:.1f} GB/s (1 thread), {triad[1]:.1f} GB/s (2 threads)")
print("- peers: hand-written loops (g++ -O3 -march=native -ffast-math), Eigen 3.4, xtensor 0.24 + xsimd, each -march=native, 1 thread\n")
peers = ["hand", "eigen", "xtensor", "umbra_eager", "umbra_jit", "umbra_jit_2threads"]
print("| workload | " + " | ".join(p + " us" for p in peers) + " | jit GB/s | best peer / jit | jit 1 / 2 threads |")
print("|---" * (len(peers) + 4) + "|")
for workload, results in rows.items():
    times = {p: results[p][0] / 1e3 for p in peers if p in results}
    best = min(times[p] for p in ("hand", "eigen", "xtensor"))
    cells = [f"{times[p]:.3g}" if p in times else "-" for p in peers]
    print(f"| {workload} | " + " | ".join(cells) + f" | {results['umbra_jit'][1]:.1f} | "
          f"{best / times['umbra_jit']:.2f} | {times['umbra_jit'] / times['umbra_jit_2threads']:.2f} |")
if len(sys.argv) > 2:
    print("\n## Compiling\n")
    for line in open(sys.argv[2]):
        print("- " + line.strip())

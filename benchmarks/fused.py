#!/usr/bin/env python3
"""Writes the results of fused_bench as Markdown: medians and ratios of one run."""
import json
import sys

from results import medians

COLUMNS = ["bare_product", "product_and_pass", "hand", "umbra_jit", "umbra_jit_2threads"]

with open(sys.argv[1]) as file:
    run = json.load(file)
rows = {}
for workload, who, entry in medians(run):
    rows.setdefault(workload, {})[who] = entry["real_time"] / 1e3
print("| steps | " + " | ".join(f"{c} us" for c in COLUMNS) + " | bare product / jit | apart / jit | jit 1 / 2 threads |")
print("|---" * (len(COLUMNS) + 4) + "|")
for workload, times in sorted(rows.items()):
    jit, apart = times["umbra_jit"], times.get("product_and_pass", times.get("hand"))
    cells = [f"{times[c]:.4g}" if c in times else "-" for c in COLUMNS]
    bare = f"{times['bare_product'] / jit:.2f}" if "bare_product" in times else "-"
    print(f"| {workload} | " + " | ".join(cells) + f" | {bare} | {apart / jit:.2f} | {jit / times['umbra_jit_2threads']:.2f} |")

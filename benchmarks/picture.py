#!/usr/bin/env python3
"""Draws a run of umbra_bench as SVG: for each workload, how the peers' times compare with the generated kernel's."""
import json
import math
import sys

from results import PEERS, medians

# Colours that people with colour blindness tell apart (Okabe and Ito), and marks for everybody.
MARKS = {"hand": ("#000000", "cross"), "eigen": ("#0072b2", "circle"), "xtensor": ("#e69f00", "square"),
         "halide": ("#009e73", "diamond"), "onednn": ("#cc79a7", "triangle")}
ROW, LEFT, WIDTH, TOP, RIGHT = 20, 230, 520, 58, 30
# Shorter calls measure the call.
LEAST_US = 1


def mark(peer, x, y):
    colour, kind = MARKS[peer]
    r = 4.5
    shapes = {
        "circle": f'<circle cx="{x:.1f}" cy="{y}" r="{r}"/>',
        "square": f'<rect x="{x - r + .5:.1f}" y="{y - r + .5}" width="{2 * r - 1}" height="{2 * r - 1}"/>',
        "diamond": f'<path d="M{x:.1f} {y - r - 1} l{r + 1} {r + 1} l{-r - 1} {r + 1} l{-r - 1} {-r - 1} z"/>',
        "triangle": f'<path d="M{x:.1f} {y - r} l{r + .5} {2 * r - 1} h{-2 * r - 1} z"/>',
        "cross": f'<path d="M{x - r + 1:.1f} {y - r + 1} l{2 * r - 2} {2 * r - 2} m0 {2 - 2 * r} l{2 - 2 * r} {2 * r - 2}" '
                 f'stroke="{colour}" stroke-width="2"/>'}
    return f'<g fill="{colour}">{shapes[kind]}</g>'


with open(sys.argv[1]) as file:
    run = json.load(file)
times = {}
for workload, who, entry in medians(run):
    times.setdefault(workload, {})[who] = entry["real_time"] / 1e3
ratios = {}
for workload, of in times.items():
    jit = of.get("umbra_jit", 0)
    if jit >= LEAST_US and any(p in of for p in PEERS):
        ratios[workload] = {p: of[p] / jit for p in PEERS if p in of}
if not ratios:
    sys.exit("picture: the run has no workload with a generated kernel and a peer")
order = sorted(ratios, key=lambda w: min(ratios[w].values()), reverse=True)
least = min(0.5, min(min(r.values()) for r in ratios.values()))
most = max(2, max(max(r.values()) for r in ratios.values()))
low, high = math.log(least) - 0.05, math.log(most) + 0.05


def at(ratio):
    return LEFT + WIDTH * (math.log(ratio) - low) / (high - low)


bottom = TOP + ROW * len(order)
out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{bottom + 42}" '
       'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="#ffffff"/>']
x = LEFT
for peer, name in PEERS.items():
    if any(peer in r for r in ratios.values()):
        out += [mark(peer, x, 20), f'<text x="{x + 10}" y="24">{name}</text>']
        x += 24 + 7 * len(name)
for tick in [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]:
    if low <= math.log(tick) <= high:
        colour, width = ("#d55e00", 2) if tick == 1 else ("#cccccc", 1)
        out += [f'<path d="M{at(tick):.1f} {TOP - 8} V{bottom}" stroke="{colour}" stroke-width="{width}"/>',
                f'<text x="{at(tick):.1f}" y="{bottom + 15}" text-anchor="middle">{tick:g}</text>']
out += [f'<text x="{at(1):.1f}" y="{TOP - 13}" text-anchor="middle" fill="#d55e00" font-weight="bold">Umbra</text>',
        f'<text x="{(LEFT + WIDTH + RIGHT) / 2:.0f}" y="{bottom + 33}" text-anchor="middle">'
        "time as a multiple of Umbra's kernel: one thread, calls of 1 us and more; right of the line is slower</text>"]
for row, workload in enumerate(order):
    y = TOP + ROW * row + ROW // 2
    out += [f'<path d="M{LEFT} {y} H{LEFT + WIDTH}" stroke="#eeeeee"/>',
            f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{workload.replace("_", " ")}</text>']
    out += [mark(p, at(r), y) for p, r in ratios[workload].items()]
print("\n".join(out + ["</svg>"]))

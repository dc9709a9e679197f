"""Runs of umbra_bench, as report.py and picture.py read them."""

# By the name in a benchmark: who that is.
PEERS = {"hand": "hand-written loop", "eigen": "Eigen", "xtensor": "xtensor", "halide": "Halide", "onednn": "oneDNN"}


def medians(run):
    """(workload, who, the benchmark's entry) of each median of `run`, the JSON of Google Benchmark."""
    for entry in run["benchmarks"]:
        if entry.get("aggregate_name") == "median":
            workload, who = entry["run_name"].split("/")[:2]
            yield workload, who, entry

#!/usr/bin/env python3
"""The concurrency table: runs each row on each implementation, interleaved in random order, and prints medians as Markdown.

    currency.py --impl lade-rt=PATH --impl tokio-tuned=PATH [--threads 1,2] [--reps 5] [--rows spsc,...] [--raw FILE]

One process a run, pinned to the first N CPUs. A run counts if it ends in time with the right checksum. Beside the median of the
rate stands the smallest and largest; latencies are medians of the runs'. `best` compares the fastest runs, which a busy machine
disturbs least."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys

ROWS = {  # name: workload, size, capacity
    "mpmc": ("mpmc", 4000000, 1024), "mpmc-cap1": ("mpmc", 400000, 1),
    "spsc": ("spsc", 4000000, 1024), "spsc-cap1": ("spsc", 400000, 1),
    "mpsc": ("mpsc", 4000000, 1024), "mpsc-cap1": ("mpsc", 400000, 1),
    "pingpong": ("pingpong", 300000, 1),
    "select": ("select", 4000000, 1024), "select-cap1": ("select", 400000, 1),
    "spawn-10k": ("spawn", 10000, 1), "spawn-1m": ("spawn", 1000000, 1),
    "cpu": ("cpu", 2000000, 1), "mutex": ("mutex", 4000000, 1),
    "idle-10k": ("idle", 10000, 1), "idle-100k": ("idle", 100000, 1), "idle-1m": ("idle", 1000000, 1),
}
TIMEOUT = 300


def expected(workload, size):
    if workload in ("spsc", "mpsc", "mpmc", "select", "spawn"):
        return size * (size - 1) // 2
    return {"pingpong": 2 * size, "mutex": size, "idle": size}.get(workload)


def run(path, row, threads, variant):
    workload, size, capacity = ROWS[row]
    cpus = ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:threads])
    cmd = ["taskset", "-c", cpus, path, "--workload", workload, "--threads", str(threads), "--size", str(size),
           "--capacity", str(capacity)] + (["--variant", variant] if variant else [])
    env = dict(os.environ, BENCH_ENV_PAD="x" * random.randrange(4096))
    env.pop("GOMAXPROCS", None)
    try:
        out = subprocess.run(cmd, capture_output=True, timeout=TIMEOUT, env=env, check=True).stdout
        result = json.loads(out)
    except (subprocess.SubprocessError, ValueError) as e:
        print(f"{path} {row} {threads}: {e}", file=sys.stderr)
        return None
    want = expected(workload, size)
    if want is not None and result["checksum"] != want:
        print(f"{path} {row} {threads}: wrong checksum {result['checksum']}", file=sys.stderr)
        return None
    return result


def cell(results, row):
    if not results:
        return "failed", 0.0, 0.0
    if row.startswith("idle"):
        value = statistics.median(r["bytes_per_task"] for r in results)
        return f"{value:.0f} B", value, value
    rates = sorted(r["ops_per_sec"] / 1e6 for r in results)
    text = f"{statistics.median(rates):.3g} [{rates[0]:.3g}, {rates[-1]:.3g}]"
    if row == "pingpong":
        text += " p50 {:.0f} p99 {:.0f}".format(*(statistics.median(r[k] for r in results) for k in ("lat_p50_ns", "lat_p99_ns")))
    return text, statistics.median(rates), rates[-1]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--impl", action="append", required=True, metavar="NAME[+VARIANT]=PATH")
    a.add_argument("--threads", default="1,2")
    a.add_argument("--reps", type=int, default=5)
    a.add_argument("--rows", default=",".join(r for r in ROWS if not r.startswith("idle")))
    a.add_argument("--raw")
    args = a.parse_args()
    impls = [i.split("=", 1) for i in args.impl]
    raw = open(args.raw, "w", encoding="utf-8") if args.raw else None
    print(f"load before: {os.getloadavg()[0]:.1f}\n")
    print("| row | threads | " + " | ".join(n for n, _ in impls) + " | median, first : best other | best, first : best other |")
    print("|---|---|" + "---|" * (len(impls) + 2))
    for row in args.rows.split(","):
        for threads in (int(t) for t in args.threads.split(",")):
            got = {n: [] for n, _ in impls}
            for _ in range(args.reps):
                for name, path in random.sample(impls, len(impls)):
                    r = run(path, row, threads, name.partition("+")[2])
                    if r:
                        got[name].append(r)
                        if raw:
                            raw.write(json.dumps(dict(r, row=row, impl=name)) + "\n")
            cells = [cell(got[n], row) for n, _ in impls]
            ratio = ["-", "-"]
            for k in (1, 2):
                others = [c[k] for c in cells[1:] if c[k] > 0]
                if others and cells[0][k] > 0:
                    ratio[k - 1] = f"{min(others) / cells[0][k]:.2f}" if row.startswith("idle") else f"{cells[0][k] / max(others):.2f}"
            print(f"| {row} | {threads} | " + " | ".join(c[0] for c in cells) + f" | {ratio[0]} | {ratio[1]} |", flush=True)
    print(f"\nload after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""resque B25: what resque-bench writes, and what resque-benchmark 0.1.2 writes, fit the published schema; what fits neither does not.

usage: schema_test.py RESQUE_BENCH TEST_ON_STORE   (the second starts a private redis-server and runs what follows on it)
"""
import copy
import json
import os
import subprocess
import sys

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = json.load(open(os.path.join(HERE, "../../docs/resque-bench.schema.json"), encoding="utf-8"))


def fits(document):
    return list(jsonschema.Draft7Validator(SCHEMA).iter_errors(document))


# The fields that the original has, with the types that its source gives them.
ORIGINAL = {
    "tag": "redis-8.6.2",
    "timestamp": "2026-08-18T10:11:12.123456789+00:00",
    "config": {"url": "redis://127.0.0.1:6379/13", "workers": [10], "jobs_per_trial": 500, "queues": ["default"],
               "warmup_jobs": 0, "poll_interval_ms": 5000, "idle_poll_duration_s": 30},
    "results": [{
        "workers": 10, "total_jobs": 500, "duration_s": 1.25, "jobs_per_sec": 400.0, "timed_out": False,
        "throughput_per_sec": [400], "errors_per_sec": [0], "latency_per_sec_us": {"p50": [620], "max": [5200]},
        "latency_us": {"p50": 1, "p75": 1, "p90": 1, "p95": 1, "p99": 1, "p99_9": 1, "p99_99": 1, "max": 1, "mean": 1.5,
                       "total_count": 500},
        "errors": 0,
        "idle_poll": {"duration_s": 30.0, "total_lpop_calls": 60, "idle_poll_qps": 2.0, "per_worker_qps": 0.2}}],
}


def run(bench, url, *args):
    done = subprocess.run([bench, "--url", url, "--output", "-", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def fail(text):
    print(text)
    sys.exit(1)


def on_server(bench, url):
    runs = [
        ["--workers", "2,3", "--jobs", "50", "--idle-poll-duration-s", "1", "--poll-interval-ms", "100"],
        ["--workers", "2", "--jobs", "50", "--no-idle", "--warmup-jobs", "10", "--poll-profile", "resque"],
        ["--workers", "2", "--jobs", "50", "--modes", "poll,blpop,blmove,native", "--idle-poll-duration-s", "1",
         "--poll-interval-ms", "50", "--pickup-jobs", "2", "--rate", "50", "--rate-duration-s", "1"],
    ]
    ours = None
    for args in runs:
        ours = run(bench, url, *args)
        for error in fits(ours):
            fail(f"{args}: {list(error.path)}: {error.message}")
        for one in ours["results"]:
            if not isinstance(one["duration_s"], float) or not isinstance(one["jobs_per_sec"], float):
                fail("duration_s and jobs_per_sec must be floats")
    # The schema is one that can say no: to any of our fields missing, and to wrong types.
    for path in (["results", 0, "cost"], ["results", 0, "idle_poll", "clean"], ["config", "namespace"], ["host"],
                 ["results", 0, "latency_us", "p99_9"], ["results", 0, "idle_poll", "total_lpop_calls"]):
        broken = copy.deepcopy(ours)
        at = broken
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]
        if not fits(broken):
            fail(f"the schema takes a report without {path}")


def main():
    if sys.argv[2] == "--url":
        on_server(sys.argv[1], sys.argv[3])
        return
    errors = fits(ORIGINAL)
    if errors:
        fail(f"the original's report: {list(errors[0].path)}: {errors[0].message}")
    skipped = copy.deepcopy(ORIGINAL)
    skipped["results"][0]["idle_poll"]["skipped_reason"] = "12 jobs still queued"
    if fits(skipped):
        fail("the original's report with a skipped idle phase")
    for key in ORIGINAL["results"][0]:
        broken = copy.deepcopy(ORIGINAL)
        broken["results"][0][key] = "text"
        if not fits(broken):
            fail(f"the schema takes text for {key}")
    bench, on_store = sys.argv[1:3]
    again = [on_store, "redis", sys.executable, os.path.abspath(__file__), bench, "--url", "{}"]
    sys.exit(subprocess.run(again, check=False).returncode)


if __name__ == "__main__":
    main()

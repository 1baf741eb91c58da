#!/usr/bin/env python3
"""The driver contract (../README.md) over a load tool that speaks resque-benchmark's flags: lade's and the original.

resque_tool.py --tool PROGRAM [--original] --scenario NAME --set KEY=VALUE ...

CPU is that of the whole process of the tool, for both alike; the server's is from INFO around it. Counts are the tool's samples
(latency_us.total_count), checked with the queue being empty afterwards and with what the server counted.
"""
import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

SCENARIOS = ["resque-drain", "resque-idle"]
POPS = {"poll": "lpop", "blpop": "blpop", "blmove": "blmove"}


class Redis:
    """Enough of a client for INFO and LLEN."""

    def __init__(self, url):
        u = urllib.parse.urlsplit(url)
        if u.scheme == "unix":
            self.s = socket.socket(socket.AF_UNIX)
            self.s.connect(u.path)
        else:
            self.s = socket.create_connection((u.hostname, u.port or 6379))
        self.f = self.s.makefile("rb")

    def ask(self, *words):
        self.s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
        line = self.f.readline()
        if line[:1] == b"$":
            return self.f.read(int(line[1:]) + 2)[:-2].decode() if line[1:2] != b"-" else None
        return line[1:].strip().decode()

    def look(self):
        info = dict(l.split(":", 1) for l in self.ask("INFO", "all").splitlines() if ":" in l)
        calls = {k[8:]: int(v.split("calls=")[1].split(",")[0]) for k, v in info.items() if k.startswith("cmdstat_")}
        return {"cpu": float(info["used_cpu_sys"]) + float(info["used_cpu_user"]), "calls": calls,
                "commands": int(info["total_commands_processed"]), "version": info["redis_version"]}


def command(tool, original, url, p, out):
    idle = p["scenario"] == "resque-idle"
    workers = p["workers"]
    args = [tool, "--url", url, "--db", "13", "--quiet", "--output", out, "--workers", workers, "--queue", "load",
            "--jobs", p.get("n", "1000"), "--poll-interval-ms", p.get("interval_ms", "5000"),
            "--idle-poll-duration-s", p.get("seconds", "1") if idle else "1"]
    if original:
        return args
    if not idle:
        args.append("--no-idle")
    else:
        args += ["--pickup-jobs", p.get("wakes", "20"), "--pickup-gap-ms", p.get("gap_ms", "100")]
    for key, flag in (("connections", "--connections"), ("profile", "--poll-profile"), ("modes", "--modes"),
                      ("min_ms", "--poll-min-ms"), ("backoff_ms", "--poll-backoff-ms")):
        if key in p:
            args += [flag, p[key]]
    if "min_ms" in p:
        args += ["--poll-max-ms", p.get("interval_ms", "5000")]
    return args


def latency_of(us):
    return {"count": us["total_count"], "p50": us["p50"], "p90": us["p90"], "p95": us["p95"], "p99": us["p99"],
            "p999": us["p99_9"], "max": us["max"]}


def drain_line(one, cpu, server):
    n = one["latency_us"]["total_count"]
    seconds = n / one["jobs_per_sec"] if one["jobs_per_sec"] else one["duration_s"]
    return {"n": n, "seconds": seconds, "rate": one["jobs_per_sec"], "printed_rate": one["jobs_per_sec"],
            "latency": latency_of(one["latency_us"]), "verified": {"count": n, "checksum": 0},
            "extra": {"client_us_per_job": cpu * 1e6 / max(n, 1), "server_us_per_job": server["cpu"] * 1e6 / max(n, 1),
                      "server_commands_per_job": server["commands"] / max(n, 1)}}


def idle_line(one, original, params, cpu, server):
    idle = one["idle_poll"]
    seconds = idle["duration_s"]
    pickup = None if original else one["pickup"]
    if original:  # nothing but LPOP comes from it, and the server's CPU of the window is not known: the whole run's is no answer
        extra = {"commands_per_s": idle["total_lpop_calls"] / seconds}
    else:
        cost = idle["cost"]
        extra = {"commands_per_s": cost["server_commands"] / cost["seconds"],
                 "server_cpu_ms_per_s": cost["server_cpu_s"] * 1e3 / cost["seconds"],
                 "client_cpu_ms_per_s": cost["client_cpu_s"] * 1e3 / cost["seconds"],
                 "bytes_per_s": (cost["server_bytes_in"] + cost["server_bytes_out"]) / cost["seconds"]}
    done = one["total_jobs"] if original else pickup["jobs_done"]
    return {"n": done, "seconds": seconds, "rate": None, "printed_rate": None,
            "latency": latency_of(pickup["pickup_us"]) if pickup else None, "verified": {"count": done, "checksum": 0},
            "extra": extra}


def check(one, original, server, n):
    if one["timed_out"] or one["errors"]:
        sys.exit("timed out, or errors: " + json.dumps({k: one[k] for k in ("timed_out", "errors")}))
    if not original and not (one["verified"] and (one["mode"] == "native" or one["cost"]["commands"]["match"])):
        sys.exit("the tool could not verify its own work")
    if original and server["calls"].get("lpop", 0) < n:
        sys.exit("the server counted fewer LPOP than there were jobs")


def watch_memory(process):
    """Waits for its end; its largest resident size. (ru_maxrss would be that of this interpreter, which it was a copy of.)"""
    most = None
    while process.poll() is None:
        try:
            for line in open(f"/proc/{process.pid}/status", encoding="utf-8"):
                if line.startswith("VmHWM:"):
                    most = int(line.split()[1]) * 1024
        except OSError:
            pass
        time.sleep(0.02)
    return most


def run(tool, original, p):
    redis = Redis(p["url"])
    before = redis.look()
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        said = os.path.join(folder, "said")
        with open(said, "wb") as err:
            tool_run = subprocess.Popen(command(tool, original, p["url"], p, out), stdout=subprocess.DEVNULL, stderr=err)
            rss = watch_memory(tool_run)
        if tool_run.returncode != 0:
            sys.stderr.write(open(said, encoding="utf-8", errors="replace").read()[-300:])
            sys.exit(1)
        one = json.load(open(out, encoding="utf-8"))["results"][0]
    after = redis.look()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    calls = {k: v - before["calls"].get(k, 0) for k, v in after["calls"].items()}
    server = {"cpu": after["cpu"] - before["cpu"], "commands": after["commands"] - before["commands"] - 1, "calls": calls}
    n = int(p.get("n", "1000"))
    check(one, original, server, n)
    left = redis.ask("DBSIZE")
    if not original and left != "0":
        sys.exit(f"{left} keys are left in the database")
    line = drain_line(one, cpu, server) if p["scenario"] == "resque-drain" else idle_line(one, original, p, cpu, server)
    line.update({"client_cpu_s": cpu, "rss_bytes": rss, "server_cpu_s": server["cpu"],
                 "server_commands": server["commands"], "errors": one["errors"]})
    return line


def version_of(tool):
    done = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return done.stdout.decode().split()[1]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--tool", required=True)
    a.add_argument("--original", action="store_true")
    a.add_argument("--scenario")
    a.add_argument("--set", action="append", default=[])
    a.add_argument("--list", action="store_true")
    o = a.parse_args()
    name = "resque-benchmark" if o.original else "resque-tool"
    try:
        version = version_of(o.tool)
    except (OSError, subprocess.CalledProcessError, IndexError) as e:
        sys.exit(f"{o.tool}: {e}")
    if o.list:
        print(json.dumps({"driver": name, "version": version, "scenarios": SCENARIOS}))
        return
    p = dict(s.split("=", 1) for s in o.set)
    if o.scenario not in SCENARIOS:
        sys.stderr.write(f"{name} has no {o.scenario}\n")
        sys.exit(2)
    p["scenario"] = o.scenario
    line = run(o.tool, o.original, p)
    number = {k: int(v) if v.isdigit() else v for k, v in p.items() if k not in ("url", "scenario")}
    print(json.dumps({"driver": name, "version": version, "scenario": o.scenario, "params": number, **line}))


if __name__ == "__main__":
    main()

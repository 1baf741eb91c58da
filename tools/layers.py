#!/usr/bin/env python3
"""The layer law: an include may only point down the picture of ARCHITECTURE.md. Prints each line that breaks it."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Layer of a file -> what it may include. "public" is <lade/*.h>; a name is that folder of src/.
STORES = ["store/memory", "store/redis", "store/resque", "store/sqlite"]
MAY = {
    "include": {"public"},
    "base": {"public", "base"},
    "rt": {"public", "base", "rt"},
    "resque": {"public", "base", "resque"},
    "queue": {"public", "base", "rt", "queue"},
    "compose": {"public", "base", "rt", "queue", *STORES},
    "cli": {"public", "base", "cli"},
    # A load tool that speaks the wire protocol itself: it stands beside the engine, on the connection of the Redis store.
    "resque_bench": {"public", "base", "rt", "resque", "store/redis", "resque_bench"},
    "web": {"public", "base", "web"},
    "bench": {"public", "base", "bench", "support"},  # support: the private redis-server it measures on
    "examples": {"public", "examples"},
}
for store in STORES:
    MAY[store] = {"public", "base", "rt", "store/common", store}
MAY["store/resque"] |= {"resque", "store/redis"}  # its bytes, and the connection
MAY["store/common"] = {"public", "base", "rt", "store/common"}

# Of the queue layer a store sees the contract and nothing else.
CONTRACT = {"queue/store.h", "queue/flow.h", "queue/event.h", "queue/limit.h", "queue/schedule_store.h",
            "queue/bound.h", "queue/beat.h", "queue/control_store.h", "queue/dead_store.h",
            "queue/flow_store.h", "queue/key_store.h"}
# System headers that block or make threads: only the seam and what lies below it may use them (seam.h says why).
BLOCKING = {"pthread.h", "poll.h", "sys/epoll.h", "sys/select.h", "threads.h"}
MAY_BLOCK = {"base", "rt", "cli", "resque_bench", "bench", "examples"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def layer_of(path):
    """The layer of a path below src/, or of a header as it is included."""
    parts = path.split("/")
    if parts[0] == "store":
        return "store/" + parts[1] if len(parts) > 2 else "store/common"
    return parts[0] if len(parts) > 1 else "compose"


def sources():
    for top in ("src", "include", "examples", "bench"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def check(path):
    top, rest = path.split("/", 1)
    own = layer_of(rest) if top == "src" else top
    is_test = path.endswith("_test.c")
    for number, line in enumerate(open(os.path.join(ROOT, path), encoding="utf-8"), 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        kind, name = m.groups()
        if kind == "<" and not name.startswith("lade/"):
            if name in BLOCKING and own not in MAY_BLOCK and not is_test:
                yield f"{path}:{number}: <{name}> in {own}: block through rt/seam.h only"
            continue
        if kind == "<":
            target = "public"
        elif "/" not in name:
            yield f'{path}:{number}: "{name}": write the path from src/'
            continue
        else:
            target = layer_of(name)
        if is_test and target in ("support", "tests"):
            continue
        if target in MAY.get(own, set()) or (own.startswith("store/") and name in CONTRACT):
            continue
        if own == "store/resque" and name in ("queue/job.h", "queue/history.h"):
            continue  # what it stores is not the envelope but what is in it
        if is_test and own.startswith("store/") and target == "queue":
            continue  # a store's test may make real envelopes
        yield f"{path}:{number}: {own} may not include {name}"


def main():
    n = 0
    broken = []
    for path in sources():
        n += 1
        broken += check(path)
    print("\n".join(broken) if broken else f"layers: {n} files, every include points down")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The size and neatness law of the tree: files of at most 600 lines (800 is the end), file names that occur once, nothing
unfinished without an issue number. Functions are held to their size by clang-tidy. Prints each breach."""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("src", "include", "tests", "fuzz", "examples", "bench", "tools", "scripts", "cmake", ".ci")
CODE = (".c", ".h", ".cc", ".lua", ".sql", ".py", ".sh", ".cmake")
WARN, FAIL = 600, 800
# The public headers are books that read from front to back.
LONGER = {"include/lade/lade.h": 1000, "include/lade/rt.h": 1000}
# The stores are twins on purpose: op_put.c of one answers op_put.c of the other. Public headers and examples have their folder.
TWIN = re.compile(r"^src/store/[^/]+/|^include/|^examples/")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")


def files():
    for top in FOLDERS:
        for folder, names_in, names in os.walk(os.path.join(ROOT, top)):
            names_in[:] = [d for d in names_in if d not in ("corpora", "__pycache__")]
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                if name.endswith(CODE) or top in ("scripts", ".ci"):
                    yield path


def main():
    failures, warnings = [], []
    where = collections.defaultdict(list)
    n = 0
    for path in files():
        n += 1
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            lines = f.readlines()
        limit = LONGER.get(path, FAIL)
        if len(lines) > limit:
            failures.append(f"{path}: {len(lines)} lines, at most {limit}: split it by verb")
        elif len(lines) > WARN and path not in LONGER:
            warnings.append(f"{path}: {len(lines)} lines, better at most {WARN}")
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                failures.append(f"{path}:{number}: unfinished without an issue number: {line.strip()}")
        if path.endswith((".c", ".h")) and not TWIN.match(path):
            where[os.path.basename(path)].append(path)
    for name, paths in sorted(where.items()):
        if len(paths) > 1:
            failures.append(f"{name} is not unique: {' '.join(paths)}")
    for line in warnings:
        print("warning:", line)
    for line in failures:
        print(line)
    print(f"size: {n} files, {len(warnings)} long, {len(failures)} breaches")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

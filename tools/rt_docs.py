#!/usr/bin/env python3
"""The runtime's papers. Of <lade/rt.h>: each function says whether it waits, what it returns, who owns what, and the units of its
times, and has a line in rt_misuse_test.c. Of docs/runtime-parity.md: each R-number and each runtime row of the case list is
there, and names tests that exist and that say the number themselves. Prints each breach."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def functions():
    """(name, parameters, result, comment) of each public function, with the macro before it, if any, left out."""
    text = re.sub(r"\n#define lade_\w+\((?:.*\\\n)*.*", "", read("include/lade/rt.h"))
    pattern = re.compile(r"(/\*(?:(?!\*/).)*\*/\s*)?(?:LADE_CHECKED )?LADE_API ([^;(]*?)\b(lade_\w+)\(([^;]*)\);", re.S)
    for m in pattern.finditer(text):
        yield m.group(3), m.group(4), m.group(2).strip(), m.group(1) or ""


def check_header():
    misuse = read("tests/rt/rt_misuse_test.c")
    n = 0
    for name, parameters, result, comment in functions():
        n += 1
        want = ["Waits:"]
        if result != "void":
            want.append("Returns:")
        if "*" in re.sub(r"const char \*(addr|name|where)\b", "", parameters) or "*" in result:
            want.append("Owner:")
        if "int64_t" in parameters:
            want.append("Units:")
        for word in want:
            if word not in comment:
                yield f"include/lade/rt.h: {name} does not say {word}"
        if not re.search(rf"\b{name.removesuffix('_at')}\(", misuse):
            yield f"tests/rt/rt_misuse_test.c: {name} is not there"
    if n < 70:
        yield f"include/lade/rt.h: only {n} functions were found"


def check_parity():
    table = read("docs/runtime-parity.md")
    sources = [read(os.path.relpath(p, ROOT)) for pattern in ("tests/rt/*", "src/rt/*_test.c", "tests/api/*", "scripts/*", "bench/drivers/*")
               for p in glob.glob(os.path.join(ROOT, pattern)) if os.path.isfile(p)]
    text = "\n".join(sources)
    rows = {m.group(1): m.group(2) for m in re.finditer(r"^\| (R\d+|C-\d+) \|.*?\| ([^|]*) \|$", table, re.M)}
    for row in [f"R{i}" for i in range(1, 32)] + [f"C-{i:03}" for i in range(97, 109)]:
        names = re.findall(r"`(\w+)`", rows.get(row, ""))
        if not names:
            yield f"docs/runtime-parity.md: {row} names no test"
        for name in names:
            if not re.search(rf"\b{name}\b", text):
                yield f"docs/runtime-parity.md: {row}: {name} is not there"
        if row.startswith("C-") and row not in text:
            yield f"{row} stands in no test"


def main():
    breaches = [*check_header(), *check_parity()]
    print("\n".join(breaches) if breaches else "runtime: header and parity table hold")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""docs/parity.md: what chronos-go and ChasquiMQ can do, item by item, and the tests of it here. Prints each breach and exits 1:
an item that is missing; a test that is not there, or that does not name the item (`chronos 12`, `chasqui 43, 44` in the comment
above it or within it); a row that says held and names no test, or that is not done and does not say what is missing.
--found prints, instead, which tests name an item without standing in its row."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SYSTEMS = {"chronos": ("chronos-go", 72), "chasqui": ("ChasquiMQ", 64)}
MARK = re.compile(r"\b(chronos|chasqui) (\d+(?:(?:, | and )\d+)*)")
CASE = re.compile(r"^static void (\w+)\(void \*\*\w+\)$", re.M)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def named_in(text):
    """{("chronos", 12), ...} of a piece of text; a line break within a list of numbers is a blank."""
    text = re.sub(r"\n\s*(?:\*|#|//)? *", " ", text)
    return {(m.group(1), int(n)) for m in MARK.finditer(text) for n in re.findall(r"\d+", m.group(2))}


def cases_of(text):
    """Each test of a C file: its name, and its text from the end of what stands before it."""
    for m in CASE.finditer(text):
        start = max(text.rfind("\n}\n", 0, m.start()), text.rfind("\n\n", 0, m.start()), 0)
        end = text.find("\n}\n", m.end())
        yield m.group(1), text[start:end]


def find_tests():
    """{"file: test": items it names}; `file: *` stands for a whole program or script."""
    found = {}
    patterns = ["tests/**/*.c", "tests/**/*.sh", "tests/**/*.py", "src/**/*_test.c", "bench/*_test.*", "examples/*"]
    for path in sorted(p for pattern in patterns for p in glob.glob(os.path.join(ROOT, pattern), recursive=True)):
        if not os.path.isfile(path):
            continue
        name, text = os.path.basename(path), read(path)
        found[f"{name}: *"] = found.get(f"{name}: *", set()) | named_in(text)
        for case, piece in cases_of(text):
            found[f"{name}: {case}"] = named_in(piece)
    return found


def rows_of(table, title):
    part = re.search(rf"^## {re.escape(title)}\b.*?(?=^## |\Z)", table, re.M | re.S)
    text = part.group(0) if part else ""
    for m in re.finditer(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", text, re.M):
        yield int(m.group(1)), m.group(2).strip(), re.findall(r"`([^`]+)`", m.group(3)), m.group(4).strip()


def check(table, found):
    for system, (title, n) in SYSTEMS.items():
        rows = list(rows_of(table, title))
        if [r[0] for r in rows] != list(range(1, n + 1)):
            yield f"{title}: the rows are not 1 to {n}, each once and in order"
        for number, what, tests, state in rows:
            row = f"{title} {number}"
            if not what:
                yield f"{row}: does not say what it asks"
            if not re.fullmatch(r"held|(partly|later): .+", state):
                yield f"{row}: state {state!r} is none of held, partly: WHAT IS MISSING, later: WITH WHAT"
            if state == "held" and not tests:
                yield f"{row}: held, but by no test"
            for test in tests:
                if test not in found:
                    yield f"{row}: {test} is not there"
                elif (system, number) not in found[test]:
                    yield f"{row}: {test} does not name {system} {number}"


def print_found(table, found):
    listed = {(system, row[0], test) for system, (title, _) in SYSTEMS.items() for row in rows_of(table, title) for test in row[2]}
    for test, items in sorted(found.items()):
        for system, number in sorted(items):
            if not test.endswith(": *") and (system, number, test) not in listed:
                print(f"{system} {number}: {test}")


def main():
    table, found = read(os.path.join(ROOT, "docs/parity.md")), find_tests()
    if "--found" in sys.argv[1:]:
        print_found(table, found)
        return 0
    breaches = list(check(table, found))
    states = [row[3].split(":")[0] for title, _ in SYSTEMS.values() for row in rows_of(table, title)]
    summary = ", ".join(f"{states.count(s)} {s}" for s in ("held", "partly", "later"))
    print("\n".join(breaches) if breaches else f"parity: {summary}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Documents must stay true: links lead somewhere, make targets exist, the README's program compiles, stored keys, tables,
states and outcomes are all described. Prints each breach. Usage: docs.py [CC]"""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def documents():
    for pattern in ("*.md", "docs/**/*.md", "src/**/*.md", "bench/**/*.md", "examples/**/*.md"):
        for path in glob.glob(os.path.join(ROOT, pattern), recursive=True):
            yield os.path.relpath(path, ROOT)


def check_links():
    for doc in documents():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(doc)):
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(doc), target)):
                yield f"{doc}: link to {target}, which is not there"


def check_make_targets():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))
    for doc in documents():
        # In code only: a word after "make" in prose is prose.
        code = "\n".join(re.findall(r"^```\n(.*?)^```", read(doc), re.M | re.S) + re.findall(r"`(make [^`]*)`", read(doc)))
        for target in re.findall(r"\bmake ([a-z][a-z-]*)", code):
            if target not in targets:
                yield f"{doc}: make {target}, which the Makefile has not"


def check_readme_program(cc):
    programs = re.findall(r"^```c\n(.*?)^```", read("README.md"), re.M | re.S)
    if not programs:
        yield "README.md: no C program"
    for program in programs:
        with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
            f.write(program)
            f.flush()
            run = subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
                                  "-I", os.path.join(ROOT, "include"), f.name], capture_output=True, text=True, check=False)
            if run.returncode:
                yield "README.md: its program does not compile:\n" + run.stderr


def check_stored_names():
    described = read("docs/format.md")
    for path in sorted(glob.glob(os.path.join(ROOT, "src/store/redis/lua/*.lua"))):
        for key in re.findall(r"\bP \.\. '([a-z]+:?)'", read(os.path.relpath(path, ROOT))):
            if f"`P {key}" not in described:
                yield f"docs/format.md: Redis key {key} of {os.path.basename(path)} is not described"
    for path in sorted(glob.glob(os.path.join(ROOT, "src/store/sqlite/sql/schema/*.sql"))):
        for table in re.findall(r"^CREATE TABLE (\w+)", read(os.path.relpath(path, ROOT)), re.M):
            if f"| `{table}` |" not in described:
                yield f"docs/format.md: SQLite table {table} is not described"


def check_words():
    described = read("docs/states.md")
    header = read("include/lade/lade.h")
    outcomes = re.search(r"typedef enum lade_outcome \{(.*?)\}", header, re.S).group(1)
    for word in re.findall(r"\b(LADE_[A-Z]+)\b *=", outcomes):
        if f"`{word}`" not in described:
            yield f"docs/states.md: outcome {word} is not described"
    names = read("src/queue/names.c")
    for word in re.findall(r'\{"([a-z]+)", LADE_STATE', names) + re.findall(r'return "([a-z]+)";', names):
        if not re.search(rf"[` ]{word}[` ]", described):
            yield f"docs/states.md: the word {word} is not described"
    for word in re.findall(r'= "([a-z]+)"', read("src/queue/history.c")):
        if f"`{word}`" not in described:
            yield f"docs/states.md: the event {word} is not described"


def main():
    cc = sys.argv[1] if len(sys.argv) > 1 else "cc"
    breaches = [*check_links(), *check_make_targets(), *check_readme_program(cc), *check_stored_names(), *check_words()]
    print("\n".join(breaches) if breaches else f"docs: {len(list(documents()))} documents hold")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())

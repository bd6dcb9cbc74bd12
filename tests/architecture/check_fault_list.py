#!/usr/bin/env python3
"""Checks that tests/fault/README.md names only tests that exist.

usage: check_fault_list.py SOURCE_DIR

Every row of a table there holds at least one `Suite.Name` of a test under
tests/ (GoogleTest, or class and method of a Python test), or says *not yet*
with a reason. Prints every violation; exit code 1 if there is one.
"""
import os
import re
import sys

GTEST = re.compile(
    r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
PYTHON = re.compile(r"^class (\w+)|^    def (test_\w+)", re.M)
NAMED = re.compile(r"`(\w+\.\w+)`")
NOT_YET = re.compile(r"\*not yet\*:? +\w+")
MIN_CELLS = 3


def tests_in(path, text):
    if path.endswith(".cc"):
        return {f"{suite}.{name}" for suite, name in GTEST.findall(text)}
    found, suite = set(), None
    for class_name, method in PYTHON.findall(text):
        if class_name:
            suite = class_name
        elif suite:
            found.add(f"{suite}.{method}")
    return found


def all_tests(root):
    found = set()
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        for name in files:
            if name.endswith((".cc", ".py")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    found |= tests_in(path, f.read())
    return found


def check_list(text, tests, errors):
    """Returns the number of rows."""
    rows = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] in ("row", "") or set(cells[0]) <= set("-:"):
            continue
        rows += 1
        where = f"tests/fault/README.md:{number}: row {cells[0]}"
        if len(cells) < MIN_CELLS:
            errors.append(f"{where}: {len(cells)} cells, want {MIN_CELLS}")
            continue
        named = NAMED.findall(cells[-1])
        for test in named:
            if test not in tests:
                errors.append(f"{where}: no test {test}")
        if not named and not NOT_YET.search(cells[-1]):
            errors.append(f"{where}: names no test and no reason")
    return rows


def main():
    root = sys.argv[1]
    tests = all_tests(root)
    errors = []
    with open(os.path.join(root, "tests/fault/README.md"),
              encoding="utf-8") as f:
        rows = check_list(f.read(), tests, errors)
    for error in errors:
        print(error)
    print(f"{rows} rows, {len(tests)} tests, {len(errors)} violations")
    return 1 if errors or rows == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

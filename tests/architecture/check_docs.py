#!/usr/bin/env python3
"""Checks that docs/ says what the code does.

usage: check_docs.py SOURCE_DIR BIN_DIR

docs/metrics.md holds every metric of the sources, each with its kind, and no
other. docs/operations.md has every flag that the binaries print with --help
once: in the table of who has it, with its default, or in the line of those
that only set a process up. Prints every violation; exit code 1 if there is
one.
"""
import os
import re
import subprocess
import sys

ADDED = re.compile(
    r"\bAdd(Counter|Gauge|Histogram)\(\s*\"(baton_\w+)\"")
ROW = re.compile(r"^\| `(baton_\w+)` \| (\w+) \|", re.M)
SECTION = re.compile(r"^## (.*)$", re.M)
FLAG_ROW = re.compile(r"^\| `--([\w-]+)` \|([^|]*)\|", re.M)
HELP_FLAG = re.compile(r"^  --([\w-]+)(.*)$", re.M)
DEFAULT = re.compile(r"\[([^\]]*)\]")
OTHERS = re.compile(r"^Set up processes:(.*?)\n\n", re.M | re.S)
OTHER_FLAG = re.compile(r"`--([\w-]+)`")
SECTIONS = {
    "Flags of both workers": ["baton-prefill-worker", "baton-decode-worker"],
    "Flags of decode workers": ["baton-decode-worker"],
    "Flags of the router": ["baton-router"],
}


def metrics_in(text):
    """{name: kind} of a source file."""
    return {name: kind.lower() for kind, name in ADDED.findall(text)}


def metrics_of(root):
    found = {}
    for top in ("common", "decode_worker", "kv_transfer", "prefill_worker",
                "router"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if not name.endswith((".cc", ".h")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    found.update(metrics_in(f.read()))
    return found


def check_metrics(page, metrics, errors):
    told = {}
    for name, kind in ROW.findall(page):
        if name in told:
            errors.append(f"docs/metrics.md: {name} is there twice")
        told[name] = kind
    for name in sorted(set(metrics) - set(told)):
        errors.append(f"docs/metrics.md: {name} is missing")
    for name in sorted(set(told) - set(metrics)):
        errors.append(f"docs/metrics.md: there is no {name}")
    for name in sorted(set(told) & set(metrics)):
        if told[name] != metrics[name]:
            errors.append(f"docs/metrics.md: {name} is a {metrics[name]}, "
                          f"not a {told[name]}")


def flags_in(help_text):
    """{flag: default, or "" without one}; switches are "off"."""
    flags = {}
    for name, rest in HELP_FLAG.findall(help_text):
        default = DEFAULT.search(rest)
        takes_value = rest[:2] not in ("", "  ")
        if takes_value:
            flags[name] = default.group(1) if default else ""
        else:
            flags[name] = "off"
    return flags


def sections_of(page):
    parts = SECTION.split(page)
    return dict(zip(parts[1::2], parts[2::2]))


def flags_of_section(title, flags_of):
    """Those that all binaries of the section have, and no section before."""
    flags = set.intersection(*(set(flags_of[b]) for b in SECTIONS[title]))
    if title == "Flags of decode workers":
        flags -= set(flags_of["baton-prefill-worker"])
    return flags


def check_flags(page, flags_of, errors):
    """`flags_of`: {binary: {flag: default}}."""
    sections = sections_of(page)
    others = [flag for line in OTHERS.findall(page)
              for flag in OTHER_FLAG.findall(line)]
    known = set().union(*flags_of.values())
    for flag in sorted(set(others)):
        where = f"docs/operations.md: --{flag}"
        if flag not in known:
            errors.append(f"{where}: no such flag")
        if others.count(flag) > 1:
            errors.append(f"{where}: is there twice")
    workers = set(flags_of["baton-prefill-worker"])
    for flag in sorted(workers - set(flags_of["baton-decode-worker"])):
        errors.append(f"docs/operations.md: --{flag}: of prefill workers only, "
                      "and no table has those")
    for title, binaries in SECTIONS.items():
        rows = FLAG_ROW.findall(sections.get(title, ""))
        if not rows:
            errors.append(f"docs/operations.md: no flags under '{title}'")
        own = flags_of_section(title, flags_of)
        told = [flag for flag, _ in rows]
        for flag, default in rows:
            where = f"docs/operations.md: --{flag}"
            if told.count(flag) > 1 or flag in others:
                errors.append(f"{where}: is there twice")
            if flag not in own:
                errors.append(f"{where}: no such flag under '{title}'")
                continue
            values = ", ".join(dict.fromkeys(flags_of[binary][flag]
                                             for binary in binaries))
            if values != default.strip():
                errors.append(f"{where}: the default is '{values}', not "
                              f"'{default.strip()}'")
        for flag in sorted(own - set(told) - set(others)):
            errors.append(f"docs/operations.md: --{flag} is missing under "
                          f"'{title}'")


def main():
    root, binaries = sys.argv[1:]
    errors = []
    metrics = metrics_of(root)
    with open(os.path.join(root, "docs/metrics.md"), encoding="utf-8") as f:
        check_metrics(f.read(), metrics, errors)
    flags_of = {}
    for binary in sorted({b for named in SECTIONS.values() for b in named}):
        shown = subprocess.run([os.path.join(binaries, binary), "--help"],
                               capture_output=True, text=True, check=True)
        flags_of[binary] = flags_in(shown.stdout)
    with open(os.path.join(root, "docs/operations.md"), encoding="utf-8") as f:
        check_flags(f.read(), flags_of, errors)
    for error in errors:
        print(error)
    print(f"{len(metrics)} metrics, {len(errors)} violations")
    return 1 if errors or not metrics else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that the tree keeps the shape its README promises.

usage: check_architecture.py SOURCE_DIR [ROUTER_BINARY]

Rules: which library may include which (TABLE), third-party headers only where
named, every unit test mirrors a source folder, file sizes, forbidden names,
`#if` only in header guards and where listed, README sizes, and nothing of
UCX or CUDA on the router's link line. Prints every violation; exit code 1 if
there is one.
"""
import os
import re
import subprocess
import sys

TOP_LEVEL = [".ci", ".clang-format", ".clang-tidy", ".gitignore",
             "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md",
             "deploy", "docs", "helm", "tests"]
TOP_FOLDERS = ["proto", "router", "prefill_worker", "decode_worker",
               "kv_transfer", "kernels", "common"]

COMMON = ["common/base", "common/config", "common/telemetry", "common/tokens",
          "common/rpc", "common/model_file", "common/cost_model",
          "common/tokenizer", "common/weights", "common/sampling",
          "common/kv_cache", "common/model", "common/sequence",
          "common/engine"]
WORKER = COMMON + ["common/worker", "kv_transfer", "kernels/api", "proto"]
ROUTER = ["common/base", "common/config", "common/telemetry", "common/tokens",
          "common/model_file", "common/tokenizer", "common/cost_model",
          "common/rpc", "proto", "router"]

# library -> what it may include besides itself. The longest match counts.
TABLE = {
    "proto": [],
    "kernels/api": [],
    "kernels/reference": ["kernels/api"],
    "kernels/cpu": ["kernels/api"],
    "kernels/cuda": ["kernels/api"],
    "common/base": [],
    "common/config": ["common/base"],
    "common/telemetry": ["common/base"],
    "common/tokens": ["common/base"],
    "common/rpc": ["common/base", "common/config", "common/telemetry",
                   "proto"],
    "common/model_file": ["common/base"],
    "common/cost_model": ["common/base"],
    "common/tokenizer": ["common/base", "common/tokens", "common/model_file"],
    "common/weights": ["common/base", "common/tokens", "common/model_file",
                       "kernels/api"],
    "common/sampling": ["common/base", "common/tokens", "common/model_file",
                        "kernels/api"],
    "common/kv_cache": ["common/base", "common/tokens", "kernels/api"],
    "common/model": ["common/base", "common/tokens", "common/model_file",
                     "common/weights", "common/kv_cache", "kernels/api"],
    "common/sequence": ["common/base", "common/tokens", "common/sampling",
                        "common/kv_cache"],
    "common/engine": ["common/base", "common/tokens", "common/model_file",
                      "common/weights", "common/kv_cache", "common/model",
                      "common/sampling", "common/sequence",
                      "common/cost_model", "kernels/api"],
    "common/worker": WORKER,
    "kv_transfer": ["common/base", "common/telemetry", "common/tokens",
                    "common/kv_cache", "kernels/api", "proto"],
    "kv_transfer/fault": ["kv_transfer", "common/base"],
    "kv_transfer/grpc": ["kv_transfer", "common/base", "common/rpc", "proto"],
    "kv_transfer/loopback": ["kv_transfer", "common/base"],
    "kv_transfer/ucx": ["kv_transfer", "common/base"],
    "router": ROUTER,
    "prefill_worker": WORKER,
    "decode_worker": WORKER,
}
# Concrete backends and transports are wired only in these files.
WIRING = re.compile(r"(^|/)(\w+_)?main\.cc$")

# third-party header prefix -> libraries that may include it.
THIRD_PARTY = {
    "CLI/": ["common/config", "router/client", "main"],
    "prometheus/": ["common/telemetry", "common/worker", "router/front_door",
                    "main"],
    "CivetServer.h": ["common/telemetry"],
    "civetweb.h": ["common/telemetry"],
    "spdlog/": ["common/telemetry"],
    "openssl/": ["common/base", "common/tokens", "common/rpc"],
    "nlohmann/": ["common/model_file", "common/cost_model", "common/base",
                  "router/front_door", "router/client", "main"],
    "pcre2.h": ["common/tokenizer"],
    "ucp/": ["kv_transfer/ucx"],
    "uct/": ["kv_transfer/ucx"],
    "ucs/": ["kv_transfer/ucx"],
    "cuda": ["kernels/cuda"],
    "nccl": ["kernels/cuda", "kv_transfer/nccl"],
    "grpc": ["common/rpc", "common/worker", "router", "proto",
             "kv_transfer/grpc", "prefill_worker", "decode_worker"],
    "google/protobuf": ["common/rpc", "common/worker", "router", "proto",
                        "kv_transfer", "prefill_worker", "decode_worker"],
}

FORBIDDEN_NAMES = re.compile(
    r"(^|_)(util|utils|misc|helper|helpers|types|manager)(_|\.|$)")
# Conditional compilation outside of header guards.
MAY_USE_IF = ["kernels/cpu/", "kernels/cuda/", "common/base/mutants.h",
              "common/base/failpoints.h",
              "common/base/cpu_check", "common/base/crc32c"]
MAX_SOURCE_LINES = 500
MAX_HEADER_LINES = 250
MAX_README_LINES = 40


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources(root):
    for top in TOP_FOLDERS + ["tests"]:
        for folder, dirs, files in os.walk(os.path.join(root, top)):
            dirs[:] = [d for d in dirs if d not in ("build", "data")]
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), root)
                if name.endswith((".cc", ".h", ".cu", ".cuh", ".proto")):
                    yield path


def library_of(path, libraries):
    best = ""
    for lib in libraries:
        if (path == lib or path.startswith(lib + "/")) and len(lib) > len(best):
            best = lib
    return best


def check_includes(path, text, errors):
    if path.startswith("tests/") or path.startswith("proto/"):
        return
    library = library_of(path, TABLE)
    main = bool(WIRING.search(path))
    allowed = TABLE.get(library, [])
    for match in re.finditer(r'^\s*#\s*include\s+(["<])([^">]+)[">]', text,
                             re.M):
        quoted, include = match.group(1) == '"', match.group(2)
        for prefix, users in THIRD_PARTY.items():
            if include.startswith(prefix) and not include.startswith(
                    tuple(f + "/" for f in TOP_FOLDERS)):
                if main and "main" in users:
                    continue
                if not any(path.startswith(u + "/") for u in users):
                    errors.append(f"{path}: <{include}> may be included only "
                                  f"in {', '.join(users)}")
        if not quoted or not include.startswith(
                tuple(f + "/" for f in TOP_FOLDERS)):
            continue
        target = library_of(include, list(TABLE) + ["router"])
        if include.startswith("proto/"):
            target = "proto"
        if target == library or main:
            continue
        if library.startswith("router") and include.startswith("router/"):
            continue
        if target not in allowed:
            errors.append(f"{path}: {library} must not include {include}")


def check_conditionals(path, text, errors):
    if path.startswith(tuple(MAY_USE_IF)) or path.startswith("tests/"):
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b", line):
            continue
        follows = lines[number] if number < len(lines) else ""
        guard = re.match(r"\s*#ifndef (\w+_H_)$", line)
        if guard and follows.strip() == f"#define {guard.group(1)}":
            continue
        errors.append(f"{path}:{number}: conditional compilation belongs to "
                      f"kernels/cpu and kernels/cuda")


def check_size(path, text, errors):
    lines = text.count("\n")
    limit = MAX_HEADER_LINES if path.endswith((".h", ".cuh")) \
        else MAX_SOURCE_LINES
    if path.startswith("proto/google/"):
        return
    if lines > limit:
        errors.append(f"{path}: {lines} lines, at most {limit}")


def check_names(path, errors):
    for part in path.split("/"):
        if part != "common" and FORBIDDEN_NAMES.search(part):
            errors.append(f"{path}: '{part}' says nothing; name the thing")


def check_mirror(root, path, errors):
    """pool_test.cc or pool_stress_test.cc needs a pool.h in the mirror."""
    if not path.startswith("tests/unit/") or not path.endswith("_test.cc"):
        return
    folder = os.path.dirname(path)[len("tests/unit/"):]
    words = os.path.basename(path)[:-len("_test.cc")].split("_")
    for count in range(len(words), 0, -1):
        stem = os.path.join(root, folder, "_".join(words[:count]))
        if any(os.path.exists(stem + e) for e in (".h", ".cc", "-inl.h")):
            return
    errors.append(f"{path}: no {folder}/{'_'.join(words)}.h that it mirrors")


def check_guard(path, text, errors):
    if not path.endswith(".h"):
        return
    want = "BATON_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
    if f"#ifndef {want}" not in text:
        errors.append(f"{path}: header guard must be {want}")


def check_line_width(path, text, errors):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > 80 and "http" not in line and '"' not in line:
            errors.append(f"{path}:{number}: {len(line)} columns, at most 80")


def check_readmes(root, errors):
    for folder in TOP_FOLDERS + ["deploy", "docs", "tests"]:
        path = os.path.join(root, folder, "README.md")
        if not os.path.exists(path):
            errors.append(f"{folder}/README.md: missing")
        elif read(path).count("\n") > MAX_README_LINES:
            errors.append(f"{folder}/README.md: more than "
                          f"{MAX_README_LINES} lines")


def check_top_level(root, errors):
    if not os.path.exists(os.path.join(root, ".git")):
        return
    files = subprocess.run(["git", "-C", root, "ls-files"],
                           capture_output=True, text=True, check=True).stdout
    for entry in sorted({line.split("/")[0] for line in files.splitlines()}):
        if entry not in TOP_LEVEL and entry not in TOP_FOLDERS:
            errors.append(f"{entry}: does not belong to the top level")


def check_router_links(binary, errors):
    out = subprocess.run(["ldd", binary], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        if re.search(r"libuc[pst]|libcuda|libnccl", line):
            errors.append(f"{binary}: the router must not link "
                          f"{line.split()[0]}")
    names = subprocess.run(["nm", "-C", "--defined-only", binary],
                           capture_output=True, text=True, check=True).stdout
    for space in ("baton::transfer::", "baton::kernels::MakeCpuBackend"):
        if space in names:
            errors.append(f"{binary}: the router must not contain {space}")


def main():
    root = sys.argv[1]
    errors = []
    count = 0
    for path in sources(root):
        count += 1
        text = read(os.path.join(root, path))
        check_names(path, errors)
        if path.endswith(".proto"):
            continue
        check_includes(path, text, errors)
        check_conditionals(path, text, errors)
        check_size(path, text, errors)
        check_mirror(root, path, errors)
        check_guard(path, text, errors)
        check_line_width(path, text, errors)
    check_readmes(root, errors)
    check_top_level(root, errors)
    if len(sys.argv) > 2:
        check_router_links(sys.argv[2], errors)
    for error in errors:
        print(error)
    print(f"{count} files, {len(errors)} violations")
    if count < 50:
        print("too few files: wrong source folder?")
        return 1
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

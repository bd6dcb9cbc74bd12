#!/usr/bin/env python3
"""Plants one violation of each kind and expects the check to name it."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_architecture as check  # noqa: E402
import check_docs  # noqa: E402
import check_fault_list  # noqa: E402


class PlantedViolations(unittest.TestCase):
    def errors(self, rule, *args):
        found = []
        rule(*args, found)
        return found

    def test_forbidden_include(self):
        text = '#include "kernels/cpu/cpu_backend.h"\n'
        self.assertTrue(self.errors(check.check_includes,
                                    "router/routing/policy.h", text))
        self.assertTrue(self.errors(check.check_includes,
                                    "common/model/model.cc", text))
        self.assertFalse(self.errors(check.check_includes,
                                     "decode_worker/main.cc", text))

    def test_workers_do_not_know_each_other(self):
        text = '#include "prefill_worker/prefill_scheduler.h"\n'
        self.assertTrue(self.errors(
            check.check_includes, "decode_worker/decode_scheduler.h", text))

    def test_third_party(self):
        for text in ("#include <ucp/api/ucp.h>\n", "#include <cuda.h>\n",
                     "#include <grpcpp/grpcpp.h>\n"):
            self.assertTrue(self.errors(check.check_includes,
                                        "common/engine/engine.cc", text))
        self.assertFalse(self.errors(
            check.check_includes, "kv_transfer/ucx/endpoint.cc",
            "#include <ucp/api/ucp.h>\n"))

    def test_allowed_include(self):
        self.assertFalse(self.errors(
            check.check_includes, "common/engine/engine.h",
            '#include "common/model/model.h"\n'))

    def test_names(self):
        for path in ("common/base/string_util.h", "router/misc/a.cc",
                     "router/session_manager.h"):
            self.assertTrue(self.errors(check.check_names, path), path)
        self.assertFalse(self.errors(check.check_names,
                                     "common/base/ids.h"))

    def test_conditionals(self):
        guard = "#ifndef BATON_A_H_\n#define BATON_A_H_\n#endif\n"
        self.assertFalse(self.errors(check.check_conditionals,
                                     "common/a.h", guard))
        self.assertTrue(self.errors(check.check_conditionals, "common/a.h",
                                    guard + "#ifdef __AVX2__\n"))

    def test_sizes(self):
        self.assertTrue(self.errors(check.check_size, "a.cc", "x\n" * 501))
        self.assertTrue(self.errors(check.check_size, "a.h", "x\n" * 251))
        self.assertFalse(self.errors(check.check_size, "a.cc", "x\n" * 500))

    def test_guard_and_width(self):
        self.assertTrue(self.errors(check.check_guard, "common/base/ids.h",
                                    "#ifndef WRONG_H_\n"))
        self.assertTrue(self.errors(check.check_line_width, "a.cc", "x" * 81))

    def test_mirror_and_readmes(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "common/base"))
            open(os.path.join(root, "common/base/ids.h"), "w").close()
            good = "tests/unit/common/base/ids_test.cc"
            self.assertFalse(self.errors(check.check_mirror, root, good))
            stale = "tests/unit/common/base/gone_test.cc"
            self.assertTrue(self.errors(check.check_mirror, root, stale))
            self.assertTrue(self.errors(check.check_readmes, root))

    def test_fault_list(self):
        tests = check_fault_list.tests_in(
            "a.cc", "TEST_F(LinkTest,\n       Cut) {\nTEST(Other, Works) {")
        tests |= check_fault_list.tests_in(
            "a.py", "class Shell:\n    def test_exit(self):\n")
        self.assertEqual(tests, {"LinkTest.Cut", "Other.Works",
                                 "Shell.test_exit"})
        for row, good in (("| 1.2 | cut | `LinkTest.Cut` |", True),
                          ("| 1.2 | cut | `LinkTest.Cut`, `A.B` |", False),
                          ("| 1.2 | cut | soon |", False),
                          ("| 1.2 | `Other.Works` | |", False),
                          ("| 1.2 | `Other.Works` |", False),
                          ("| 1.2 | cut | *not yet*: no migration |", True),
                          ("| 1.2 | cut | *not yet* |", False)):
            found = self.errors(check_fault_list.check_list, row, tests)
            self.assertEqual(not found, good, row)

    def test_metrics_page(self):
        metrics = check_docs.metrics_in(
            'a(m->AddCounter("baton_a_total", "x")), b(m.AddHistogram(\n'
            '    "baton_b_seconds",')
        self.assertEqual(metrics, {"baton_a_total": "counter",
                                   "baton_b_seconds": "histogram"})
        a = "| `baton_a_total` | counter | | x |\n"
        b = "| `baton_b_seconds` | histogram | | x |\n"
        for page, good in ((a + b, True), (a, False), (a + b + a, False),
                           (a + b.replace("histogram", "gauge"), False),
                           (a + b + "| `baton_c` | gauge | | |\n", False)):
            found = self.errors(check_docs.check_metrics, page, metrics)
            self.assertEqual(not found, good, page)

    def test_flags_page(self):
        shared = check_docs.flags_in(
            "  --steps N [128]       how many\n"
            "  --model TEXT          which\n"
            "  --insecure            x [y]\n"
            "  --isa auto|avx2 [auto]\n                         which\n")
        self.assertEqual(shared, {"steps": "128", "model": "",
                                  "insecure": "off", "isa": "auto"})
        flags_of = {"baton-prefill-worker": shared,
                    "baton-decode-worker": shared | {"batch": "4"},
                    "baton-router": {"queue": "1m", "model": ""}}
        page = ("Set up processes: `--model`, `--insecure`,\n`--isa`.\n\n"
                "## Flags of both workers\n| `--steps` | 128 | x |\n"
                "## Flags of decode workers\n| `--batch` | 4 | x |\n"
                "## Flags of the router\n| `--queue` | 1m | x |\n")
        for old, new in (("", ""), ("| 128", "| 64"), ("`--steps", "`--step"),
                         ("| `--batch` | 4 | x |\n", "| `--steps` | 128 | |\n"),
                         ("1m", "2m"), ("## Flags of the router\n", ""),
                         ("| `--batch` | 4 | x |\n",
                          "| `--batch` | 5 | x |\n| `--batch` | 4 | x |\n"),
                         ("`--model`, ", ""), ("`--isa`", "`--queue`"),
                         ("`--isa`", "`--isa`, `--batch`"),
                         ("`--isa`", "`--isa`, `--other`"),
                         ("`--isa`", "`--isa`, `--isa`"), (", `--insecure`", ""),
                         ("| `--queue` | 1m | x |\n", "")):
            found = self.errors(check_docs.check_flags, page.replace(old, new),
                                flags_of)
            self.assertEqual(not found, old == "", (old, new, found))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Plants one violation of each kind and expects the check to name it."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_architecture as check  # noqa: E402
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


if __name__ == "__main__":
    unittest.main()

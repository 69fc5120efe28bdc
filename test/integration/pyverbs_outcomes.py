"""pyverbs_outcomes.py TESTS DEVICE FILE [NAME...]: runs rdma-core's own pyverbs tests in directory TESTS on DEVICE, all
or those named, and writes one line "NAME<tab>OUTCOME" for each to FILE as it ends; what they print goes to stderr."""

import faulthandler
import os
import sys
import unittest

directory, device, path, names = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
sys.argv = ["run_tests.py", "--dev", device]
sys.path[:0] = [directory, os.path.dirname(directory)]
faulthandler.enable()

from args_parser import parser  # noqa: E402  (of the tests, as their run_tests.py does it)

parser.parse_args()


class Outcomes(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def write(self, test, outcome):
        self.out.write(f"{test.id()}\t{outcome}\n")
        self.out.flush()

    def addSuccess(self, test):
        self.write(test, "pass")

    def addSkip(self, test, reason):
        self.write(test, "skip")

    def addFailure(self, test, error):
        self.write(test, "fail")
        print(self._exc_info_to_string(error, test), file=sys.stderr)

    def addError(self, test, error):
        self.write(test, "error")
        print(self._exc_info_to_string(error, test), file=sys.stderr)

    def addExpectedFailure(self, test, error):
        self.write(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self.write(test, "unexpected success")


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


import tests  # noqa: E402

loader = unittest.defaultTestLoader
found = loader.loadTestsFromNames(names) if names else loader.loadTestsFromModule(tests)
with open(path, "w", encoding="utf-8") as out:
    unittest.TestSuite(test for test in each(found)).run(Outcomes(out))
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)  # the outcomes are written; what a test leaves behind must not hang here

#!/usr/bin/env python3
"""The tests of the page, in a headless Chromium:

    run_tests.py PROGRAM [NAME …]

with names as unittest has them: commands_test, page_test.PageTest.test_prints.
"""

import os
import pathlib
import sys
import unittest

from page_case import PageCase

if __name__ == "__main__":
    os.environ["LIPSCOPE_PROGRAM"] = os.path.abspath(sys.argv[1])
    here = pathlib.Path(__file__).parent
    names = sys.argv[2:]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names) if names else loader.discover(here, "*_test.py")
    try:
        result = unittest.TextTestRunner(verbosity=2, failfast=False).run(tests)
    finally:
        PageCase.close()
    # nothing found is a failure too
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)

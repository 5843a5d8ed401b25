#!/usr/bin/env python3
"""The tests of the documents: their commands run, their options exist, their
links and the files they name are there.

    run_tests.py PROGRAM [NAME …]

with names as unittest has them: links_test, commands_test.CommandsTest.
"""

import os
import pathlib
import sys
import unittest

if __name__ == "__main__":
    os.environ["LIPSCOPE_PROGRAM"] = os.path.abspath(sys.argv[1])
    here = pathlib.Path(__file__).parent
    names = sys.argv[2:]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names) if names else loader.discover(here, "*_test.py")
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    # nothing found is a failure too
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)

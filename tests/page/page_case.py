"""What every test of a page needs: the program, one browser for all, and ways to ask the page."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import records as made
from browser import Browser

TAB, ENTER = "\ue004", "\ue007"
POINTS = """return Chart.getChart(arguments[0]).data.datasets.map(
    d => d.data.map(p => p === null || typeof p !== 'object' || Array.isArray(p) ? p : [p.x, p.y]))"""


def program():
    """The program under test: run_tests.py puts its path there."""
    return os.environ["LIPSCOPE_PROGRAM"]


class PageCase(unittest.TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        if PageCase.browser is None:
            PageCase.browser = Browser()

    @staticmethod
    def close():
        if PageCase.browser is not None:
            PageCase.browser.close()
            PageCase.browser = None

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="lipscope-page-")))
        self.browser.size(1200, 900)
        self.browser.media("light")
        self.browser.complaints(), self.browser.requests()

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        asked = [url for url in self.browser.requests() if not url.startswith(("chrome", "data:"))]
        for url in asked:
            self.assertRegex(url, r"^(file:///.*\.html|blob:)")

    def write_page(self, *files, command="report", code=0):
        paths = []
        for k, lines in enumerate(files):
            paths.append(self.folder / f"{'ab'[k]}.jsonl")
            made.write(paths[-1], lines)
        page = self.folder / "page.html"
        page.unlink(missing_ok=True)
        done = subprocess.run([program(), command, *paths, "--out", page], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return page

    def show(self, *files, **how):
        page = self.write_page(*files, **how)
        self.browser.open(page)
        return page

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0])?.textContent", selector)

    def texts(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map(n => n.textContent)", selector)

    def points(self, chart):
        return self.browser.run(POINTS, chart)

    def legend(self, chart):
        return self.browser.run("return [...document.getElementById(arguments[0]).closest('figure').querySelectorAll('.legend li')].map(n => n.textContent)", chart)

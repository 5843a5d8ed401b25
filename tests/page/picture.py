#!/usr/bin/env python3
"""A picture of a page, for the README:

    picture.py PAGE.html PICTURE.png
"""

import sys

from browser import Browser


def take_picture(page, picture):
    browser = Browser()
    try:
        browser.size(1200, 1320)
        browser.media("light")
        browser.open(page)
        browser.picture(picture)
    finally:
        browser.close()


if __name__ == "__main__":
    take_picture(sys.argv[1], sys.argv[2])

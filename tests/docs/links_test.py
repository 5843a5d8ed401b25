"""Links and names of files in the documents lead somewhere."""

import re
import unittest

import markdown

# names of files in the documents that users have and the project has not
OF_USERS = re.compile(r"^(runs|DIR|package|build)/")


def expanded(span):
    """attention/l2.{h,cpp} is two names."""
    found = re.fullmatch(r"(.*)\{(.*)\}(.*)", span)
    if not found:
        return [span]
    return [found.group(1) + part + found.group(3) for part in found.group(2).split(",")]


class LinksTest(unittest.TestCase):
    def setUp(self):
        self.documents = [markdown.read(path) for path in markdown.DOCUMENTS]

    def test_every_link_leads_to_a_file_and_a_heading(self):
        seen = 0
        for document in self.documents:
            for number, target in markdown.links(document):
                seen += 1
                with self.subTest(f"{document.name()}:{number}: {target}"):
                    name, _, anchor = target.partition("#")
                    path = (document.path.parent / name).resolve() if name else document.path
                    self.assertTrue(path.exists(), f"there is no {name}")
                    if anchor:
                        self.assertIn(anchor, list(markdown.headings(markdown.read(path))))
        self.assertGreater(seen, 30)

    def test_every_file_that_is_named_is_there(self):
        seen = 0
        for document in self.documents:
            for number, span in markdown.code_spans(document):
                if OF_USERS.match(span) or not re.fullmatch(
                    r"[\w.-]+(/[\w.-]+)+(\.\w+|\{[\w,]+\})", span
                ):
                    continue
                for name in expanded(span):
                    seen += 1
                    with self.subTest(f"{document.name()}:{number}: {span}"):
                        places = [markdown.ROOT, markdown.ROOT / "lipscope", document.path.parent]
                        self.assertTrue(
                            any((place / name).exists() for place in places), f"there is no {name}"
                        )
        self.assertGreater(seen, 50)

"""Tables in the documents are whole: a header, a line of dashes, and rows with
as many cells as the header."""

import unittest

import markdown


def cells(line):
    """The number of cells of a row; a pipe of the text is written \\|, in code too."""
    text = line.strip().replace("\\|", "")
    return text.strip("|").count("|") + 1


class TablesTest(unittest.TestCase):
    def test_every_row_belongs_to_a_table_and_has_its_cells(self):
        seen = 0
        for path in markdown.DOCUMENTS:
            document = markdown.read(path)
            rows = [(n, line) for n, line in document.prose if line.startswith("|")]
            header, last = None, None
            for number, line in rows:
                with self.subTest(f"{document.name()}:{number}"):
                    if last is None or number != last + 1:
                        header = (number, cells(line))
                    elif number == header[0] + 1:
                        self.assertRegex(line, r"^(\|-+)+\|$", "no line of dashes: part of a table?")
                    self.assertEqual(cells(line), header[1], line)
                last = number
                seen += 1
            for number, line in rows:
                before, after = (number - 1 in dict(rows)), (number + 1 in dict(rows))
                with self.subTest(f"{document.name()}:{number}"):
                    self.assertTrue(before or after, "a row without a table")
        self.assertGreater(seen, 300)

"""The parts of a Markdown document that the tests look at."""

import dataclasses
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]

# the documents of the project; the change log speaks of the past
DOCUMENTS = sorted(
    [p for p in ROOT.glob("*.md") if p.name != "CHANGELOG.md"]
    + list(ROOT.glob("docs/*.md"))
    + list(ROOT.glob("bench/peers/*.md"))
)

NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclasses.dataclass
class Block:
    """A block of code: fenced by ``` or indented by four blanks."""

    path: pathlib.Path
    line: int  # number of its first line
    language: str
    lines: list
    not_run: str  # the reason given in <!-- not run: REASON --> before it, or ""

    def where(self):
        return f"{self.path.relative_to(ROOT)}:{self.line}"


@dataclasses.dataclass
class Document:
    path: pathlib.Path
    blocks: list
    prose: list  # (number, line) of every line outside of blocks

    def name(self):
        return str(self.path.relative_to(ROOT))


def read(path):
    """The document, cut into blocks of code and prose."""
    blocks, prose = [], []
    block, fence, reason, before = None, False, "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if fence:
            if line.startswith("```"):
                fence, block = False, None
            else:
                block.lines.append(line)
        elif line.startswith("```"):
            block = Block(path, number + 1, line[3:].strip(), [], reason)
            blocks.append(block)
            fence, reason = True, ""
        elif line.startswith("    ") and (block or not before.strip()):
            if not block:
                block = Block(path, number, "", [], reason)
                blocks.append(block)
                reason = ""
            block.lines.append(line[4:])
        else:
            block = None
            marked = NOT_RUN.fullmatch(line.strip())
            if marked:
                reason = marked.group(1)
            elif line.strip():
                if reason:
                    raise ValueError(f"{path}:{number}: '<!-- not run -->' stands before no block of code")
                prose.append((number, line))
        before = line
    return Document(path, blocks, prose)


def commands(block):
    """The lines of a block that start lipscope, as lists of words; a line that
    ends with a backslash goes on in the next."""
    text = "\n".join(block.lines).replace("\\\n", " ")
    for line in text.splitlines():
        words = line.split()
        if words and words[0] in ("lipscope", "build/release/lipscope"):
            yield shlex.split(line, comments=True)[1:]


def code_spans(document):
    """(number, text) of everything `in back quotes` in the prose."""
    for number, line in document.prose:
        for span in re.findall(r"`([^`]+)`", line):
            yield number, span


def headings(document):
    """The anchors of the headings, as GitHub makes them."""
    for _, line in document.prose:
        found = re.match(r"#+ +(.*)", line)
        if found:
            kept = re.sub(r"[^\w\- ]", "", found.group(1).lower())
            yield kept.strip().replace(" ", "-")


def links(document):
    """(number, target) of the links to other documents and to files."""
    for number, line in document.prose:
        without_code = re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code):
            if "://" not in target:
                yield number, target

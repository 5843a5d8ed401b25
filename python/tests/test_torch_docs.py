"""The sessions of docs/python-torch.md and docs/python-lipschitz.md, as they stand there."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def sections(page):
    return [s for s in re.split(r"(?m)^## ", (DOCS / page).read_text(encoding="utf-8"))[1:] if ">>>" in s]


SECTIONS = [(page, s) for page in ("python-torch.md", "python-lipschitz.md") for s in sections(page)]


@pytest.mark.parametrize("page, section", SECTIONS, ids=[s.splitlines()[0] for _, s in SECTIONS])
def test_session_runs_as_shown(page, section):
    for package in ("torch", "jax", "transformers"):
        if re.search(rf"(?m)^>>> .*\b{package}\b", section) and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    title = section.splitlines()[0]
    session = doctest.DocTestParser().get_doctest(section.replace("```", ""), {}, title, str(DOCS / page), 0)
    assert session.examples
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(session, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_there_are_sessions_of_torch_jax_models_and_modules():
    assert len(sections("python-torch.md")) == 3
    assert len(sections("python-lipschitz.md")) >= 4

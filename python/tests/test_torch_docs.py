"""The sessions of docs/python-torch.md, as they stand there."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python-torch.md"
SECTIONS = [s for s in re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))[1:] if ">>>" in s]


@pytest.mark.parametrize("section", SECTIONS, ids=[s.splitlines()[0] for s in SECTIONS])
def test_session_runs_as_shown(section):
    for package in ("torch", "jax", "transformers"):
        if re.search(rf"(?m)^>>> .*\b{package}\b", section) and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    title = section.splitlines()[0]
    session = doctest.DocTestParser().get_doctest(section.replace("```", ""), {}, title, str(PAGE), 0)
    assert session.examples
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(session, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_there_are_sessions_of_torch_jax_and_models():
    assert len(SECTIONS) == 3

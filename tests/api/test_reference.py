"""The reference made from docstrings: what is on its pages, and how docstrings become Markdown."""

from __future__ import annotations

import re

import pytest

import yarnflow.api
import yarnflow.api.common
import yarnflow.api.datastream
from yarnflow.api.reference import PAGES, _markdown, _without_gaps, reference_pages
from yarnflow.graph.compatibility import REFUSED

TEXT = reference_pages()
SHOWN = set(re.findall(r"^### `([\w.]+)", "\n".join(TEXT.values()), flags=re.MULTILINE))


def test_pages_are_the_same_every_time() -> None:
    assert reference_pages() == TEXT
    assert TEXT.keys() == {f"{name}.md" for name in PAGES}
    assert " at 0x" not in "".join(TEXT.values())


def test_every_public_class_that_can_be_used_is_on_a_page() -> None:
    public = [
        (name, getattr(module, name))
        for module in (yarnflow.api, yarnflow.api.common, yarnflow.api.datastream)
        for name in module.__all__
    ]
    missing = {
        name
        for name, value in public
        if isinstance(value, type) and REFUSED not in vars(value) and name not in SHOWN
    }
    # these say nothing beyond their names
    assert missing == {"InputDependencyConstraint", "JobID", "TypeSerializer"}


def test_what_is_refused_is_not_shown() -> None:
    assert "SourceFunction" not in SHOWN
    assert "to_j_row_kind" not in TEXT["types.md"]


def test_what_a_base_has_stands_there() -> None:
    keyed = TEXT["streams.md"].split("### `KeyedStream`")[1].split("###")[0]
    assert "Has also what `DataStream` has." in keyed
    assert "**`min_by(position_to_min_by=0)`**" in keyed
    assert "get_side_output" not in keyed and "rebalance" not in keyed


def test_what_is_declared_beside_pyflinks_names_is_shown() -> None:
    assert "takes an expression as text, too.*" in TEXT["streams.md"]
    assert re.search(r"\*\*`with_idleness\(idle_timeout\)`\*\* .+\*Differs: ", TEXT["time.md"])


@pytest.mark.parametrize(
    "docstring, markdown",
    [
        ("A :class:`~a.b.C` of ``x``.  Two.", ["A `C` of `x`. Two."]),
        ("For example::\n\n    f(1)", ["For example:", "", "    f(1)"]),
        (
            "Sum.\n\nParameters\n----------\na, b : int\n    Terms,\n    both.\nc\n    Not.\n\n"
            "Raises\n------\nError\n    No.\n",
            ["Sum.", "", "Parameters:", "", "- `a, b` (int): Terms, both.", "- `c`: Not.", "",
             "Raises:", "", "- `Error`: No."],
        ),
    ],
)  # fmt: skip
def test_docstrings_become_markdown(docstring: str, markdown: list[str]) -> None:
    assert list(_without_gaps(_markdown(docstring.splitlines()))) == markdown

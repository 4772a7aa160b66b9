"""The tree of errors as its module draws it."""

from __future__ import annotations

import re

from yarnflow import errors


def test_the_drawn_tree_has_every_error() -> None:
    assert errors.__doc__ is not None
    drawn = re.split(r"^::$", errors.__doc__, flags=re.MULTILINE)[1]
    declared = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.YarnflowError)
    }
    builtins = {"ValueError", "OSError", "TimeoutError", "ConnectionError"}
    assert set(re.findall(r"\w+", drawn)) - builtins == declared

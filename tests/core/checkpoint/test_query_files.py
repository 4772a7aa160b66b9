"""Names in a query's directory: processes that write them and those that look for them mean the same."""

from __future__ import annotations

import ast
import re

from tests.package_modules import MODULES
from yarnflow.core.checkpoint import query_files
from yarnflow.core.checkpoint.query_files import query_directory

#: a name as a path or a part of one; the last also ends a sentence elsewhere, so only behind a slash
_NAME = re.compile(r"(\S*/)?(offsets|commits)(/\S*)?|\S*/(done|query-)")


def test_they_are_written_in_one_place() -> None:
    found = [
        f"{module}:{node.lineno}: {node.value!r}"
        for module, path in MODULES.items()
        if module != query_files.__name__
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value)
    ]
    assert not found, "use yarnflow.core.checkpoint.query_files"


def test_spark_and_saved_state_have_them_so() -> None:
    assert (query_files.OFFSETS, query_files.COMMITS) == ("offsets", "commits")
    assert query_directory("words") == "query-words"

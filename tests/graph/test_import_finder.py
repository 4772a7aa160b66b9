"""PyFlink's names for yarnflow's modules."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import yarnflow
from yarnflow.errors import UnsupportedCall
from yarnflow.graph import import_finder

ROOT = str(Path(yarnflow.__file__).parents[1])


@pytest.fixture
def pyflink() -> Iterator[None]:
    import_finder.install()
    yield
    import_finder.uninstall()


@pytest.mark.usefixtures("pyflink")
@pytest.mark.parametrize(
    "name",
    [
        "pyflink",
        "pyflink.common",
        "pyflink.common.typeinfo",
        "pyflink.datastream.functions",
        "pyflink.datastream.connectors.file_system",
        "pyflink.datastream.formats.json",
        "pyflink.metrics",
        "pyflink.version",
        "pyflink.util.java_utils",
    ],
)
def test_a_name_is_the_same_module(name: str) -> None:
    own = import_finder.own_module(name)
    first = importlib.import_module(name)
    assert first is importlib.import_module(own) is sys.modules[own] is sys.modules[name]
    assert first.__spec__ is not None and first.__spec__.name == own == first.__name__
    assert importlib.import_module(name) is first


@pytest.mark.usefixtures("pyflink")
def test_there_is_one_class_of_a_name() -> None:
    from yarnflow.api.common import Row as own_row

    common = importlib.import_module("pyflink.common")
    types = importlib.import_module("pyflink.common.types")
    assert common.Row is types.Row is own_row
    assert common.types is types


@pytest.mark.usefixtures("pyflink")
def test_the_table_api_can_be_named_only() -> None:
    table = importlib.import_module("pyflink.table")
    expressions = importlib.import_module("pyflink.table.expressions")
    assert expressions is table
    assert isinstance(table.EnvironmentSettings, type)
    with pytest.raises(UnsupportedCall, match=r"StreamTableEnvironment\.create: the Table API is not"):
        table.StreamTableEnvironment.create()
    with pytest.raises(UnsupportedCall, match=r"^Schema\(\)"):
        table.Schema()


@pytest.mark.usefixtures("pyflink")
def test_modules_there_are_not() -> None:
    with pytest.raises(ModuleNotFoundError, match="pyflink.fn_execution.*yarnflow has"):
        importlib.import_module("pyflink.fn_execution")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pyflink.fn_execution.beam")


def test_an_installed_apache_flink_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyflink").mkdir()
    (tmp_path / "pyflink" / "__init__.py").write_text("theirs = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    theirs = importlib.import_module("pyflink")
    assert theirs.theirs
    import_finder.install()
    import_finder.install()
    try:
        assert not hasattr(importlib.import_module("pyflink"), "theirs")
    finally:
        import_finder.uninstall()
        import_finder.uninstall()
    assert importlib.import_module("pyflink") is theirs
    assert not any(isinstance(finder, import_finder.PyFlinkFinder) for finder in sys.meta_path)
    monkeypatch.delitem(sys.modules, "pyflink")


def test_without_it_there_is_no_pyflink() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pyflink.common")


PROGRAM = """
import sys
from yarnflow.graph import import_finder
import_finder.install()

import pyflink.common as common
from pyflink.common import Row, Types
from pyflink.datastream import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

class Count(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.descriptor = ValueStateDescriptor("count", Types.LONG())

    def map(self, value):
        return common.Row(word=value, length=len(value))

from yarnflow.graph.closures import make_closure
made = make_closure([Count(), Types.ROW_NAMED(["word"], [Types.STRING()]), Row(a=1)], "program.py:1")
assert b"pyflink" not in made.payload
sys.stdout.buffer.write(made.payload)
"""

WORKER = """
import pickle, sys
function, kind, row = pickle.loads(sys.stdin.buffer.read())
function.open(None)
print(function.map("abc"), kind, row, "pyflink" in sys.modules)
"""


def test_what_a_program_pickles_loads_where_only_yarnflow_is() -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, env=environment, check=True
    )
    worker = subprocess.run(
        [sys.executable, "-c", WORKER], input=program.stdout, capture_output=True, env=environment, check=True
    )
    assert worker.stdout.decode() == "Row(word='abc', length=3) RowTypeInfo(word: String) Row(a=1) False\n"

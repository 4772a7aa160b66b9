"""Functions as bytes."""

import functools
import os
import subprocess
import sys
import threading
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest

import yarnflow
from yarnflow.api.building.collection import encode_elements
from yarnflow.api.common import Types
from yarnflow.errors import UnserializableFunction, UserCodeError
from yarnflow.graph import closures
from yarnflow.graph.closures import Closure, function_name, load_closure, make_closure
from yarnflow.operators.functions.base import open_function
from yarnflow.operators.functions.elements import MapFunction
from yarnflow.operators.functions.windows import ProcessWindowFunction
from yarnflow.operators.process.adapters import TimestampAdapter, window_context

#: the package may not be installed where tests run
PYTHONPATH = {**os.environ, "PYTHONPATH": str(Path(yarnflow.__file__).parents[1])}


def test_round_trip_with_captured_values() -> None:
    factor = 3
    closure = make_closure(lambda x: x * factor, "job.py:7")
    assert (closure.name, closure.origin) == ("<lambda>", "job.py:7")
    assert load_closure(closure)(2) == 6


class Prefix(MapFunction):
    def __init__(self) -> None:
        self.prefix = ""

    def open(self, runtime_context: Any = None) -> None:
        self.prefix = ">"

    def map(self, value: str) -> str:
        return self.prefix + value


def test_functions_keep_the_name_of_their_file() -> None:
    """Errors tell the line of the program; cloudpickle 3.1.3 and later has a placeholder for its file."""

    class Doubling:
        def double(self, value: int) -> int:
            return value * 2

    doubling, add = Doubling(), lambda values: [value + 1 for value in values]
    for function in (add, lambda values: [doubling.double(value) for value in values]):
        code = load_closure(make_closure(function, "")).__code__
        inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
        assert {one.co_filename for one in (code, *inner)} == {__file__}
    # a class of its own travels by value
    Doubling.__module__ = "__main__"
    loaded: Any = load_closure(make_closure(Doubling(), ""))
    assert loaded.double.__code__.co_filename == __file__


def test_function_classes_are_opened_where_they_are_loaded() -> None:
    function = Prefix()
    loaded = load_closure(make_closure(function, "job.py:1"))
    open_function(loaded, None)
    assert loaded("a") == ">a"
    assert function.prefix == ""


def test_window_functions_and_adapters_are_callable() -> None:
    class Length(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            yield key, context.window().end - context.window().start, len(list(elements))

    loaded = load_closure(make_closure(Length(), ""))
    assert list(loaded("k", window_context(1_000, 4_000), [1, 2])) == [("k", 3_000, 2)]
    assert load_closure(make_closure(TimestampAdapter(lambda value, at: value + at), ""))(5) == 4


def test_names() -> None:
    assert function_name(functools.partial(str.split, sep=",")) == "str.split"
    assert function_name(Prefix()) == "Prefix"


def test_the_variable_at_fault_is_named() -> None:
    lock = threading.Lock()
    with pytest.raises(UnserializableFunction) as caught:
        make_closure(lambda x: (lock, x), "job.py:1")
    assert "function '<lambda>' cannot be sent" in str(caught.value)
    assert "variable 'lock' of type _thread.lock" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_fault_deeper_down_is_named() -> None:
    connection = threading.Lock()

    def helper(x: int) -> Any:
        return connection, x

    with pytest.raises(UnserializableFunction, match="variable 'connection' of type _thread.lock"):
        make_closure(functools.partial(lambda f, x: f(x), helper), "job.py:1")


def test_program_modules_beside_it_and_shipped_archives_travel_by_value(tmp_path: Path) -> None:
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("")
    (tmp_path / "helpers" / "text.py").write_text("SIGN = '!'\ndef shout(s):\n    return s.upper() + SIGN\n")
    (tmp_path / "job.py").write_text(
        "import sys\nsys.path.append('shipped.zip')\n"
        "from zipped import mark\nfrom helpers.text import shout\n"
        "from yarnflow.graph.closures import make_closure\n"
        "def own(s):\n    return shout(s) + mark()\n"
        "sys.stdout.buffer.write(make_closure(own, '').payload)\n"
        "import cloudpickle\nassert not cloudpickle.list_registry_pickle_by_value()\n"
    )
    with zipfile.ZipFile(tmp_path / "shipped.zip", "w") as archive:
        archive.writestr("zipped.py", "def mark():\n    return '?'\n")
    program = [sys.executable, "job.py"]
    payload = subprocess.run(program, cwd=tmp_path, env=PYTHONPATH, capture_output=True, check=True).stdout
    # a process that has neither file
    load = "import sys, pickle; print(pickle.loads(sys.stdin.buffer.read())('a'))"
    run = subprocess.run(
        [sys.executable, "-c", load], env=PYTHONPATH, input=payload, capture_output=True, check=True
    )
    assert run.stdout == b"A!?\n"


#: a program whose user function, helper and class are its own
OWN = """
from yarnflow.graph.closures import make_closure
class Sign:
    def __init__(self, text):
        self.text = text
SIGN = Sign('!')
def shout(s):
    assert s, 'nothing to shout'
    return s.upper() + SIGN.text
def own(s):
    return shout(s)
"""
WRITE = "open('payload', 'wb').write(make_closure(own, '').payload)\n"


def _in_pytest(mode: str) -> list[str]:
    return ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--import-mode={mode}", "test_own.py"]


@pytest.mark.parametrize(
    ("arguments", "source", "typed"),
    [
        (["job.py"], OWN + WRITE, ""),
        # a notebook's __main__ has no file either
        (["-c", OWN + WRITE], "", ""),
        (["-i", "-q"], "", OWN.replace("\ndef", "\n\ndef").replace("\nSIGN", "\n\nSIGN") + "\n" + WRITE),
        (_in_pytest("prepend"), OWN + "def test_own():\n    " + WRITE, ""),
        (_in_pytest("importlib"), OWN + "def test_own():\n    " + WRITE, ""),
    ],
    ids=["script", "no file", "interactive", "pytest prepend", "pytest importlib"],
)
def test_what_a_program_defines_travels_by_value(
    arguments: list[str], source: str, typed: str, tmp_path: Path
) -> None:
    for name in ("job.py", "test_own.py"):
        (tmp_path / name).write_text(source)
    command = [sys.executable, *arguments]
    run = subprocess.run(command, cwd=tmp_path, env=PYTHONPATH, input=typed, capture_output=True, text=True)
    assert (tmp_path / "payload").exists(), run.stdout + run.stderr
    load = "import sys, pickle; print(pickle.loads(sys.stdin.buffer.read())('a'))"
    loaded = subprocess.run(
        [sys.executable, "-c", load],
        env=PYTHONPATH,
        input=(tmp_path / "payload").read_bytes(),
        capture_output=True,
    )
    assert loaded.stdout == b"A!\n", loaded.stderr


def test_what_is_not_installed_where_a_function_runs_is_named() -> None:
    closure = Closure(b"cno_such_module\nparse\n.", "parse", "job.py:7")
    said = r"^job\.py:7: function 'parse' needs what is not installed where it runs: No module named"
    with pytest.raises(UserCodeError, match=said):
        load_closure(closure)
    with pytest.raises(UserCodeError, match="Can't get attribute 'no_such_name'"):
        load_closure(Closure(b"cjson\nno_such_name\n.", "parse", "job.py:7"))


class Restored:
    """Fails when it is loaded, by code of its own."""

    def __init__(self, fails: str) -> None:
        self.fails = fails

    def __call__(self, value: object) -> object:
        return value

    def __setstate__(self, state: dict[str, str]) -> None:
        if state["fails"] == "attribute":
            state.no_such_name  # type: ignore[attr-defined]
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize(("fails", "kind"), [("attribute", AttributeError), ("import", ImportError)])
def test_what_a_function_s_own_code_raises_while_it_is_loaded_stays_as_it_is(
    fails: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="no_such"):
        load_closure(make_closure(Restored(fails), "job.py:7"))


def test_a_module_that_misses_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "misses_another.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserCodeError, match="not installed where it runs: No module named 'no_such_module'"):
        load_closure(Closure(b"cmisses_another\nparse\n.", "parse", "job.py:7"))


def test_modules_are_looked_at_once_for_many_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def looked() -> list[Any]:
        looks.append(1)
        return []

    monkeypatch.setattr(closures, "_uninstalled_modules", looked)
    encode_elements([(1, "a"), (2, "b"), Prefix()], Types.PICKLED_BYTE_ARRAY())
    assert len(looks) == 1


class Unspeakable:
    def __reduce__(self) -> str:
        raise ValueError


def test_an_element_that_cannot_be_pickled_is_named_by_its_row() -> None:
    message = r"^row 1 cannot be sent to the workers \(ValueError\); "
    with pytest.raises(UnserializableFunction, match=message):
        encode_elements([1, Unspeakable()], Types.PICKLED_BYTE_ARRAY())

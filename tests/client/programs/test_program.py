"""Programs: found, checked, told apart, run."""

from __future__ import annotations

import builtins
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from yarnflow.client.programs.program import load_program, run_main
from yarnflow.client.programs.program_kind import ScriptFound
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import (
    GraphError,
    JobFailed,
    ProgramFailed,
    ProgramNotFound,
    ProgramSyntaxError,
    UnsupportedCall,
)


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    yield
    sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path


def _write(tmp_path: Path, text: str, name: str = "prog.py") -> str:
    file = tmp_path / name
    file.write_text(text)
    return str(file)


def test_missing_program(tmp_path: Path) -> None:
    with pytest.raises(ProgramNotFound, match="does not exist"):
        load_program(str(tmp_path / "none.py"))
    with pytest.raises(ProgramNotFound, match="is a directory"):
        load_program(str(tmp_path))


def test_a_module_that_is_not_found_says_where_modules_are_looked_for(tmp_path: Path) -> None:
    program = load_program(_write(tmp_path, "import yarnflow\nimport no_such_company.models\n"))
    with pytest.raises(ProgramFailed, match=r"No module named 'no_such_company'; modules are found .* -pyfs"):
        run_main(program)
    program = load_program(_write(tmp_path, "import pyflink.datastreem\n"))
    with pytest.raises(ProgramFailed, match=r"common and datastream modules$"):
        run_main(program)


def test_syntax_error_names_the_line(tmp_path: Path) -> None:
    path = _write(tmp_path, "x = 1\nfor in x:\n")
    with pytest.raises(ProgramSyntaxError, match=r"prog\.py, line 2: invalid syntax: for in x:"):
        load_program(path)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "prog.py"
    path.write_bytes(b"x = 1\0\n")
    with pytest.raises(ProgramSyntaxError):
        load_program(str(path))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import yarnflow.api as yf", ProgramKind.GRAPH),
        ("from pyflink.datastream import StreamExecutionEnvironment", ProgramKind.GRAPH),
        ("def main():\n    from yarnflow.api import StreamExecutionEnvironment", ProgramKind.GRAPH),
        ("from pyspark.sql import SparkSession", ProgramKind.SCRIPT),
        ("import yarnflower", None),
        ("import json", ProgramKind.SCRIPT),
        ("import installed_one, pyspark", ProgramKind.SCRIPT),
        ("import runpy", None),
        ("exec(open('x').read())", None),
        ("from package import relative", ProgramKind.GRAPH),
        ("import package.spark", ProgramKind.SCRIPT),
        ("import package.missing", ProgramKind.SCRIPT),
        ("# import yarnflow\npass", ProgramKind.SCRIPT),
        ("from helper import pipeline", ProgramKind.GRAPH),
        ("from package import deep", ProgramKind.GRAPH),
        ("import circular", ProgramKind.SCRIPT),
    ],
)
def test_kind(tmp_path: Path, text: str, kind: ProgramKind | None) -> None:
    _write(tmp_path, "import yarnflow", "helper.py")
    _write(tmp_path, "import circular", "circular.py")
    (tmp_path / "package").mkdir()
    _write(tmp_path / "package", "", "__init__.py")
    _write(tmp_path / "package", "from yarnflow.api import x", "deep.py")
    _write(tmp_path / "package", "from .deep import x", "relative.py")
    _write(tmp_path / "package", "from pyspark.sql import x", "spark.py")
    assert load_program(_write(tmp_path, text)).kind is kind


def test_runs_as_python_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path, "NAME = 'beside'", "neighbour_module.py")
    path = _write(
        tmp_path,
        "import sys, neighbour_module\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], sys.path[0], neighbour_module.NAME, __file__)\n"
        "    assert sys.modules['__main__'].__dict__ is globals()\n",
    )
    run_main(load_program(path, ["-p", "--x=1"]))
    assert capsys.readouterr().out == f"['-p', '--x=1'] {tmp_path} beside {path}\n"


def test_lines_it_prints_are_not_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.txt"
    with file.open("w") as piped:
        monkeypatch.setattr(sys, "stdout", piped)
        text = f"import pathlib\nprint('first')\nassert pathlib.Path({str(file)!r}).read_text() == 'first\\n'"
        run_main(load_program(_write(tmp_path, text)))


@pytest.mark.parametrize("entry", ["elsewhere/shipped_module.py", "elsewhere"])
def test_shipped_modules_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "shipped_module", raising=False)
    (tmp_path / "elsewhere").mkdir()
    _write(tmp_path / "elsewhere", "NAME = 'shipped'", "shipped_module.py")
    path = _write(tmp_path, "import shipped_module\nprint(shipped_module.NAME)\n")
    run_main(load_program(path), [str(tmp_path / entry)])
    assert capsys.readouterr().out == "shipped\n"


def test_failure_shows_the_users_frames_only(tmp_path: Path) -> None:
    path = _write(tmp_path, "def f(x):\n    return 1 / x\n\ntry:\n    {}['k']\nexcept KeyError:\n    f(0)\n")
    with pytest.raises(ProgramFailed, match="ZeroDivisionError: division by zero") as caught:
        run_main(load_program(path))
    text = caught.value.traceback_text
    assert f'File "{path}", line 2, in f' in text and "return 1 / x" in text
    assert "KeyError" in text  # what it happened during
    assert "client/programs/program.py" not in text


def test_own_errors_and_exits_pass_unchanged(tmp_path: Path) -> None:
    with pytest.raises(JobFailed):
        text = "from yarnflow.errors import JobFailed\nraise JobFailed('x')"
        run_main(load_program(_write(tmp_path, text)))
    with pytest.raises(SystemExit) as caught:
        run_main(load_program(_write(tmp_path, "import sys; sys.exit(3)")))
    assert caught.value.code == 3


def test_errors_about_the_program_name_its_line(tmp_path: Path) -> None:
    text = "from yarnflow.api.datastream import SourceFunction\nprint('x')\nSourceFunction('Java')\n"
    with pytest.raises(UnsupportedCall, match=r"^prog\.py:3: SourceFunction\(\): "):
        run_main(load_program(_write(tmp_path, text)))
    text = "from yarnflow.errors import GraphError\nraise GraphError('prog.py:7: map(): no')\n"
    with pytest.raises(GraphError, match=r"^prog\.py:7: map\(\): no$"):
        run_main(load_program(_write(tmp_path, text)))


@pytest.mark.parametrize("form", ["shipped_kind.py", "shipped.zip", "."])
def test_shipped_modules_tell_the_kind(tmp_path: Path, form: str) -> None:
    shipped = tmp_path / "elsewhere"
    shipped.mkdir()
    _write(shipped, "import pyflink", "shipped_kind.py")
    with zipfile.ZipFile(shipped / "shipped.zip", "w") as archive:
        archive.write(shipped / "shipped_kind.py", "shipped_kind.py")
    path = _write(tmp_path, "import shipped_kind")
    assert load_program(path).kind is None
    assert load_program(path, (), [str(shipped / form)]).kind is ProgramKind.GRAPH


WRAPPER = "import runpy, sys\nprint('begins')\nrunpy.run_path(sys.argv[1], run_name='__main__')\n"


def _run_wrapped(tmp_path: Path, text: str) -> None:
    run_main(load_program(_write(tmp_path, WRAPPER), [_write(tmp_path, text, "wrapped.py")]))


def test_a_wrapped_graph_program_runs_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run_wrapped(tmp_path, "import pyflink.common\nimport pyspark\nprint('ends')\n")
    assert capsys.readouterr().out == "begins\nends\n"


@pytest.mark.parametrize(
    "text",
    [
        "import pyspark\nprint('not reached')",
        "import json\nfrom pyspark.sql import SparkSession\nprint('not reached')",
        # whatever the program catches
        "try:\n    import pyspark\nexcept BaseException:\n    pass",
    ],
)
def test_a_wrapped_script_ends_before_it_uses_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    before = builtins.__import__
    with pytest.raises(ScriptFound):
        _run_wrapped(tmp_path, text)
    assert capsys.readouterr().out == "begins\n" and builtins.__import__ is before


def test_a_program_that_imports_neither_ends_as_it_does(tmp_path: Path) -> None:
    before = builtins.__import__
    _run_wrapped(tmp_path, "import json")
    with pytest.raises(ProgramFailed, match="ValueError: x"):
        _run_wrapped(tmp_path, "raise ValueError('x')")
    assert builtins.__import__ is before


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where installed packages are, with some that use pyspark; and a pyspark that starts nothing."""
    place = tmp_path / "env" / "site-packages"
    (place / "pyspark" / "core").mkdir(parents=True)
    _write(place, "", "pyspark/__init__.py")
    _write(place, "", "pyspark/core/__init__.py")
    started = "def launch_gateway(conf):\n    print('started')\n\ndef start():\n    launch_gateway(None)\n"
    _write(place, started, "pyspark/core/context.py")
    _write(place, "try:\n    import pyspark\nexcept ImportError:\n    pass\n", "with_optional_spark.py")
    _write(place, "from pyspark.core.context import start\n", "with_spark_job.py")
    names = [name for name in sys.modules if name.partition(".")[0] == "pyspark"]
    before = {name: sys.modules.pop(name) for name in names}
    monkeypatch.syspath_prepend(place)
    yield place
    for name in list(sys.modules):
        if name.partition(".")[0] in ("pyspark", "with_optional_spark", "with_spark_job"):
            del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.usefixtures("package")
def test_a_package_that_imports_pyspark_because_it_is_there_makes_no_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = "import with_optional_spark\nimport pyflink.common\nimport pyspark\nprint('ends')\n"
    _run_wrapped(tmp_path, graph)
    _run_wrapped(tmp_path, "import with_optional_spark\nprint('ends')\n")
    assert capsys.readouterr().out == "begins\nends\n" * 2
    with pytest.raises(ScriptFound):
        _run_wrapped(tmp_path, "import with_optional_spark\nimport pyspark\n")


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("catches", ["", "BaseException"])
def test_a_package_that_starts_spark_is_a_script_before_it_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], catches: str
) -> None:
    text = "import with_spark_job\nwith_spark_job.start()\n"
    if catches:
        text = "import with_spark_job\ntry:\n    with_spark_job.start()\nexcept BaseException:\n    pass\n"
    before = builtins.__import__
    with pytest.raises(ScriptFound):
        run_main(load_program(_write(tmp_path, text)))
    assert "started" not in capsys.readouterr().out and builtins.__import__ is before
    # as it was
    sys.modules["pyspark.core.context"].__dict__["start"]()
    assert capsys.readouterr().out == "started\n"

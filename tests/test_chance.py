"""Tests of second tries: who has one, what is told of it, and when a run fails for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ("pytester",)

#: each fails the first time it runs
FLAKY = """
import os, pathlib, pytest

@pytest.fixture(scope="module")
def shared():
    with open("made", "a") as file:
        file.write("x")

@pytest.fixture
def first(request):
    begun = pathlib.Path(f"{{request.path.stem}} {{request.node.name}}")
    is_first = not begun.exists()
    begun.touch()
    print("first" if is_first else "second", "try")
    return is_first

{mark}
@pytest.mark.parametrize("number", range({count}))
def test_flaky(first, number, shared):
    assert not first
"""
#: of pytest that are needed
PLUGINS = "-p pytest_rerunfailures -p xdist.plugin"
MARK = "@pytest.mark.may_rerun('a reason')"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with the plugin."""
    # others take their time to load
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / "state"))
    pytester.makeconftest('pytest_plugins = ("integration.chance",)')
    pytester.makeini(f"[pytest]\nmarkers = may_rerun(reason)\naddopts = --strict-markers {PLUGINS}\n")
    return pytester


def write(project: pytest.Pytester, path: str, *, count: int = 1, mark: str = MARK) -> None:
    file = project.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FLAKY.format(count=count, mark=mark))


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadscope")], ids=["alone", "workers"])
def test_a_pass_at_the_second_try_is_named_and_kept(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    write(project, "integration/test_outer.py", count=2)
    done = project.runpytest_subprocess(*workers, "--flaky-count-file", "count")
    assert done.ret == 0
    tests = [f"integration/test_outer.py::test_flaky[{number}]" for number in (0, 1)]
    told = [line for line in done.outlines if line.startswith("FLAKY ")]
    assert [line.rpartition("=")[0] for line in told] == [
        f"FLAKY {test} seed=PYTHONHASHSEED:7 load" for test in tests
    ]
    kept = lines(project.path / "state/yarnflow/flaky.jsonl")
    assert [each["test"] for each in kept] == tests
    assert kept[0]["seed"] == {"PYTHONHASHSEED": "7"}
    assert kept[0]["load"] >= 0 and kept[0]["waiting_factor"] >= 1 and kept[0]["time"].endswith("+00:00")
    assert "assert not True" in kept[0]["failed"] and "first try" in kept[0]["failed"]
    assert "second try" in kept[0]["passed"] and "first try" not in kept[0]["passed"]
    assert (project.path / "count").read_text() == "2\n"
    assert (project.path / "made").read_text() == "x", "what the tests of a file share was made again"


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadscope")], ids=["alone", "workers"])
def test_three_passes_at_the_second_try_fail_the_run(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write(project, "integration/test_outer.py", count=3)
    done = project.runpytest_subprocess(*workers, "--flaky-count-file", "count")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["3 passed at the second try, more than 2: the run fails"])
    assert (project.path / "count").read_text() == "3\n"


def test_no_test_fails_twice_and_passes(project: pytest.Pytester) -> None:
    write(project, "integration/test_outer.py")
    file = project.path / "integration/test_outer.py"
    file.write_text(file.read_text().replace("assert not first", "assert False"))
    done = project.runpytest_subprocess("--flaky-count-file", "count")
    done.assert_outcomes(failed=1)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert (project.path / "count").read_text() == "0\n"
    assert not (project.path / "state").exists()


def test_a_test_without_the_mark_has_one_try(project: pytest.Pytester) -> None:
    write(project, "integration/test_outer.py", mark="")
    write(project, "tests/test_unit.py", mark="")
    project.runpytest_subprocess().assert_outcomes(failed=2)


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadscope")], ids=["alone", "workers"])
def test_where_something_has_changed_there_is_one_try(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    for path in ("rest/test_one.py", "rest_more/test_two.py", "yarn/test_three.py", "yarn/test_four.py"):
        write(project, f"integration/{path}", mark=MARK.replace("a reason", path))
    changed = ("--no-rerun-in", "integration/rest", "--no-rerun-in=integration/yarn/test_three.py")
    done = project.runpytest_subprocess(*workers, *changed)
    done.assert_outcomes(failed=2, passed=2)
    failed = {line.split("[")[0] for line in done.outlines if line.startswith("FAILED ")}
    assert failed == {
        "FAILED integration/rest/test_one.py::test_flaky", "FAILED integration/yarn/test_three.py::test_flaky"
    }  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "processes left behind: 7: java", "waited 360 s for every application to end; last seen: False",
        "Timeout (>900.0s) from pytest-timeout.",
    ],
    ids=["process", "application", "hang"],
)  # fmt: skip
def test_what_is_left_behind_or_hangs_is_not_chance(project: pytest.Pytester, said: str) -> None:
    write(project, "integration/test_outer.py")
    file = project.path / "integration/test_outer.py"
    failing = f"if first: pytest.fail({said!r})"
    file.write_text(file.read_text().replace("assert not first", failing))
    project.runpytest_subprocess().assert_outcomes(failed=1)


@pytest.mark.parametrize(
    "path, mark, said",
    [
        ("tests/test_unit.py", MARK, "is not an integration test"),
        ("integration/faults/test_kills.py", MARK, "counts records"),
        ("integration/test_outer.py", "@pytest.mark.may_rerun", "needs a reason"),
        ("integration/test_outer.py", "@pytest.mark.flaky(reruns=2)", "the mark is may_rerun, not flaky"),
    ],
    ids=["unit", "records", "reason", "flaky"],
)
def test_a_mark_where_it_must_not_be_is_refused(
    project: pytest.Pytester, path: str, mark: str, said: str
) -> None:
    write(project, path, mark=mark)
    done = project.runpytest_subprocess("--collect-only")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: *{said}*"])


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--reruns", "1"], "tests run again only where they bear @pytest.mark.may_rerun"),
        (["--force-reruns", "1"], "tests run again only where they bear @pytest.mark.may_rerun"),
        (["--no-rerun-in", "integration/nowhere"], "there is no *integration/nowhere"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(
    project: pytest.Pytester, arguments: list[str], said: str
) -> None:
    done = project.runpytest_subprocess(*arguments)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"*{said}*"])


def test_the_file_can_be_chosen(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "integration/test_outer.py")
    monkeypatch.setenv("YARNFLOW_TEST_FLAKY_FILE", str(project.path / "own/by-environment"))
    project.runpytest_subprocess()
    assert len(lines(project.path / "own/by-environment")) == 1
    (project.path / "test_outer test_flaky[0]").unlink()
    project.runpytest_subprocess("--flaky-file", "by-option")
    assert len(lines(project.path / "by-option")) == 1

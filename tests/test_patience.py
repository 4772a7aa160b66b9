"""Tests of waiting times: they fit the machine, and no test has limits of its own."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.fixed_start import LARGEST_FACTOR, FixedStart, only_unit_tests, python_start
from tests.package_modules import ROOT
from tests.patience import Patience

pytest_plugins = ("pytester",)
#: no tests: they measure, or are run by hand; and programs of users
NOT_TESTS = ("integration/bench/", "integration/pyflink/programs/", "integration/pyflink/record.py")
#: their clocks are not real ones
OTHER_CLOCKS = ("tests/core/", "tests/runtime/jobmaster/test_driver_keeper.py")
#: the first argument of these is a limit
WAITING = {"wait", "join", "result", "settimeout"}
#: behind a condition and a description of it
WAIT_UNTIL = "wait_until"
#: sessions of ZooKeeper, which are settings
SETTINGS = {"KazooClient"}
LIMITS = {"timeout", "timeout_s", "limit_s"}
#: shorter ones are pauses between two looks, or times in which nothing must happen
SHORT_S = 1.0
#: values of the product under test
OF_THE_PRODUCT = {"SESSION_TIMEOUT_S", "SESSION_TIMEOUT_MS", "TIMEOUT_MS", "PATIENCE_MS"}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("tests", "integration"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(NOT_TESTS):
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def is_long(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value > SHORT_S


def own_limits(tree: ast.Module, *, with_waits: bool) -> Iterator[int]:
    """Lines that say themselves how long something may take."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and with_waits:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            limits = [keyword.value for keyword in node.keywords if keyword.arg in LIMITS]
            limits += node.args[:1] if called in WAITING else node.args[2:3] if called == WAIT_UNTIL else []
            if called not in SETTINGS and any(map(is_long, limits)):
                yield node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign) and is_long(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if any(names_a_limit(name) for name in names):
                yield node.lineno


def names_a_limit(name: str) -> bool:
    words = name.strip("_").split("_")
    kinds = {"LIMIT", "PATIENCE", "PATIENT", "TIMEOUT", "WAIT", "WAITS", "WITHIN", "SLOW"}
    return bool(kinds & set(words)) and words[-1] in ("S", "MS") and name not in OF_THE_PRODUCT


def read_too_early(tree: ast.Module) -> Iterator[int]:
    """Lines that read a limit while their module is imported, when the factor is not known."""
    bodies: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            bodies.update(inner for statement in body for inner in ast.walk(statement))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in bodies:
            if getattr(node.value, "id", "") == "PATIENCE":
                yield node.lineno


def test_no_test_has_limits_of_its_own() -> None:
    found = [
        f"{name}:{line}"
        for name, tree in sources()
        for line in own_limits(tree, with_waits=not name.startswith(OTHER_CLOCKS))
    ]
    assert not found, "tests/patience.py has the limits"


@pytest.mark.parametrize(
    "line",
    [
        "ended.wait(20)", "thread.join(1.5)", "future.result(240)", "wait_until(there, 'it', 300)",
        "events.get(timeout=10)", "cluster.yarnflow('stop', timeout_s=360)", "LIMIT_S = 20.0",
        "_ENDS_WITHIN_S: Final = 60", "SLOW_MS = 300_000",
    ],
)  # fmt: skip
def test_a_limit_of_its_own_is_seen(line: str) -> None:
    assert list(own_limits(ast.parse(line), with_waits=True)) == [1]


@pytest.mark.parametrize(
    "line",
    [
        "thread.join(0.2)", "', '.join(words)", "JUMP_S = 70",
        "KazooClient(hosts=hosts, timeout=10)", "wait_until(there, 'it', PATIENCE.job_s, 2.5)",
        "SESSION_TIMEOUT_S = 6",
    ],
)  # fmt: skip
def test_other_times_are_none_of_these(line: str) -> None:
    assert list(own_limits(ast.parse(line), with_waits=True)) == []


def test_no_limit_is_read_at_import() -> None:
    assert not [f"{name}:{line}" for name, tree in sources() for line in read_too_early(tree)]


@pytest.mark.parametrize("line", ["A = PATIENCE.job_s", "def f(s: float = PATIENCE.job_s) -> None: ..."])
def test_a_limit_read_at_import_is_seen(line: str) -> None:
    assert list(read_too_early(ast.parse(line))) == [1]
    assert list(read_too_early(ast.parse("def f() -> None:\n    wait(PATIENCE.job_s)"))) == []


def test_all_limits_grow_with_the_factor() -> None:
    patience = Patience()
    quiet = patience.thread_s, patience.job_s
    patience.factor = 2.5
    assert (patience.thread_s, patience.job_s) == tuple(2.5 * seconds for seconds in quiet)


@pytest.mark.parametrize("seconds, factor", [(0.1, 1), (0.2, 1), (0.5, 2.5), (1.6, 8), (90, LARGEST_FACTOR)])
def test_a_slow_start_gives_a_larger_factor(seconds: float, factor: float) -> None:
    assert FixedStart("x", (), 0.2).factor(seconds) == pytest.approx(factor)


def test_a_start_that_never_ends_is_not_waited_for() -> None:
    start = FixedStart("x", (sys.executable, "-c", "import time; time.sleep(600)"), 0.02)
    assert start.factor(start.seconds()) == LARGEST_FACTOR


def test_a_start_that_fails_is_not_measured() -> None:
    with pytest.raises(Exception, match="exit status 3"):
        FixedStart("x", (sys.executable, "-c", "raise SystemExit(3)"), 60).seconds()
    assert python_start().seconds() > 0


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["tests"], True), (["tests/test_patience.py::test_x"], True), ([str(ROOT / "tests/core")], True),
        (["tests", "integration"], False), (["integration/test_jars.py"], False), (["."], False),
    ],
)  # fmt: skip
def test_integration_tests_are_noticed(
    arguments: list[str], expected: bool, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig, "args", arguments)
    monkeypatch.setattr(
        pytestconfig, "invocation_params", pytest.Config.InvocationParams(args=(), plugins=None, dir=ROOT)
    )
    assert only_unit_tests(pytestconfig) == expected


def test_workers_are_told_the_factor_and_measure_nothing(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ("tests.fixed_start", "slow_machine")')
    pytester.makepyfile(
        slow_machine="""
        from tests import fixed_start
        class Slow(fixed_start.FixedStart):
            def seconds(self):
                with open("starts", "a") as file:
                    file.write("x")
                return 100.0
        fixed_start.jvm_start = fixed_start.python_start = lambda: Slow("slow", (), 1.0)
        """,
        test_inner="""
        from tests.patience import PATIENCE
        def test_one(): assert PATIENCE.thread_s == 480
        def test_two(): assert PATIENCE.thread_s == 480
        """,
    )
    done = pytester.runpytest_subprocess("-n", "2")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["waiting times × 8.0 (slow start 100.00 s)"])
    assert (pytester.path / "starts").read_text() == "xx"

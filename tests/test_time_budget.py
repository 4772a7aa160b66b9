"""A run whose time is over names what it has not run."""

from __future__ import annotations

from typing import Final

import pytest

_TESTS: Final = """
    import pytest

    @pytest.fixture
    def costly():
        raise AssertionError("made for a test that is not run")

    @pytest.mark.gate
    @pytest.mark.integration
    def test_of_the_gate(costly): ...

    @pytest.mark.integration
    def test_behind_the_gate(costly): ...

    def test_unit(costly): ...
"""
_SETTINGS: Final = """
    [pytest]
    markers =
        gate
        integration
    addopts = --strict-markers -p tests.time_budget
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    """Prepare a folder with a test of each kind."""
    pytester.makeini(_SETTINGS)
    pytester.makepyfile(test_kinds=_TESTS)
    return pytester


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_gate_that_is_not_whole_is_red(run: pytest.Pytester, workers: str) -> None:
    result = run.runpytest_inprocess("--no-start-after=1", workers)
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["test_kinds.py: 3", "A part of the gate was not run: this run is red."])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_other_tests_are_named_only(run: pytest.Pytester) -> None:
    result = run.runpytest_inprocess("--no-start-after=1", "-m", "integration and not gate")
    result.assert_outcomes(skipped=1, deselected=2)
    result.stdout.fnmatch_lines(["test_kinds.py: 1"])
    result.stdout.no_fnmatch_line("*is red*")
    assert result.ret == pytest.ExitCode.OK


def test_tests_run_before_that_time(run: pytest.Pytester) -> None:
    result = run.runpytest_inprocess("--no-start-after=99999999999")
    result.assert_outcomes(errors=3)

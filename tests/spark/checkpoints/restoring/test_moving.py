"""How state is moved, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.json_codec import from_json
from yarnflow.errors import LeaseLost, StateIncompatible
from yarnflow.operators.task.state_layout import LAYOUT_FILE, LastSource, StateLayout
from yarnflow.spark.checkpoints.restoring import moving
from yarnflow.spark.checkpoints.restoring.moving import await_end

#: Spark is not asked
NO_SPARK: Any = None
FILES: Final = '{"logOffset":3}'
OF_PROGRAM, TICKS, END = LastSource.OF_PROGRAM, LastSource.TICKS, LastSource.END


class Work:
    """Takes some looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.stopped = False

    def ended(self, seconds: float) -> bool:
        assert 0 < seconds <= 1
        self.looks -= 1
        return self.looks < 0

    def stop(self) -> None:
        self.stopped = True


def test_work_that_is_wanted_no_more_is_stopped() -> None:
    looks: list[int] = []

    def fence() -> None:
        looks.append(work.looks)
        if len(looks) == 3:
            raise LeaseLost("no more")

    work = Work(100)
    with pytest.raises(LeaseLost):
        await_end(work.ended, work.stop, fence)
    assert work.stopped and looks == [99, 98, 97]


def test_work_that_fails_is_stopped_and_such_that_ends_is_not() -> None:
    def fails(seconds: float) -> bool:
        raise ValueError("failed")

    work = Work(3)
    await_end(work.ended, work.stop, lambda: None)
    assert not work.stopped
    with pytest.raises(ValueError, match="failed"):
        await_end(fails, work.stop, lambda: None)
    assert work.stopped


class Query:
    """A copy of a query's directory, with a level of state, after batch 5 and with batch 6 planned."""

    def __init__(self, directory: Path, *offsets: str) -> None:
        self.directory = directory
        for batch in (4, 5, 6):
            self.write(f"offsets/{batch}", "\n".join(("v1", '{"conf":{"a":"1"}}', *offsets)))
        for batch in (4, 5):
            self.write(f"commits/{batch}", "v1\n{}")
        self.write("state/0/_metadata/v2/0", "")
        self.write(f"sources/{len(offsets) - 1}/0", "")
        self.write("end-of-input/elements/end", "")

    def write(self, path: str, content: str) -> None:
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / path).write_text(content)

    def exists(self, path: str) -> bool:
        return (self.directory / path).exists()

    def offsets(self) -> dict[str, list[str]]:
        return {p.name: p.read_text().splitlines()[2:] for p in (self.directory / "offsets").iterdir()}

    def move(self, before: LastSource, after: LastSource) -> None:
        """State stays where it is."""
        was, now = (StateLayout((("a",),), ((),), last) for last in (before, after))
        moving.move(NO_SPARK, str(self.directory), was, now, 0, {}, lambda: None)


@pytest.fixture(autouse=True)
def local_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "HadoopFiles", lambda spark: LocalFiles())


@pytest.mark.parametrize(
    ("before", "offsets", "after", "fitting"),
    [
        (OF_PROGRAM, [FILES], TICKS, [FILES, "-"]),
        (OF_PROGRAM, [FILES], END, [FILES, "-"]),
        (TICKS, [FILES, "8"], END, [FILES, "-"]),
        (END, [FILES, "-"], OF_PROGRAM, [FILES]),
    ],
)
def test_where_state_stays_the_log_of_offsets_is_fitted_to_the_last_source(
    tmp_path: Path, before: LastSource, offsets: list[str], after: LastSource, fitting: list[str]
) -> None:
    query = Query(tmp_path / "query-elements", *offsets)
    query.move(before, after)
    # batch 6 is planned anew
    assert query.offsets() == {"4": fitting, "5": fitting}
    assert query.exists("state/0/_metadata/v2/0")
    assert query.exists(f"sources/{len(offsets) - 1}") is (before is OF_PROGRAM)
    # that which no operator was told of yet is for the levels that were
    assert query.exists("end-of-input") is (before is not END)
    layout = from_json(StateLayout, (query.directory / LAYOUT_FILE).read_text())
    assert layout.last_source is after
    settings = json.loads((query.directory / "offsets/5").read_text().splitlines()[1])
    assert settings == {"conf": {"a": "1"}}


def test_input_that_was_read_to_its_end_does_not_go_on(tmp_path: Path) -> None:
    query = Query(tmp_path / "query-elements", FILES, FILES)
    with pytest.raises(StateIncompatible, match="query-elements has read its input to the end"):
        query.move(END, TICKS)
    assert "6" in query.offsets() and not query.exists(LAYOUT_FILE)


@pytest.mark.parametrize(("before", "after"), [(OF_PROGRAM, END), (END, OF_PROGRAM)])
def test_sources_of_windows_in_sql_are_not_fitted(
    tmp_path: Path, before: LastSource, after: LastSource
) -> None:
    query = Query(tmp_path / "query-elements", FILES, "-")
    query.write("state/1/_metadata/v2/0", "")
    with pytest.raises(StateIncompatible, match="a SQL query in it has state: read its sources"):
        query.move(before, after)
    # a clock is behind them all
    query.move(OF_PROGRAM, TICKS)


def test_where_no_state_is_left_the_log_of_commits_names_none(tmp_path: Path) -> None:
    query = Query(tmp_path / "query-elements", FILES)
    query.write("commits/5", 'v2\n{"nextBatchWatermarkMs":7,"stateUniqueIds":{"0":[["a"]]}}')
    query.write("offsets/5", 'v1\n{"conf":{"spark.sql.shuffle.partitions":"2"}}\n' + FILES)
    before, after = StateLayout((("a",),), ((),), OF_PROGRAM), StateLayout((), (), OF_PROGRAM)
    moving.move(NO_SPARK, str(query.directory), before, after, 0, {}, lambda: None)
    assert not query.exists("state")
    assert (query.directory / "commits/5").read_text() == 'v1\n{"nextBatchWatermarkMs": 7}'
    assert query.offsets() == {"4": [FILES], "5": [FILES]}

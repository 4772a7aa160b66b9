"""The list of complete test runs."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from scripts.lib import full_runs
from scripts.lib.full_runs import FULL_RUNS, FullRun, age_warning, append_run, main, newest_run

RUN = FullRun("1b39bbf", date(2026, 11, 28), 8946, 1837)
LATER = FullRun("797657a00c", date(2026, 11, 30), 9001, 2000)


def test_an_appended_run_is_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "full-runs"
    path.write_text("# the newest last\n\n")
    append_run(path, RUN)
    append_run(path, LATER)
    assert newest_run(path) == LATER
    assert path.read_text() == (
        "# the newest last\n\n1b39bbf 2026-11-28 8946 1837\n797657a00c 2026-11-30 9001 2000\n"
    )


@pytest.mark.parametrize("text", [None, "", "# comment only\n\n"])
def test_a_list_without_runs_has_no_newest(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "full-runs"
    if text is not None:
        path.write_text(text)
    assert newest_run(path) is None


@pytest.mark.parametrize(
    "line",
    ["1b39bbf 2026-11-28 8946", "1b39bbf 2026-11-31 1 1", "1b39bbf 28.11.2026 1 1", "HEAD 2026-11-28 1 1"],
)
def test_a_line_of_another_form_is_an_error(line: str, tmp_path: Path) -> None:
    path = tmp_path / "full-runs"
    path.write_text(f"{RUN}\n{line}\n")
    with pytest.raises(ValueError):
        newest_run(path)


def test_a_run_that_could_not_be_read_again_is_not_appended(tmp_path: Path) -> None:
    path = tmp_path / "full-runs"
    with pytest.raises(ValueError, match="not a line"):
        append_run(path, FullRun("HEAD", RUN.day, 1, 1))
    assert not path.exists()


@pytest.mark.parametrize(
    "newest, today, warning",
    [
        (RUN, date(2026, 11, 28), None),
        (RUN, date(2026, 12, 1), None),
        (RUN, date(2026, 12, 2), "4 days old (1b39bbf); run scripts/test full"),
        # a clock that was ahead
        (RUN, date(2026, 11, 27), None),
        (None, date(2026, 11, 28), "no complete run of the tests is recorded; run scripts/test full"),
    ],
)
def test_warning_after_three_days(newest: FullRun | None, today: date, warning: str | None) -> None:
    found = age_warning(newest, today)
    assert found is None if warning is None else found is not None and found.endswith(warning)


def test_command_line_adds_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "full-runs"
    monkeypatch.setattr(full_runs, "FULL_RUNS", path)
    main(["check"])
    assert capsys.readouterr().err.startswith("warning: no complete run")
    main(["add", "1b39bbf", "8946", "1837"])
    found = newest_run(path)
    assert found is not None and (found.commit, found.passed, found.duration_s) == ("1b39bbf", 8946, 1837)
    main(["check"])
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit, match="not a line"):
        main(["add", "HEAD", "1", "1"])


def test_the_list_of_the_project_can_be_read() -> None:
    assert FULL_RUNS.is_file()
    newest_run(FULL_RUNS)

"""The file of green runs of CI."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.green_runs import add_line, newest_tested, state_file


def test_file_lies_in_the_state_folder() -> None:
    assert state_file({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/yarnflow/ci-green")
    assert state_file({"XDG_STATE_HOME": "", "HOME": "/h"}) == Path("/h/.local/state/yarnflow/ci-green")


def test_nearest_tested_ancestor_is_the_base(tmp_path: Path) -> None:
    file = tmp_path / "state/ci-green"
    for commit in ("c2", "c1", "of another branch"):
        add_line(file, commit.replace(" ", "-"), 900, 0.5, 1)
    lines = file.read_text().splitlines()
    assert lines[0] == "c2 900 0.50 1"
    assert newest_tested(lines, ["c4", "c3", "c2", "c1"]) == "c2"
    assert newest_tested(lines, ["c4", "c3"]) is None
    assert newest_tested([], ["c1"]) is None

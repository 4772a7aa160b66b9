"""The jar of skein that goes to the ApplicationMaster."""

from __future__ import annotations

import zipfile
from pathlib import Path

from yarnflow.yarn.master_jar import master_jar, skein_jar


def test_only_the_start_page_differs_and_leads_to_the_job_manager(tmp_path: Path) -> None:
    jar = master_jar(tmp_path)
    with zipfile.ZipFile(jar) as ours, zipfile.ZipFile(skein_jar()) as theirs:
        assert ours.namelist() == theirs.namelist()
        different = [e.filename for e in ours.infolist() if e.CRC != theirs.getinfo(e.filename).CRC]
        page = ours.read("overview.mustache.html").decode()
    assert different == ["overview.mustache.html"]
    assert 'url=pages/jobmanager/"' in page


def test_it_is_made_once_and_always_the_same(tmp_path: Path) -> None:
    first, second = master_jar(tmp_path / "a"), master_jar(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    made_ns = first.stat().st_mtime_ns
    assert master_jar(tmp_path / "a").stat().st_mtime_ns == made_ns
    assert [path.name for path in first.parent.iterdir()] == [first.name], "a temporary file was left"

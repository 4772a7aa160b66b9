"""Warnings of files that Spark would show to everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.spark.served_files import files_of_options, warn_of_private_files


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}#name"])
def test_a_file_for_its_owner_only_is_named(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    private = tmp_path / "credentials.yaml"
    private.touch(mode=0o600)
    warn_of_private_files([form.format(private)])
    assert str(private) in caplog.text
    assert "without authentication" in caplog.text


def test_files_for_all_and_those_elsewhere_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    public = tmp_path / "public.csv"
    public.touch()
    public.chmod(0o644)
    warn_of_private_files([str(public), "hdfs://nn/user/me/secret", str(tmp_path / "missing")])
    assert not caplog.records


def test_options_that_add_files() -> None:
    options = {"spark.files": "/a, hdfs://nn/b", "spark.archives": "/c.zip#c", "spark.jars": "", "x": "/y"}
    assert files_of_options(options) == ["/a", "hdfs://nn/b", "/c.zip#c"]

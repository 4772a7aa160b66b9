"""The mirror of Maven Central in Maven's own settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.spark.jars.maven_settings import CENTRAL_VARIABLE, central_mirror, resolver_environment


@pytest.mark.parametrize(
    ("mirror_of", "found"),
    [
        *(("central", True), ("*", True), ("external:*", True), ("x, central", True)),
        *(("x", False), ("*,!central", False), ("external:http:*", False)),
    ],
)
@pytest.mark.parametrize("namespace", ["", ' xmlns="http://maven.apache.org/SETTINGS/1.0.0"'])
def test_which_mirror_counts(mirror_of: str, found: bool, namespace: str, tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    mirrors = f"<mirror><mirrorOf>{mirror_of}</mirrorOf><url> https://m </url></mirror>"
    settings.write_text(f"<settings{namespace}><mirrors>{mirrors}</mirrors></settings>")
    assert central_mirror(settings) == ("https://m" if found else "")


@pytest.mark.parametrize("text", [None, "<settings", "<settings/>"])
def test_settings_without_mirrors(text: str | None, tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    if text is not None:
        settings.write_text(text)
    assert central_mirror(settings) == ""


def test_variables_are_not_filled_in(tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    url = "https://${env.HOST}/m"
    mirror = f"<mirror><mirrorOf>*</mirrorOf><url>{url}</url></mirror>"
    settings.write_text(f"<settings><mirrors>{mirror}</mirrors></settings>")
    assert central_mirror(settings) == ""


def test_mavens_own_blocked_mirror_is_none(tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    blocked = "<mirror><mirrorOf>*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror>"
    mirror = "<mirror><mirrorOf>central</mirrorOf><url>https://m</url><blocked>false</blocked></mirror>"
    settings.write_text(f"<settings><mirrors>{blocked}</mirrors></settings>")
    assert central_mirror(settings) == ""
    settings.write_text(f"<settings><mirrors>{blocked}{mirror}</mirrors></settings>")
    assert central_mirror(settings) == "https://m"
    assert resolver_environment({"a": "b"}, settings) == {"a": "b", CENTRAL_VARIABLE: "https://m"}
    own = {CENTRAL_VARIABLE: "https://own"}
    assert resolver_environment(own, settings) == own
    assert resolver_environment({"a": "b"}, tmp_path / "none") == {"a": "b"}

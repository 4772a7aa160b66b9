"""Where the user's cache is."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.config.directories import cache_directory
from yarnflow.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/yarnflow"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/yarnflow"),
        ({"HOME": "/h"}, "/h/.cache/yarnflow"),
    ],
)
def test_the_cache(environ: dict[str, str], expected: str) -> None:
    assert cache_directory(environ) == Path(expected)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(ConfigError, match="set XDG_CACHE_HOME"):
        cache_directory({})

"""Paths as Hadoop reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.core.uris import file_uri, split_uri


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hdfs://nn:8020/a b%20c#1?x=y", ("hdfs", "nn:8020", "/a b%20c#1?x=y")),
        ("hdfs:///ü", ("hdfs", "", "/ü")),
        ("HDFS:/a:b", ("hdfs", "", "/a:b")),
        ("file:///tmp/10:30", ("file", "", "/tmp/10:30")),
        ("/tmp/10:30", ("", "", "/tmp/10:30")),
        ("hdfs://nn", ("hdfs", "nn", "")),
        ("a/b", ("", "", "a/b")),
    ],
)
def test_nothing_in_a_path_is_special(text: str, parts: tuple[str, str, str]) -> None:
    assert split_uri(text) == parts


def test_a_path_of_this_machine_is_found_again() -> None:
    path = Path("/home/jürgen müller/100%25#1?")
    assert split_uri(file_uri(path)) == ("file", "", str(path))

"""The three examples over real processes, as the README's reader runs them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from integration.conftest import ROOT, Commands
from integration.flights import assert_every_window_once

EXAMPLES = ROOT / "examples"


def _texts(directory: Path) -> Path:
    texts = directory / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("to be or not to be\nthat is the question\n")
    (texts / "b.txt").write_text("To be\n")
    return texts


def test_flight_delays_equals_pandas(yarnflow: Commands, tmp_path: Path) -> None:
    output = tmp_path / "windows"
    done = yarnflow.run("submit", "-p", "2", EXAMPLES / "flight_delays.py", "--output", output)
    assert done.process.returncode == 0
    assert_every_window_once(output)
    assert re.search(r"EWR|JFK|LGA", done.stdout), "the table of the worst carriers was not printed"
    assert "switched from state CREATED to RUNNING" in done.stderr
    assert "switched from state RUNNING to FINISHED" in done.stderr


@pytest.mark.gate
def test_word_count(yarnflow: Commands, tmp_path: Path) -> None:
    texts = _texts(tmp_path)
    output = tmp_path / "counts"
    done = yarnflow.run("submit", EXAMPLES / "word_count.py", "--input", texts, "--output", output)
    assert done.process.returncode == 0
    rows = ds.dataset(output, format="csv").to_table().to_pylist()
    last: Counter[str] = Counter()
    for row in rows:  # each update of a word stands there; the last one has the largest count
        last[row["word"]] = max(last[row["word"]], row["count"])
    assert last == Counter({"to": 3, "be": 3, "or": 1, "not": 1, "that": 1, "is": 1, "the": 1, "question": 1})


def test_plain_pyspark_script(yarnflow: Commands, tmp_path: Path) -> None:
    source = (EXAMPLES / "plain_pyspark.py").read_text()
    assert "yarnflow" not in re.sub(r'"""[\s\S]*?"""|#.*', "", source), "the example must not know yarnflow"
    done = yarnflow.run(
        "submit", EXAMPLES / "plain_pyspark.py", "--input", _texts(tmp_path), "--output", tmp_path / "out"
    )
    assert done.process.returncode == 0
    assert "|      to|    3|" in done.stdout
    assert "to FINISHED" in done.stderr

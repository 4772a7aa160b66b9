"""Whether a program can go on from a state; without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.checkpoints.restoring.states import (
    LAYOUT,
    NO_SPARK,
    QUERY_FILES,
    SHAPE,
    Savepoint,
    checkpoint,
)
from yarnflow.core.checkpoint.messages import ClaimMode, RestoreSettings
from yarnflow.core.checkpoint.program_shape import ProgramShape, QueryShape
from yarnflow.core.json_codec import to_json
from yarnflow.errors import StateIncompatible
from yarnflow.graph.state.sinks import SINKS_FILE, SinkEntries, SinkEntry
from yarnflow.operators.task.state_layout import LAYOUT_FILE
from yarnflow.spark.checkpoints.restoring import restore as restoring


def test_state_without_a_layout_is_for_the_same_program_alone(savepoint: Path, tmp_path: Path) -> None:
    changed = replace(SHAPE, graph_hash="of-others")
    of_state = {"query-elements/state/0/0/1.delta": "state"}
    layout = {f"query-elements/{LAYOUT_FILE}": to_json(LAYOUT)}

    def start(number: int, shape: ProgramShape, files: Mapping[str, str]) -> None:
        Savepoint(savepoint).write({**QUERY_FILES, **files})
        settings, job = RestoreSettings(str(savepoint)), str(tmp_path / f"job{number}")
        layouts = {"elements": LAYOUT}
        restoring.restore(NO_SPARK, settings, job, shape, trusted=True, layouts=layouts)

    start(1, SHAPE, of_state)
    # without state there is nothing that could lie elsewhere
    start(2, changed, {})
    with pytest.raises(StateIncompatible, match="no state-layout .* by an earlier development version"):
        start(3, changed, of_state)
    assert not (tmp_path / "job3").exists()
    start(3, changed, {**of_state, **layout})


@pytest.mark.parametrize("saved", [True, False])
def test_a_sink_that_has_begun_a_batch_must_be_there_to_complete_it(
    savepoint: Path, tmp_path: Path, saved: bool
) -> None:
    sink = SinkEntry("a" * 32, "JdbcSink", "t", "d", "a" * 32, "", "shop", "job.py:7", exactly_once=True)
    shape = replace(SHAPE, queries=(QueryShape("elements", "operators on elements"),))
    of_sinks = {f"query-elements/{SINKS_FILE}": to_json(SinkEntries((sink,)))}
    planned = {"query-elements/offsets/1": QUERY_FILES["query-elements/offsets/0"]}
    begun = {**planned, **QUERY_FILES, **of_sinks}
    root = savepoint if saved else checkpoint(tmp_path / "earlier", begun)
    if saved:
        Savepoint(savepoint).write(begun)

    def start(name: str, sinks: Sequence[SinkEntry], allow: bool = False) -> Path:
        settings = RestoreSettings(str(root), ClaimMode.CLAIM if name == "claims" else ClaimMode.NO_CLAIM)
        restoring.restore(
            NO_SPARK, settings, str(tmp_path / name), shape, trusted=True, layouts={},
            sinks={"elements": sinks}, allow_non_restored=allow,
        )  # fmt: skip
        return tmp_path / name / "query-elements"

    if not saved:
        refused = r"sink 'shop' \(no uid, job.py:7\) may have all of batch 1"
        with pytest.raises(StateIncompatible, match=refused):
            start("claims", ())
        assert root.exists() and not (tmp_path / "claims").exists(), "nothing was touched"
    # of a savepoint nothing was begun: the job has files and notes of its own from there on
    started = [start("same", (replace(sink, operator_hash="b" * 32),)), start("other", (), allow=not saved)]
    for query in started:
        assert (query / SINKS_FILE).read_text() == of_sinks[f"query-elements/{SINKS_FILE}"]
        assert (query / "sink-identity").exists() is saved

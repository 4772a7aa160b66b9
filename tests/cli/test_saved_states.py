"""The verbs about state there is: history, inspection, disposal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.state_cluster import JOB, Cluster, S
from tests.client import saved
from tests.client.fakes import checkpoint
from yarnflow.cli import savepoint_state
from yarnflow.cli.main import main
from yarnflow.core.checkpoint.manifest import METADATA_FILE, from_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind, CheckpointStatus, JobCheckpoints, RestoredState
from yarnflow.errors import SavepointNotFound
from yarnflow.fs.saved_state import SavedState
from yarnflow.spark.state.reader import StateStore, StateTable

pytestmark = pytest.mark.usefixtures("interpreter")


def test_the_history(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.checkpoints = JobCheckpoints(
        JOB,
        completed=12,
        failed=1,
        history=(
            checkpoint(9, CheckpointStatus.IN_PROGRESS),
            checkpoint(8, CheckpointStatus.FAILED, failure="disk\nfull"),
            replace(checkpoint(7), positions=(saved.position(),)),
            replace(checkpoint(6), discarded=True),
        ),
        restored=RestoredState("hdfs://n/sp/s", CheckpointKind.SAVEPOINT, 3, 1),
        interval_ms=10_000,
    )
    assert main(["checkpoints", JOB]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        f"Checkpoints of job {JOB}: 12 completed, 1 in progress, 1 failed; interval 10.0 s, 1 retained, "
        "RETAIN_ON_CANCELLATION"
    )
    assert lines[1] == "Started from savepoint 3 (NO_CLAIM), hdfs://n/sp/s"
    cells = [re.split(r"\s{2,}", line) for line in lines[2:]]
    assert cells[0] == ["ID", "Kind", "Status", "Why", "Began", "Took", "Rows", "Size", "Path"]
    assert [row[0] for row in cells[1:]] == ["9", "8", "7", "6"]
    assert cells[2][-1] == "disk full" and cells[4][-1] == "(discarded)"
    assert cells[3][5:] == ["2.5 s", "1,234", "2.0 KiB", "hdfs://n/checkpoints/chk-7"]
    assert main(["checkpoints", JOB, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["history"][2]["status"] == "COMPLETED" and told["completed"] == 12


@pytest.mark.parametrize("interval_ms, said", [(0, "every batch"), (-1, "not known")])
def test_an_interval_that_is_no_time(
    interval_ms: int, said: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.checkpoints = JobCheckpoints(JOB, interval_ms=interval_ms)
    assert main(["checkpoints", JOB]) == 0
    assert f"; interval {said}, 1 retained" in capsys.readouterr().out


def test_inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = saved.savepoint(tmp_path)
    assert main(["savepoint", "inspect", str(root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Savepoint 7: file://{root}",
        f"  job      flights ({JOB}, key flights)",
        "  taken    1970-01-01 00:00:05 UTC by yarnflow 0.1",
        "  program  DataStream program, state in 4 partitions",
        "  files    2, 7 B",
        "Query counts, 'count' (uid counts)",
        "  position batch 12, committed 2023-11-14 22:13:20 UTC, watermark 2020-09-13 12:26:40 UTC",
        "  source   'flights' (uid flights), file /in: offset {\"logOffset\":5}",
        "  operator 'count' (uid counts), window aggregate; window tumbling, size 10000 ms; "
        "key carrier AS carrier; state n BIGINT",
        "  state 0  stateStoreSave: 1,234 rows, 2.0 KiB, 4 partitions",
    ]
    assert main(["savepoint", "inspect", "--json", str(root)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["path"], told["kind"], told["total_bytes"]) == (f"file://{root}", "SAVEPOINT", 7)
    assert told["program"]["queries"][0]["operators"][0]["uid"] == "counts"


STORES = (
    StateStore("counts", 0, "stateStoreSave", "default", 4),
    StateStore("joined", 0, "symmetricHashJoin", "left-keyToNumValues", 4),
    StateStore("joined", 0, "symmetricHashJoin", "right-keyToNumValues", 4),
    StateStore("both", 0, "dedupe", "default", 4),
    StateStore("both", 1, "stateStoreSave", "default", 4),
)


def _state(tmp_path: Path) -> SavedState:
    root = saved.savepoint(tmp_path)
    return SavedState(f"file://{root}", from_bytes((root / METADATA_FILE).read_bytes(), "x"))


@pytest.mark.parametrize(
    ("part", "found"), [("counts", 0), ("count", 0), ("both/1", 4), ("joined/0/right-keyToNumValues", 2)]
)
def test_whose_state_is_meant(part: str, found: int, tmp_path: Path) -> None:
    assert savepoint_state.find_store(_state(tmp_path), STORES, part) == STORES[found]


@pytest.mark.parametrize(
    ("part", "said"),
    [("both", "means 2 states of"), ("nothing", "names no state in"), ("", "names no state")],
)
def test_state_that_is_not_there_is_listed(part: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SavepointNotFound, match=rf"{said}.*both/1 \(stateStoreSave\)"):
        savepoint_state.find_store(_state(tmp_path), STORES, part)


def test_rows_of_a_state() -> None:
    table = StateTable(("key.carrier", "value.n"), (("AA", "12"), ("united", "3")), more=True)
    assert savepoint_state.format_table(table).splitlines() == [
        "key.carrier  value.n",
        "AA           12",
        "united       3",
        "… and more; see --limit",
    ]


@pytest.mark.parametrize("verb", [["dispose"], ["-d"], ["--dispose"], ["--verbose", "-d"]])
def test_dispose(verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = saved.savepoint(tmp_path)
    assert main(["savepoint", *verb, str(root), "--yes"]) == 0
    assert not root.exists()
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Deleted file://{root}\n")


def test_dispose_is_not_done_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = saved.savepoint(tmp_path)
    assert main(["savepoint", "dispose", str(root)]) == 12
    assert "--yes is needed" in capsys.readouterr().err
    assert (root / METADATA_FILE).exists()


def test_a_checkpoint_of_a_live_job_is_not_disposed_of(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = saved.retained(tmp_path, 4)
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes", "-t", "remote"]) == 93
    assert "is in use: job flights" in capsys.readouterr().err
    assert (job / "chk-4" / METADATA_FILE).exists()
    cluster.states = [S.CANCELED]
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes", "-t", "remote"]) == 0
    assert not job.exists()


def test_a_vanished_clusters_checkpoint_needs_force(tmp_path: Path) -> None:
    from tests.client.test_saved_state import local
    from yarnflow.core.ha.ports import LatestState
    from yarnflow.ha.stores.latest_states import FileLatestStates

    job = saved.retained(tmp_path, 4)
    record = LatestState("flights", JOB, "flights", "RUNNING", f"file://{job}/chk-4", 4, 1)
    FileLatestStates(local, f"file://{tmp_path}").write(record)
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes"]) == 93
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes", "--force"]) == 0
    assert not job.exists()

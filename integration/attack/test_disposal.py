"""Whoever may ask a cluster to delete a savepoint has nothing else deleted by it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from integration.attack.attacker import (
    NEEDS_ROOT,
    UID,
    attackers_folder,
    can_be_another_user,
    run_attack,
)
from integration.conftest import commands_in, wait_until
from integration.rest.client import Rest
from tests.client import saved
from yarnflow.core.checkpoint.manifest import METADATA_FILE
from yarnflow.errors import StorageDenied
from yarnflow.fs.file_systems import file_systems
from yarnflow.fs.saved_state import delete_savepoint

#: of the race; a check and a deletion by path were told apart within the first ten
ATTEMPTS: Final = 30

needs_another_user = pytest.mark.skipif(not can_be_another_user(), reason=NEEDS_ROOT)


@dataclass(frozen=True)
class Cluster:
    """A JobManager whose savepoints are in a folder that another user owns."""

    rest: Rest
    folder: Path

    def dispose(self, path: Path) -> Any:
        """Return the outcome of a deletion."""
        body = {"savepoint-path": f"file://{path}"}
        trigger = self.rest.post("/savepoint-disposal", body, 200)["request-id"]
        return self.rest.completed(f"/savepoint-disposal/{trigger}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("disposal")
    with attackers_folder() as folder, commands_in(directory) as commands:
        commands.start(
            "jobmanager", f"-Dio.tmp.dirs={directory}", "-Djobmanager.rpc.port=0", "-Drest.bind-port=0",
            # whoever has a token is not the cluster's user for that reason
            "-Drest.authentication.enabled=false",
            f"-Dexecution.checkpointing.savepoint-dir=file://{folder}",
        )  # fmt: skip

        def serving() -> dict[str, Any] | None:
            for file in directory.glob("yarnflow-*/standalone-*/jobmanager.json"):
                return dict(json.loads(file.read_text()))
            return None

        master = wait_until(serving, "the JobManager to serve")
        yield Cluster(Rest(master["web_address"]), folder)


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    """A file of the cluster's user where nobody else may look."""
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    home.chmod(0o700)
    (home / "work" / "thesis.tex").write_text("ten years")
    return home / "work" / "thesis.tex"


@needs_another_user
@pytest.mark.gate
def test_a_folder_that_is_exchanged_meanwhile_is_not_deleted(
    cluster: Cluster, thesis: Path, tmp_path: Path
) -> None:
    manifest = saved.savepoint(tmp_path, files={}) / METADATA_FILE
    (cluster.folder / "manifest.json").write_bytes(manifest.read_bytes())
    answers = run_attack("exchange_savepoint", cluster.rest.url, cluster.folder, thesis.parent, ATTEMPTS)
    assert thesis.exists(), answers
    assert answers.count("is a link that others can exchange") == ATTEMPTS, answers


@pytest.mark.gate
def test_what_is_not_the_clusters_is_refused_before_it_is_looked_at(cluster: Cluster, tmp_path: Path) -> None:
    savepoint = saved.savepoint(tmp_path)
    told = []
    for path in (savepoint, tmp_path / "none"):
        cause = cluster.dispose(path)["failure-cause"]
        assert cause["class"] == StorageDenied.code
        told.append(cause["stack-trace"].replace(path.name, "NAME"))
    # or anybody could learn what there is
    assert told[0] == told[1]
    assert "execution.checkpointing.savepoint-dir" in told[0] and "yarnflow savepoint dispose" in told[0]
    assert (savepoint / METADATA_FILE).exists()
    climbing = cluster.folder / ".." / tmp_path.relative_to("/tmp") / savepoint.name
    assert "failure-cause" in cluster.dispose(climbing) and (savepoint / METADATA_FILE).exists()


def test_a_savepoint_of_the_cluster_is_deleted(cluster: Cluster) -> None:
    savepoint = saved.savepoint(cluster.folder)
    assert cluster.dispose(savepoint) == {}
    assert not savepoint.exists()


@needs_another_user
def test_a_link_of_another_user_leads_to_no_disposal(tmp_path: Path) -> None:
    kept = saved.savepoint(tmp_path)
    with attackers_folder() as folder:
        link = folder / "link"
        link.symlink_to(tmp_path)
        os.chown(link, UID, UID, follow_symlinks=False)
        through = f"{link}/{kept.name}"
        with pytest.raises(StorageDenied, match="link on the way is a link that others can exchange"):
            delete_savepoint(file_systems(), f"file://{through}")
    assert (kept / METADATA_FILE).exists()

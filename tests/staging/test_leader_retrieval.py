"""Where clients of a cluster on YARN learn who leads it."""

from __future__ import annotations

import pytest

from yarnflow.errors import StorageUnavailable
from yarnflow.staging.deployment import ApplicationDirectory, Connection
from yarnflow.staging.layout import StagingLayout, prepare
from yarnflow.staging.leader_retrieval import DeploymentRetrieval
from yarnflow.testing.file_system import MemoryFileSystem


def test_whoever_published_itself_last_leads() -> None:
    fs, layout = MemoryFileSystem(), StagingLayout("/user/ann/.yarnflow")
    prepare(fs, layout, fs.user)
    directory = ApplicationDirectory(fs, layout, "0123456789abcdef")
    directory.create()
    retrieval = DeploymentRetrieval(directory)
    assert retrieval.leader() is None and not retrieval.may_change
    for epoch, highly_available in ((1, False), (2, True)):
        directory.publish_connection(
            Connection("application_1", f"n{epoch}:1", "http://n:80", "l", epoch, 7, highly_available)
        )
        leader = retrieval.leader()
        assert leader is not None
        assert (leader.address, leader.web_address) == (f"n{epoch}:1", "http://n:80")
        assert (leader.fence.leader_id, leader.fence.epoch) == ("l", epoch)
        assert retrieval.may_change == highly_available
    directory.delete()
    assert retrieval.leader() is None


def test_that_hdfs_does_not_answer_is_an_error_and_not_the_lack_of_a_leader() -> None:
    fs, layout = MemoryFileSystem(), StagingLayout("/user/ann/.yarnflow")

    def refuse(operation: str, path: str) -> None:
        raise StorageUnavailable("safe mode")

    fs.before = refuse
    with pytest.raises(StorageUnavailable):
        DeploymentRetrieval(ApplicationDirectory(fs, layout, "0123456789abcdef")).leader()

"""Configuration files of Flink: older keys are taken with a word, keys without a meaning are explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.config.documents import options_markdown
from yarnflow.config.not_here import NOT_HERE, why_not_here
from yarnflow.config.options import ALL_OPTIONS, OPTIONS_BY_KEY, client, cluster, ha, job, memory
from yarnflow.errors import InvalidOption, UnknownOption

#: as people have it since Flink 1.x
FLINK_CONF = """\
high-availability: zookeeper
high-availability.zookeeper.storageDir: hdfs:///ha
recovery.zookeeper.quorum: zk:2181
state.backend: filesystem
state.checkpoints.dir: hdfs:///checkpoints
state.savepoints.dir: hdfs:///savepoints
state.checkpoints.num-retained: 3
restart-strategy: fixeddelay
taskmanager.heap.size: 4g
taskmanager.memory.size: 1g
akka.ask.timeout: 20 s
akka.client.timeout: 90 s
"""


def test_a_file_of_older_keys_is_read_with_a_line_for_each(tmp_path: Path) -> None:
    (tmp_path / "yarnflow-conf.yaml").write_text(FLINK_CONF)
    conf = Configuration.load(tmp_path, {}, [])
    assert conf.get(ha.HA_TYPE) == "zookeeper" and conf.get(ha.STORAGE_DIR) == "hdfs:///ha"
    assert conf.get(ha.ZOOKEEPER_QUORUM) == "zk:2181" and conf.get(job.STATE_BACKEND) == "hashmap"
    assert conf.get(job.CHECKPOINT_DIR) == "hdfs:///checkpoints"
    assert conf.get(job.SAVEPOINT_DIR) == "hdfs:///savepoints" and conf.get(job.CHECKPOINTS_RETAINED) == 3
    assert conf.get(job.RESTART_STRATEGY) == "fixed-delay"
    assert conf.get(memory.TASKMANAGER_PROCESS_SIZE_MIB) == 4096
    assert conf.get(memory.MANAGED_SIZE_MIB) == 1024
    assert conf.get(cluster.RPC_ASK_TIMEOUT_MS) == 20_000 and conf.get(client.CLIENT_TIMEOUT_MS) == 90_000
    assert len(conf.notes) == len(FLINK_CONF.splitlines())
    assert conf.notes[0] == (
        f"high-availability ({tmp_path}/yarnflow-conf.yaml:1) is an older key of high-availability.type; "
        "write that instead"
    )
    # other processes get the keys that there are
    assert all(OPTIONS_BY_KEY[key].key == key for key in conf.to_dict())


def test_the_present_key_wins_and_both_are_told() -> None:
    conf = Configuration.from_dict({"state.backend": "hashmap", "state.backend.type": "rocksdb"}, "test")
    assert conf.get(job.STATE_BACKEND) == "rocksdb"
    (note,) = conf.notes
    assert note.startswith("state.backend (test) is not used") and "(test)" in note


def test_a_stronger_source_wins_with_whatever_key() -> None:
    conf = Configuration.from_dict({"state.backend.type": "rocksdb"}, "file")
    assert conf.with_values({"state.backend": "hashmap"}).get(job.STATE_BACKEND) == "hashmap"
    older = Configuration.from_dict({"state.backend": "rocksdb"}, "file")
    assert older.with_values({"state.backend.type": "hashmap"}).get(job.STATE_BACKEND) == "hashmap"
    assert len(older.with_values({"parallelism.default": "2"}).notes) == 1


def test_variables_of_the_environment_may_be_older_too() -> None:
    conf = Configuration.load(None, {"YARNFLOW_CONF_STATE_CHECKPOINTS_DIR": "/c"}, ["restart-strategy=none"])
    assert conf.get(job.CHECKPOINT_DIR) == "/c" and conf.get(job.RESTART_STRATEGY) == "none"
    assert "environment variable YARNFLOW_CONF_STATE_CHECKPOINTS_DIR" in conf.notes[0]


def test_a_wrong_value_is_told_with_the_key_that_was_written() -> None:
    with pytest.raises(InvalidOption, match=r"state.backend is 'forst' \(test\); expected one of hashmap"):
        Configuration.from_dict({"state.backend": "forst"}, "test")


def test_a_number_of_seconds_is_not_taken_for_milliseconds() -> None:
    with pytest.raises(InvalidOption, match="expected a duration of 100 ms or more"):
        Configuration.from_dict({"yarn.heartbeat.interval": "5"}, "config.yaml of Flink")


def test_no_key_means_two_options() -> None:
    keys = [key for option in ALL_OPTIONS for key in (option.key, *option.deprecated_keys)]
    assert len(keys) == len(set(keys))


def test_older_keys_are_in_the_documentation() -> None:
    text = options_markdown()
    for option in ALL_OPTIONS:
        for key in option.deprecated_keys:
            assert f"`{key}`" in text


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("execution.checkpointing.max-concurrent-checkpoints", "one at a time"),
        ("taskmanager.network.memory.buffers-per-channel", "spark.shuffle"),
        ("kubernetes.cluster-id", "no target on Kubernetes"),
        ("python.requirements", "yarnflow env pack"),
        ("jobmanager.execution.failover-strategy", "Spark runs lost tasks again"),
    ],
)
def test_keys_without_a_meaning_are_explained(key: str, said: str) -> None:
    with pytest.raises(UnknownOption, match=re.escape(f"{key} (test) of Flink means nothing here")) as caught:
        Configuration.from_dict({key: "1"}, "test")
    assert said in str(caught.value)


def test_what_is_explained_is_no_option() -> None:
    for option in ALL_OPTIONS:
        assert not why_not_here(option.key), option.key
    # but older keys may begin as others do
    assert why_not_here("akka.ask.timeout") and "akka.ask.timeout" in OPTIONS_BY_KEY
    assert all(reason for reason in NOT_HERE.values())


def test_variables_of_containers_are_taken_by_their_beginnings() -> None:
    values = {"containerized.master.env.TZ": "UTC", "containerized.taskmanager.env.X": "1", "spark.x": "y"}
    conf = Configuration.from_dict(values, "test")
    assert conf.with_beginning("containerized.master.env.") == {"TZ": "UTC"}
    assert conf.spark_options() == {"spark.x": "y"}
    with pytest.raises(UnknownOption):
        Configuration.from_dict({"containerized.master.env.": "UTC"}, "test")
    with pytest.raises(UnknownOption):
        Configuration.from_dict({"containerized.worker.env.X": "1"}, "test")

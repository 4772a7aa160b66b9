"""scripts/hadoop itself: what it starts works, and nothing is left of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hdfs
import psutil
import pytest

from integration.conftest import ROOT, wait_until
from integration.hadoop import HadoopCluster, all_processes
from tests.patience import PATIENCE

DAEMONS = ["namenode", "datanode", "resourcemanager", "nodemanager-1", "nodemanager-2"]
# submits a service with a script of one line and waits for the application's end
SKEIN = """
import sys, time
import skein

ENDED = ("FINISHED", "FAILED", "KILLED")
name, queue, script, wait = sys.argv[1:]
service = skein.Service(resources=skein.Resources(memory=128, vcores=1), script=script)
with skein.Client(log=False) as client:
    application = client.submit(skein.ApplicationSpec(name=name, queue=queue, services={"one": service}))
    print(application)
    while wait == "wait" and client.application_report(application).state not in ENDED:
        time.sleep(0.2)
"""


def run_script(
    verb: str, folder: Path, *arguments: str, environment: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Run scripts/hadoop for the cluster in a folder; returns exit status, output, messages."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/hadoop", verb, "--dir", folder, *arguments],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE.command_s,
    )
    return done.returncode, done.stdout, done.stderr


def submit(cluster: HadoopCluster, name: str, queue: str, script: str, wait: bool) -> str:
    """Submit an application of one container; returns its id."""
    words = [sys.executable, "-c", SKEIN, name, queue, script, "wait" if wait else ""]
    return cluster.run(*words, timeout_s=PATIENCE.command_s).split()[-1]


def test_hdfs_writes_reads_and_renames(hadoop: HadoopCluster) -> None:
    hadoop.hdfs.put("/user/test-hadoop/one", b"some bytes")
    hadoop.hdfs.rename("/user/test-hadoop/one", "/user/test-hadoop/two")

    assert hadoop.hdfs.list("/user/test-hadoop") == ["two"]
    assert hadoop.hdfs.read("/user/test-hadoop/two") == b"some bytes"
    with pytest.raises(hdfs.HdfsError):
        hadoop.hdfs.rename("/user/test-hadoop/one", "/user/test-hadoop/three")
    assert hadoop.hdfs.delete("/user/test-hadoop")
    assert not hadoop.hdfs.exists("/user/test-hadoop")


def test_folders_that_applications_need_are_there(hadoop: HadoopCluster) -> None:
    assert hadoop.hdfs.status("/tmp")["permission"] == "1777"
    assert hadoop.hdfs.status("/tmp/logs")["permission"] == "1777"
    user = hadoop.hdfs.status("/user")["owner"]
    assert hadoop.hdfs.status(f"/user/{user}")["owner"] == user


def test_an_application_runs_and_its_output_is_kept(hadoop: HadoopCluster) -> None:
    application = submit(hadoop, "echo", "small", "echo hello from $CONTAINER_ID", wait=True)

    assert hadoop.yarn_application(application)["finalStatus"] == "SUCCEEDED"
    assert application in hadoop.run("yarn", "application", "-list", "-appStates", "FINISHED")
    wait_until(lambda: not hadoop.containers(application), "its containers to be cleaned up")
    container = application.replace("application", "container")

    wait_until(
        lambda: hadoop.yarn_application(application)["logAggregationStatus"] == "SUCCEEDED",
        "its logs to be on HDFS",
    )
    logs = hadoop.run("yarn", "logs", "-applicationId", application)
    assert f"hello from {container}_01_000002" in logs


def test_client_commands_find_the_cluster(hadoop: HadoopCluster) -> None:
    class_path = hadoop.run("yarn", "classpath", "--glob").strip().split(":")

    assert class_path[0] == hadoop.env()["HADOOP_CONF_DIR"]
    assert all(Path(entry).exists() for entry in class_path)
    assert any("hadoop-yarn-client" in entry for entry in class_path)
    assert hadoop.run("yarn", "node", "-list").count("RUNNING") == 2
    assert "Safe mode is OFF" in hadoop.run("hdfs", "dfsadmin", "-safemode", "get")
    assert "/tmp" in hadoop.run("hadoop", "fs", "-ls", "/")


def test_safe_mode_can_be_switched(hadoop: HadoopCluster) -> None:
    hadoop.safe_mode(True)
    try:
        with pytest.raises(hdfs.HdfsError, match="safe mode"):
            hadoop.hdfs.put("/tmp/refused", b"")
    finally:
        hadoop.safe_mode(False)
    hadoop.hdfs.put("/tmp/taken", b"")
    assert hadoop.hdfs.delete("/tmp/taken")


@pytest.fixture(scope="class")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopCluster]:
    """A cluster beside the first one."""
    cluster = HadoopCluster.start(tmp_path_factory.mktemp("own") / "cluster", zookeepers=3)
    yield cluster
    cluster.stop()


@pytest.mark.drill
class TestOneOfItsOwn:
    """Daemons come and go; these tests build on each other, the last one ends the cluster."""

    def test_status_names_every_daemon(self, own: HadoopCluster) -> None:
        status, output, _ = run_script("status", own.folder)

        assert status == 0
        wanted = [*(f"zookeeper-{number}" for number in (1, 2, 3)), *DAEMONS]
        assert [line.split()[:2] for line in output.splitlines()] == [[name, "running"] for name in wanted]

    def test_starting_it_again_changes_nothing(self, own: HadoopCluster) -> None:
        before = run_script("status", own.folder)

        status, _, messages = run_script("start", own.folder)

        assert (status, messages) == (0, f"hadoop: a cluster runs in {own.folder} already\n")
        assert run_script("status", own.folder) == before

    def test_a_killed_daemon_comes_back(self, own: HadoopCluster) -> None:
        for daemon in ("zookeeper-2", "namenode", "nodemanager-1"):
            own.kill(daemon)
            status, output, _ = run_script("status", own.folder)
            assert status == 1
            assert [line.split()[0] for line in output.splitlines() if line.endswith("gone")] == [daemon]
            own.restart(daemon)
            assert run_script("status", own.folder)[0] == 0

        def wrote() -> bool:
            try:
                own.hdfs.put("/tmp/after", b"all that")
            except hdfs.HdfsError:  # the DataNode finds out that its connection led to the old NameNode
                return False
            return True

        wait_until(wrote, "HDFS to be written to")
        assert own.hdfs.read("/tmp/after") == b"all that"
        assert len([node for node in own.nodes() if node["state"] == "RUNNING"]) == 2

    def test_a_paused_daemon_is_shown_and_goes_on(self, own: HadoopCluster) -> None:
        own.pause("resourcemanager")
        status, output, _ = run_script("status", own.folder)
        own.resume("resourcemanager")

        assert status == 1
        assert "paused" in next(line for line in output.splitlines() if line.startswith("resourcemanager"))
        assert own.yarn_applications() == []

    def test_the_end_of_a_log_is_shown(self, own: HadoopCluster) -> None:
        status, output, _ = run_script("logs", own.folder, "datanode", "-n", "3")

        assert (status, len(output.splitlines())) == (0, 3)

    def test_nothing_is_left_after_stop(self, own: HadoopCluster) -> None:
        # both ignore SIGTERM in sessions of their own; one lacks the variables, one the working directory
        forever = "bash -c 'trap : TERM; while :; do sleep 1; done'"
        script = f"env -i setsid {forever} & (cd / && exec setsid {forever}) & sleep 1000"
        application = submit(own, "stubborn", "default", script, wait=False)
        wait_until(lambda: len(_processes_with("trap : TERM; while")) == 2, "the container to run")
        assert [app["id"] for app in own.yarn_applications(["RUNNING"])] == [application]
        own.pause("nodemanager-2")

        own.stop()

        assert _processes_with("trap : TERM; while") == []
        assert own.processes() == []
        assert not own.folder.exists()
        status, output, messages = run_script("stop", own.folder)
        assert (status, output, messages) == (0, "", f"hadoop: no cluster ran in {own.folder}\n")
        assert run_script("status", own.folder)[0] == 1


class TestRefusals:
    """Bad input: one line, nothing touched."""

    def test_a_folder_with_other_files(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").write_text("years of work")

        for verb in ("start", "stop"):
            status, _, messages = run_script(verb, tmp_path)
            assert status == 1
            assert len(messages.splitlines()) == 1
        assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]

    def test_a_setting_of_something_else(self, tmp_path: Path) -> None:
        status, _, messages = run_script("start", tmp_path / "new", "--set", "spark.master=yarn")

        assert (status, messages) == (2, "hadoop: --set spark.master: not a setting of HDFS or YARN\n")
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("missing", ["java", "mvn"])
    def test_a_missing_program(self, tmp_path: Path, missing: str) -> None:
        environment = {"PATH": "", "JAVA_HOME": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        if missing == "mvn":
            environment["JAVA_HOME"] = os.environ.get("JAVA_HOME") or _java_home()

        status, _, messages = run_script("start", tmp_path / "new", environment=environment)

        assert status == 3
        assert messages.startswith(f"hadoop: {missing} is not installed; install ")
        assert "apt-get install " in messages and len(messages.splitlines()) == 1
        assert not (tmp_path / "new").exists()

    def test_a_setting_that_no_daemon_starts_with(self, tmp_path: Path) -> None:
        status, _, messages = run_script("start", tmp_path / "new", "--set", "dfs.replication=many")

        assert status == 1
        assert 'NumberFormatException: For input string: "many"' in messages
        assert messages.splitlines()[-1].startswith("hadoop: ")
        assert not (tmp_path / "new").exists()


def _processes_with(word: str) -> list[psutil.Process]:
    found = []
    for process in all_processes():
        with contextlib.suppress(psutil.Error):
            if any(text.startswith(word) for text in process.cmdline()):
                found.append(process)
    return found


def _java_home() -> str:
    java = shutil.which("java")
    assert java is not None
    return str(Path(java).resolve().parent.parent)

"""What a process makes of the container it finds itself in."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from yarnflow.client.programs.job_key import JobKeyChoice
from yarnflow.client.yarn.specification import shipped_configuration
from yarnflow.config.conf_file import CONF_FILE_NAME
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster, job, python, security
from yarnflow.core.json_codec import to_json
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint import client_program
from yarnflow.entrypoint.yarn import application_program
from yarnflow.entrypoint.yarn.container import Container, append_output, enter, when_parent_ends
from yarnflow.entrypoint.yarn.services import container_services
from yarnflow.errors import ConfigError
from yarnflow.staging.deployment import Deployment
from yarnflow.staging.layout import StagingLayout


def deployment(interpreter: str = "/env/bin/python", **configuration: str) -> Deployment:
    return Deployment(
        deployment_id="0123456789abcdef",
        mode=DeploymentMode.PER_JOB,
        staging_uri="hdfs://nn:8020/user/ann/.yarnflow",
        application_dir="/user/ann/.yarnflow/applications/0123456789abcdef",
        user="ann",
        configuration={key.replace("__", "-").replace("_", "."): text for key, text in configuration.items()},
        python=interpreter,
    )


def environ(directory: Path) -> dict[str, str]:
    return {
        "NM_HOST": "node7",
        "CONTAINER_ID": "container_1",
        "LOG_DIRS": f"{directory}/logs1,{directory}/logs2",
        "LOCAL_DIRS": f"{directory}/disk1,{directory}/disk2",
        "SKEIN_APPLICATION_ID": "application_1",
        "SKEIN_CONTAINER_ID": "taskmanager_3",
    }


def entered(directory: Path, what: Deployment, env: dict[str, str] | None = None) -> Container:
    (directory / "deployment.json").write_text(to_json(what))
    return enter(environ(directory) if env is None else env, directory)


def test_files_stay_inside_the_container(tmp_path: Path) -> None:
    env = environ(tmp_path)
    container = entered(tmp_path, deployment(), env)
    assert env["TMPDIR"] == str(tmp_path / "tmp") and Path(env["TMPDIR"]).is_dir()
    assert container.disks == (tmp_path / "disk1" / "container_1", tmp_path / "disk2" / "container_1")
    # skein looks for its certificate by it
    assert env["LOCAL_DIRS"] == f"{tmp_path}/disk1,{tmp_path}/disk2"
    assert env["HADOOP_USER_NAME"] == "ann"
    assert container.logs == tmp_path / "logs1"
    assert (container.worker_id, container.application_id) == ("taskmanager_3", "application_1")


def test_one_of_several_masters(tmp_path: Path) -> None:
    what = deployment(high__availability_type="zookeeper")
    first = entered(tmp_path, what)
    assert not first.standby and first.worker_name == "application_1/taskmanager_3"
    standby = entered(tmp_path, what, {**environ(tmp_path), "YARNFLOW_STANDBY": "1"})
    assert standby.standby
    assert entered(tmp_path, deployment()).worker_name == "taskmanager_3"


@pytest.mark.parametrize("ports", ["50100-50200", "50100,50101"])
def test_options_of_the_container_over_the_client_s(ports: str, tmp_path: Path) -> None:
    client = {"taskmanager_host": "elsewhere", "taskmanager_rpc_port": ports, "jobmanager_rpc_port": "7-7"}
    what = deployment(parallelism_default="4", **client)
    got = entered(tmp_path, what).configuration({cluster.JOBMANAGER_RPC_ADDRESS.key: "node7"})
    assert got.get(job.PARALLELISM_DEFAULT) == 4
    assert got.get(cluster.TASKMANAGER_HOST) == got.get(cluster.JOBMANAGER_RPC_ADDRESS) == "node7"
    assert got.get(cluster.LOG_DIR) == str(tmp_path / "logs1")
    assert got.get(security.CLUSTER_SECRET_FILE) == str(tmp_path / "secret")
    # one port cannot serve every container of a node, several can
    assert got.get(cluster.JOBMANAGER_RPC_PORT) == "0"
    assert got.get(cluster.TASKMANAGER_RPC_PORT) == ports


def test_paths_without_scheme_are_on_the_cluster_s_file_system(tmp_path: Path) -> None:
    key = "spark.hadoop.fs.defaultFS"
    assert entered(tmp_path, deployment()).configuration().get_raw(key) == "hdfs://nn:8020"
    own = Deployment(**{**asdict(deployment()), "configuration": {key: "s3a://bucket"}})
    assert entered(tmp_path, own).configuration().get_raw(key) == "s3a://bucket"


@pytest.mark.parametrize(
    ("interpreter", "asked", "expected"),
    [
        ("/env/bin/python", "", ""),
        ("environment/bin/python", "", "environment/bin/python"),
        ("environment/bin/python", "/other/python", "/other/python"),
    ],
)
def test_a_shipped_interpreter_is_named_relative_to_each_container(
    tmp_path: Path, interpreter: str, asked: str, expected: str
) -> None:
    configuration = {"python_executable": asked} if asked else {}
    container = entered(tmp_path, deployment(interpreter, **configuration))
    assert container.configuration().get(python.PYTHON_EXECUTABLE) == expected


def test_users_code_sees_what_was_shipped_for_it(tmp_path: Path) -> None:
    (tmp_path / "filecache").mkdir()
    for name in ("data.csv", "environment", "secret", "submission.json", ".skein.pem"):
        (tmp_path / name).symlink_to(tmp_path / "filecache")
    (tmp_path / "launch_container.sh").write_text("")
    container = entered(tmp_path, deployment())
    assert sorted(container.shared_files()) == ["data.csv", "environment"]


def test_elsewhere_it_says_who_starts_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not the working directory of a container"):
        enter(environ(tmp_path), tmp_path)
    (tmp_path / "deployment.json").write_text(to_json(deployment()))
    with pytest.raises(ConfigError, match="NM_HOST"):
        enter({}, tmp_path)


def test_output_and_log_lines_do_not_overwrite_each_other(tmp_path: Path) -> None:
    output = tmp_path / "taskmanager.log"
    program = (
        f"from {append_output.__module__} import append_output; import os; append_output();"
        f"file = open({str(output)!r}, 'a'); file.write('a line of a log\\n'); file.close();"
        "os.write(1, b'x\\n'); os.write(2, b'y\\n');"
        # a master forks afterwards
        "import threading; assert threading.active_count() == 1"
    )
    with output.open("wb") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, stderr=file, check=True, env=os.environ)
    assert output.read_text() == "a line of a log\nx\ny\n"


def test_the_end_of_the_parent_is_noticed(tmp_path: Path) -> None:
    program = (
        f"import os, sys; from {when_parent_ends.__module__} import when_parent_ends; import threading;"
        "ended = threading.Event(); when_parent_ends(ended.set); print('watching', flush=True);"
        "print(ended.wait(30), flush=True)"
    )
    # the shell ends as soon as it has started the program
    with subprocess.Popen(
        ["sh", "-c", '"$0" -c "$1" & read line', sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        assert shell.stdout.readline() == "watching\n"
        shell.stdin.close()
        assert shell.stdout.readline() == "True\n"


def test_the_program_s_options_survive_their_file(tmp_path: Path) -> None:
    configuration = Configuration.from_dict(
        {"pipeline.name": 'Zürich: "a\\b"\t😀', "yarn.tags": "", "parallelism.default": "3"}, "test"
    )
    options = application_program.program_options(configuration, "node7:4711", "us")
    client_program.write_options(options, tmp_path / "conf")
    read = Configuration.load(tmp_path / "conf", {}, [])
    assert read == options
    assert read.get(client.TARGET) == "remote"
    assert read.get(cluster.JOBMANAGER_RPC_ADDRESS) == "node7"
    assert read.get(cluster.JOBMANAGER_RPC_PORT) == "4711"
    assert (tmp_path / "conf" / CONF_FILE_NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("key", ["us", "eu"])
def test_jobs_of_one_name_have_the_keys_of_their_applications(key: str) -> None:
    submitted = Configuration.from_dict({"pipeline.job-key": key}, "test")
    shipped = shipped_configuration(submitted, StagingLayout("/staging"), "hdfs://x", "1" * 16)
    options = application_program.program_options(
        Configuration.from_dict(shipped, "deployment"), "node7:4711", key
    )
    keys = JobKeyChoice(options.get(job.JOB_KEY))
    # whatever the program calls its jobs, a run finds the state of the same job of the run before
    assert [keys.next(name).key for name in ("rows", "sums", "rows")] == [key, f"{key}#2", f"{key}#3"]


def test_shared_directories_in_place_of_hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core-site.xml", "yarn-site.xml"):
        (tmp_path / name).write_text("<configuration/>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert container_services(deployment()).fs.uri == "file://"

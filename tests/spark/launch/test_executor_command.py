"""Command lines and environments of driver JVMs and executors."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.spark.launch.executor_command import ExecutorSettings, executor_command
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.jvm import gateway_command, gateway_environment
from yarnflow.spark.launch.session import SessionSettings, spark_options
from yarnflow.spark.launch.spark_home import LOG4J_CONFIG, LOG4J_JSON_CONFIG, module_options, options_in_class

JAVA = JavaRuntime(Path("/jre/bin/java"), "17.0.1", "PATH")
SECRET = "c0ffee" * 10


def descriptor(**changes: object) -> ExecutorDescriptor:
    values: dict[str, object] = {
        "job_id": JobId("1" * 32),
        "driver_id": DriverId("d"),
        "executor_id": ExecutorId("3"),
        "driver_url": "spark://CoarseGrainedScheduler@h:1",
        "app_id": "app-1",
        "cores": 2,
        "java_options": ("--add-opens=java.base/java.nio=ALL-UNNAMED", "-Dspark.driver.port=1"),
        "environment": {"FROM_DRIVER": "yes"},
    }
    return ExecutorDescriptor(**{**values, **changes})  # type: ignore[arg-type]


def settings(**changes: object) -> ExecutorSettings:
    values: dict[str, object] = {"java": JAVA, "host": "worker7", "heap_mib": 700, "python_executable": "/py"}
    return ExecutorSettings(**{**values, **changes})  # type: ignore[arg-type]


def test_the_executor_dials_the_driver_with_its_cores() -> None:
    command = executor_command(descriptor(), settings(), SECRET, {}).command
    main = command.index("org.apache.spark.executor.CoarseGrainedExecutorBackend")
    arguments = dict(zip(command[main + 1 :: 2], command[main + 2 :: 2]))
    assert arguments == {
        "--driver-url": "spark://CoarseGrainedScheduler@h:1",
        "--executor-id": "3",
        "--hostname": "worker7",
        "--bind-address": "0.0.0.0",
        "--cores": "2",
        "--app-id": "app-1",
        "--resourceProfileId": "0",
    }
    assert command[0] == "/jre/bin/java"
    assert "-Xmx700m" in command
    assert "-Dspark.driver.port=1" in command


def test_slots_may_have_several_task_threads() -> None:
    session = spark_options(SessionSettings("a", "h", "s", task_threads_per_slot=3))
    environment = {
        key.removeprefix("spark.executorEnv."): value
        for key, value in session.items()
        if key.startswith("spark.executorEnv.")
    }
    command = executor_command(descriptor(environment=environment), settings(), SECRET, {}).command
    assert command[command.index("--cores") + 1] == "6"


def test_the_secret_is_in_the_environment_only() -> None:
    made = executor_command(descriptor(), settings(), SECRET, {})
    assert made.environment["_SPARK_AUTH_SECRET"] == SECRET
    assert not any(SECRET in part for part in made.command)
    assert SECRET not in repr(made)


def test_workers_get_the_interpreter_and_find_yarnflow() -> None:
    inherited = {"PYTHONPATH": "/old:/user", "A": "b"}
    env = executor_command(descriptor(), settings(python_path=("/user",)), SECRET, inherited).environment
    assert env["PYSPARK_PYTHON"] == "/py"
    first, root, old = env["PYTHONPATH"].split(":")
    assert (first, old) == ("/user", "/old")
    assert (Path(root) / "yarnflow" / "spark").is_dir()
    assert (env["A"], env["FROM_DRIVER"]) == ("b", "yes")


def test_workers_load_no_modules_of_the_folder_they_start_in() -> None:
    assert executor_command(descriptor(), settings(), SECRET, {}).environment["PYTHONSAFEPATH"] == "1"


def test_what_belongs_to_another_spark_is_not_inherited() -> None:
    inherited = {"PYSPARK_GATEWAY_SECRET": "x", "SPARK_REMOTE": "y"}
    env = executor_command(descriptor(), settings(), SECRET, inherited).environment
    assert "PYSPARK_GATEWAY_SECRET" not in env and "SPARK_REMOTE" not in env


def test_module_options_stand_in_when_the_driver_sent_none() -> None:
    command = executor_command(descriptor(java_options=()), settings(), SECRET, {}).command
    assert set(module_options()) <= set(command)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_loopback_cluster_binds_to_loopback_only(host: str) -> None:
    command = executor_command(descriptor(), settings(host=host), SECRET, {}).command
    assert command[command.index("--bind-address") + 1] == "127.0.0.1"


def test_module_options_are_spark_s_without_the_one_that_prints_a_warning() -> None:
    options = module_options()
    assert "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED" in options
    assert not any(option.startswith("--add-modules") for option in options)
    assert all(option.startswith("-") for option in options)


def test_options_in_class_reads_lengths_and_not_looks() -> None:
    def constant(text: bytes) -> bytes:
        return b"\x01" + len(text).to_bytes(2, "big") + text

    opens = b"--add-opens=java.base/java.lang=ALL-UNNAMED"
    assert len(opens) == ord("+")  # whose length byte looks like text
    content = b"\xca\xfe" + b"".join(map(constant, (opens, b"-Dx.y=true", b"hello", b"-Lno;")))
    assert options_in_class(content) == (opens.decode(), "-Dx.y=true")


def test_gateway_command_and_environment() -> None:
    command = gateway_command(JAVA, 800, ["-XX:+UseSerialGC"])
    assert command[0] == "/jre/bin/java" and "-Xmx800m" in command
    assert command[-1] == "org.apache.spark.api.python.PythonGatewayServer"
    env = gateway_environment({"HOME": "/h"}, "127.0.0.1", Path("/tmp/c"))
    assert env["_PYSPARK_DRIVER_CONN_INFO_PATH"] == "/tmp/c"
    assert env["SPARK_LOCAL_IP"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("log_format", "file"), [("text", "log4j2.properties"), ("json", "log4j2-json.properties")]
)
def test_sparks_own_log_has_the_form_of_the_others(log_format: str, file: str) -> None:
    of_executor = executor_command(descriptor(), settings(log_format=log_format), SECRET, {}).command
    for command in (of_executor, gateway_command(JAVA, 800, log_format=log_format)):
        (named,) = [part for part in command if part.startswith("-Dlog4j2.configurationFile=file:")]
        path = Path(named.partition("file:")[2])
        assert path.name == file and path.is_file()
    # looked up with each line
    assert f"-Dyarnflow.job.id={descriptor().job_id}" in of_executor


def test_both_forms_have_the_same_levels() -> None:
    def levels(path: Path) -> list[str]:
        lines = path.read_text().splitlines()
        return [line for line in lines if line.startswith(("logger.", "rootLogger.l"))]

    assert levels(LOG4J_CONFIG) == levels(LOG4J_JSON_CONFIG) != []


@pytest.mark.parametrize(("heap_mib", "serial"), [(600, True), (8000, False)])
def test_small_heaps_are_collected_by_one_thread(heap_mib: int, serial: bool) -> None:
    command = executor_command(descriptor(), settings(heap_mib=heap_mib), SECRET, {}).command
    assert ("-XX:+UseSerialGC" in command) is serial


def test_the_user_s_collector_replaces_ours() -> None:
    command = executor_command(descriptor(java_options=("-XX:+UseG1GC",)), settings(), SECRET, {}).command
    assert [part for part in command if part.endswith("GC")] == ["-XX:+UseG1GC"]


def test_hadoop_s_configuration_comes_last_on_the_class_path() -> None:
    # archives of classes need the class path they were made with, or one that begins so
    for command in (
        executor_command(descriptor(), settings(hadoop_conf_dir="/conf"), SECRET, {}).command,
        gateway_command(JAVA, 800, hadoop_conf_dir="/conf"),
    ):
        without = gateway_command(JAVA, 800)
        jars = without[without.index("-cp") + 1]
        assert command[command.index("-cp") + 1] == f"{jars}:/conf"


def test_files_of_an_executor_stay_in_its_directories() -> None:
    own = settings(local_dirs=("/d1/e", "/d2/e"), temporary_dir="/d1/e/tmp")
    made = executor_command(descriptor(), own, SECRET, {"LOCAL_DIRS": "/d1"})
    assert "-Djava.io.tmpdir=/d1/e/tmp" in made.command
    assert made.environment["TMPDIR"] == "/d1/e/tmp"
    # Spark reads the second in containers of YARN
    assert made.environment["SPARK_LOCAL_DIRS"] == made.environment["LOCAL_DIRS"] == "/d1/e,/d2/e"


def test_files_of_a_driver_go_with_its_container() -> None:
    env = gateway_environment({"LOCAL_DIRS": "/d1,/d2", "CONTAINER_ID": "c7"}, "127.0.0.1", Path("/tmp/c"))
    assert env["LOCAL_DIRS"] == "/d1/c7,/d2/c7"
    assert "LOCAL_DIRS" not in gateway_environment({"CONTAINER_ID": "c7"}, "127.0.0.1", Path("/tmp/c"))

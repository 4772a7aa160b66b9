from __future__ import annotations

from dataclasses import replace

from yarnflow.core.yarn import ApplicationSpec, ContainerSpec, LocalResource, Visibility
from yarnflow.yarn.spec import describe, skein_spec

SPEC = ApplicationSpec(
    name="flights",
    queue="small",
    tags=("yarnflow", "yarnflow-0123"),
    master=ContainerSpec(
        2048,
        2,
        "exec python -m master\n",
        {
            "skein.jar": LocalResource(
                "hdfs://nn:8020/cache/skein.jar", False, Visibility.PUBLIC, 7_841_831, 1_795_220_280_127
            ),
            "environment": LocalResource("hdfs://ha-name/env.tar.gz", archive=True),
            "data.zip": LocalResource("hdfs://nn:8020/data.zip"),
        },
        {"A": "1"},
    ),
    task_manager=ContainerSpec(1728, 1, "exec python -m worker\n", node_label="fast"),
    initial_task_managers=3,
    max_attempts=2,
    node_label="any",
    file_systems=("hdfs://other:8020",),
)


def test_the_master() -> None:
    found = skein_spec(SPEC)
    assert (found.name, found.queue, found.tags) == ("flights", "small", {"yarnflow", "yarnflow-0123"})
    assert (found.max_attempts, found.node_label) == (2, "any")
    assert found.file_systems == ["hdfs://other:8020"]
    assert (found.master.resources.memory, found.master.resources.vcores) == (2048, 2)
    assert found.master.script.endswith("exec python -m master\n")
    assert not found.acls.enable


def test_options_of_skeins_jvm_end_with_it() -> None:
    found = skein_spec(replace(SPEC, master=replace(SPEC.master, environment={"JDK_JAVA_OPTIONS": "-Dx=1"})))
    assert found.master.env["JDK_JAVA_OPTIONS"].startswith("-XX:TieredStopAtLevel=1 ")
    assert found.master.env["JDK_JAVA_OPTIONS"].endswith(" -Dx=1")
    assert found.master.script.startswith("unset JDK_JAVA_OPTIONS\n")
    assert "JDK_JAVA_OPTIONS" not in found.services["taskmanager"].env


def test_task_managers_that_fail_do_not_end_the_application() -> None:
    service = skein_spec(SPEC).services["taskmanager"]
    assert (service.instances, service.max_restarts, service.allow_failures) == (3, 0, True)
    assert (service.resources.memory, service.node_label) == (1728, "fast")


def test_files_are_what_they_are_said_to_be_whatever_their_names() -> None:
    files = skein_spec(SPEC).master.files
    jar = files["skein.jar"]
    assert (str(jar.type), str(jar.visibility)) == ("FILE", "PUBLIC")
    assert (jar.size, jar.timestamp) == (7_841_831, 1_795_220_280_127)
    assert str(files["environment"].type) == "ARCHIVE"
    # an archive by its name, but not meant to be unpacked; size and time are skein's to look up
    data = files["data.zip"]
    assert (str(data.type), data.size, data.timestamp) == ("FILE", 0, 0)


def test_it_becomes_a_message() -> None:
    sent = skein_spec(SPEC).to_protobuf()
    assert sent.master.files["environment"].source.host == "ha-name"
    assert sent.master.files["skein.jar"].source.port == 8020


def test_access_lists_as_yarn_writes_them() -> None:
    acls = skein_spec(replace(SPEC, view_acls="ada,bob devs", modify_acls=" ops,root")).acls
    assert acls.enable
    assert (acls.view_users, acls.view_groups) == (["ada", "bob"], ["devs"])
    assert (acls.modify_users, acls.modify_groups) == ([], ["ops", "root"])
    assert acls.ui_users == ["ada", "bob"]


def test_the_description_has_everything_but_secrets() -> None:
    secrets = ("AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "api-key")
    environment = dict.fromkeys(secrets, "geheim") | {"PLAIN": "x"}
    said = describe(replace(SPEC, master=replace(SPEC.master, environment=environment)))
    assert "geheim" not in said
    assert "PLAIN: x" in said
    assert "queue: small" in said
    assert "instances: 3" in said


def test_drivers_are_a_service_that_begins_empty() -> None:
    assert "driver" not in skein_spec(SPEC).services
    spec = replace(SPEC, driver=ContainerSpec(1728, 2, "exec python -m driver\n", environment={"TOKEN": "t"}))
    service = skein_spec(spec).services["driver"]
    assert (service.instances, service.max_restarts, service.allow_failures) == (0, 0, True)
    assert (service.resources.memory, service.resources.vcores) == (1728, 2)
    assert "TOKEN: t" not in describe(spec)

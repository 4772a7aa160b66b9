"""Hadoop's configuration as Hadoop's own clients read it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.errors import YarnUnavailable


def site(**properties: str) -> str:
    entries = "".join(
        f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    return f"<?xml version='1.0'?><configuration>{entries}</configuration>"


def conf(
    core: str = "", hdfs: dict[str, str] | None = None, yarn: dict[str, str] | None = None
) -> HadoopConf:
    properties = {"fs.defaultFS": core or "hdfs://nn.example:8020", **(hdfs or {}), **(yarn or {})}
    return HadoopConf(Path("/etc/hadoop/conf"), properties)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "core-site.xml").write_text(site(fs_defaultFS="hdfs://nn.example:8020/"))
    (tmp_path / "hdfs-site.xml").write_text(site(dfs_replication="2"))
    (tmp_path / "yarn-site.xml").write_text(site(yarn_resourcemanager_hostname="rm.example"))
    return tmp_path


def load(directory: Path, **environ: str) -> HadoopConf:
    return HadoopConf.load({"HADOOP_CONF_DIR": str(directory), **environ})


def test_a_small_cluster(directory: Path) -> None:
    found = load(directory)
    assert found.directory == directory
    assert found.default_fs == "hdfs://nn.example:8020"
    assert found.get("dfs.replication") == "2"
    assert found.get("dfs.blocksize", "none") == "none"
    assert found.namenode_http_addresses() == ["http://nn.example:9870"]
    assert found.resource_manager_web_addresses() == ["http://rm.example:8088"]
    assert not found.secure


def test_where_it_is_looked_for(directory: Path, tmp_path: Path) -> None:
    home = tmp_path / "hadoop"
    (home / "etc").mkdir(parents=True)
    (home / "etc" / "hadoop").symlink_to(directory)
    assert HadoopConf.load({"HADOOP_HOME": str(home)}).default_fs == "hdfs://nn.example:8020"
    assert HadoopConf.load({"YARN_CONF_DIR": str(directory), "HADOOP_HOME": "/none"}).directory == directory
    with pytest.raises(YarnUnavailable, match="HADOOP_CONF_DIR is not set"):
        HadoopConf.load({"HADOOP_CONF_DIR": ""})
    with pytest.raises(YarnUnavailable, match="HADOOP_CONF_DIR is /none, which is not a directory"):
        HadoopConf.load({"HADOOP_CONF_DIR": "/none", "YARN_CONF_DIR": str(directory)})


@pytest.mark.parametrize("file", ["core-site.xml", "yarn-site.xml"])
def test_a_file_is_missing(directory: Path, file: str) -> None:
    (directory / file).unlink()
    with pytest.raises(YarnUnavailable, match=f"there is no {file} in {directory} .HADOOP_CONF_DIR."):
        load(directory)


def test_a_file_is_broken(directory: Path) -> None:
    (directory / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(YarnUnavailable, match="hdfs-site.xml is not valid XML") as error:
        load(directory)
    assert "\n" not in str(error.value)


def test_variables(directory: Path) -> None:
    (directory / "hdfs-site.xml").write_text(
        site(
            a="${b}/x",
            b="${yarn.resourcemanager.hostname}",
            env="${env.ZONE} ${env.NONE} ${env.NONE:-west} ${env.EMPTY:-filled}${env.EMPTY-kept}",
            loop="${loop}",
            unknown="${no.such}",
            user="${user.name}",
        )
    )
    found = load(directory, ZONE="east", EMPTY="", USER="ann")
    assert found.get("a") == "rm.example/x"
    assert found.get("env") == "east ${env.NONE} west filled"
    assert found.get("loop") == "${loop}"
    assert found.get("unknown") == "${no.such}"
    assert found.get("user") == "ann"


def test_final_values_and_old_names(directory: Path) -> None:
    (directory / "core-site.xml").write_text(
        "<configuration>"
        "<property><name>fs.default.name</name><value> hdfs://old:1 </value><final>true</final></property>"
        "<property><name>empty</name></property>"
        "<property name='short' value='form'/>"
        "<property><name>twice</name><value>1</value></property>"
        "</configuration>"
    )
    (directory / "hdfs-site.xml").write_text(site(fs_defaultFS="hdfs://other:2", twice="2"))
    found = load(directory)
    assert found.default_fs == "hdfs://old:1"
    assert (found.get("empty", "-"), found.get("short"), found.get("twice")) == ("-", "form", "2")


def test_included_files(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "more.xml").write_text(site(included="yes"))
    (directory / "hdfs-site.xml").write_text(
        '<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="more.xml"/>'
        '<xi:include href="missing.xml"/></configuration>'
    )
    assert load(directory).get("included") == "yes"


def test_files_for_containers_have_no_passwords(directory: Path) -> None:
    for name in ("ssl-client.xml", "ssl-server.xml", "capacity-scheduler.xml", "log4j.properties"):
        (directory / name).write_text(site())
    assert [path.name for path in load(directory).files()] == [
        "capacity-scheduler.xml", "core-site.xml", "hdfs-site.xml", "yarn-site.xml"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "core, hdfs, addresses",
    [
        ("", {"dfs.namenode.http-address": "web:50070"}, ["http://web:50070"]),
        ("", {"dfs.namenode.http-address": "0.0.0.0:9870"}, ["http://nn.example:9870"]),
        ("", {"dfs.http.policy": "HTTPS_ONLY"}, ["https://nn.example:9871"]),
        (
            "",
            {"dfs.http.policy": "HTTPS_ONLY", "dfs.namenode.https-address": "web:1"},
            ["https://web:1"],
        ),
        (
            "hdfs://ns1",
            {
                "dfs.nameservices": "ns0, ns1",
                "dfs.ha.namenodes.ns1": "a, b,c",
                "dfs.namenode.http-address.ns1.a": "one:9870",
                "dfs.namenode.rpc-address.ns1.b": "two:8020",
                "dfs.namenode.http-address.ns1.c": "0.0.0.0:9999",
                "dfs.namenode.rpc-address.ns1.c": "three:8020",
            },
            ["http://one:9870", "http://two:9870", "http://three:9999"],
        ),
        (
            "hdfs://ns1",
            {"dfs.nameservices": "ns1", "dfs.namenode.http-address.ns1": "one:9870"},
            ["http://one:9870"],
        ),
    ],
)
def test_name_nodes(core: str, hdfs: dict[str, str], addresses: list[str]) -> None:
    assert conf(core, hdfs).namenode_http_addresses() == addresses


def test_name_nodes_that_are_not_named() -> None:
    half = {"dfs.nameservices": "ns1", "dfs.ha.namenodes.ns1": "a"}
    with pytest.raises(YarnUnavailable, match="dfs.namenode.http-address.ns1.a is missing in .*hdfs-site"):
        conf("hdfs://ns1", half).namenode_http_addresses()


@pytest.mark.parametrize("uri", ["file:///", "s3a://bucket/", "hdfs:///"])
def test_a_default_file_system_that_is_no_hdfs(uri: str) -> None:
    with pytest.raises(YarnUnavailable, match="fs.defaultFS in .*core-site.xml"):
        conf(uri).namenode_http_addresses()


@pytest.mark.parametrize(
    "yarn, addresses",
    [
        ({}, ["http://localhost:8088"]),
        ({"yarn.resourcemanager.webapp.address": "web:80"}, ["http://web:80"]),
        ({"yarn.resourcemanager.webapp.address": "web"}, ["http://web:8088"]),
        (
            {"yarn.resourcemanager.hostname": "rm", "yarn.resourcemanager.webapp.address": "0.0.0.0:81"},
            ["http://rm:81"],
        ),
        (
            {"yarn.resourcemanager.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"},
            ["https://rm:8090"],
        ),
        (
            {
                "yarn.resourcemanager.ha.enabled": "true",
                "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
                "yarn.resourcemanager.hostname.rm1": "one",
                "yarn.resourcemanager.webapp.address.rm2": "two:1234",
            },
            ["http://one:8088", "http://two:1234"],
        ),
    ],
)
def test_resource_managers(yarn: dict[str, str], addresses: list[str]) -> None:
    assert conf(yarn=yarn).resource_manager_web_addresses() == addresses


@pytest.mark.parametrize(
    "ids, missing",
    [("rm1,rm2", "yarn.resourcemanager.webapp.address.rm2"), ("", "yarn.resourcemanager.ha.rm-ids")],
)
def test_resource_managers_that_are_not_named(ids: str, missing: str) -> None:
    yarn = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.resourcemanager.ha.rm-ids": ids,
        "yarn.resourcemanager.hostname.rm1": "one",
    }
    with pytest.raises(YarnUnavailable, match=f"^{missing} is missing in"):
        conf(yarn=yarn).resource_manager_web_addresses()


def test_what_tells_one_yarn_from_another() -> None:
    both = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.resourcemanager.hostname.a": "host1",
        "yarn.resourcemanager.hostname.b": "host2",
    }
    found = {
        conf(yarn={**both, "yarn.resourcemanager.ha.rm-ids": ids}).yarn_cluster for ids in ("a,b", "b,a")
    }
    assert found == {"http://host1:8088,http://host2:8088"}, "whichever of them is active"
    named = {**both, "yarn.resourcemanager.ha.rm-ids": "a,b", "yarn.resourcemanager.cluster-id": "blue"}
    assert conf(yarn=named).yarn_cluster == "blue"
    assert conf(yarn={"yarn.resourcemanager.hostname": "rm"}).yarn_cluster == "http://rm:8088"


def test_user(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pwd.getpwuid(os.geteuid()).pw_name
    assert conf().user({}) == own
    assert conf().user({"HADOOP_USER_NAME": "ann"}) == "ann"
    secure = conf(yarn={"hadoop.security.authentication": "kerberos"})
    assert secure.secure and secure.user({"HADOOP_USER_NAME": "ann"}) == own
    # as in a container whose image does not know the user
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 2)
    with pytest.raises(YarnUnavailable, match="set HADOOP_USER_NAME"):
        conf().user({})

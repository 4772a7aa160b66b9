"""The settings of a cluster: Hadoop's XML files, ZooKeeper's zoo.cfg, the logging, the client commands.

They are those of a small production cluster: nothing is tuned that a test could profit from, except that the
ports are free ones and that limits fit one machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from hadoop.errors import USAGE, ClusterError
from hadoop.layout import NODE_MANAGERS, Layout, State

CLIENT_COMMANDS = ("hadoop", "hdfs", "yarn")
_TEMPLATES = Path(__file__).with_name("templates")
# Hadoop's own list, which names JAVA_HOME and HADOOP_CONF_DIR already
_CONTAINER_ENVIRONMENT = (
    "JAVA_HOME,HADOOP_COMMON_HOME,HADOOP_HDFS_HOME,HADOOP_CONF_DIR,CLASSPATH_PREPEND_DISTCACHE,"
    "HADOOP_YARN_HOME,HADOOP_HOME,PATH,LANG,TZ"
)
_FILES = ("core-site", "hdfs-site", "yarn-site", "capacity-scheduler")


def write(layout: Layout, state: State) -> None:
    """Write everything that is read by daemons, clients and containers."""
    for folder in (layout.conf, layout.bin, layout.logs, layout.run, layout.data / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    settings = hadoop_settings(layout, state)
    for key, value in state.settings.items():
        settings[file_of(key)][key] = value
    for number in range(1, NODE_MANAGERS + 1):
        name = f"nodemanager-{number}"
        own = {**settings["yarn-site"], **_node_manager(layout, state, name)}
        own.update({key: value for key, value in state.settings.items() if file_of(key) == "yarn-site"})
        _write_files(layout.conf_of(name), {**settings, "yarn-site": own})
    _write_files(layout.conf, settings)
    for number in range(1, state.zookeepers + 1):
        _write_zookeeper(layout, state, number)
    write_clients(layout, state)


def file_of(key: str) -> str:
    """The file that a setting belongs into.

    Raises
    ------
    ClusterError
        It is none of Hadoop's.
    """
    if key.startswith("yarn.scheduler.capacity."):
        return "capacity-scheduler"
    for prefix, name in (("yarn.", "yarn-site"), ("dfs.", "hdfs-site")):
        if key.startswith(prefix):
            return name
    if key.startswith(("fs.", "hadoop.", "io.", "ipc.", "ha.", "net.")):
        return "core-site"
    raise ClusterError(f"--set {key}: not a setting of HDFS or YARN", USAGE)


def hadoop_settings(layout: Layout, state: State) -> dict[str, dict[str, str]]:
    """Settings by file, as clients, NameNode, DataNode and ResourceManager see them."""

    def at(daemon: str, use: str) -> str:
        return f"localhost:{state.ports[daemon][use]}"

    resource_manager = "resourcemanager"
    return {
        "core-site": {
            "fs.defaultFS": f"hdfs://{at('namenode', 'rpc')}",
            "hadoop.tmp.dir": f"{layout.data}/tmp",
        },
        "hdfs-site": {
            "dfs.replication": "1",
            "dfs.permissions.enabled": "true",
            "dfs.webhdfs.enabled": "true",
            "dfs.namenode.name.dir": f"file://{layout.data}/namenode",
            "dfs.namenode.http-address": at("namenode", "http"),
            # 30 s by default: what a NameNode waits for more DataNodes than the one there is
            "dfs.namenode.safemode.extension": "1000",
            "dfs.datanode.data.dir": f"file://{layout.data}/datanode",
            "dfs.datanode.hostname": "localhost",
            "dfs.datanode.address": at("datanode", "data"),
            "dfs.datanode.ipc.address": at("datanode", "ipc"),
            "dfs.datanode.http.address": at("datanode", "http"),
        },
        "yarn-site": {
            "yarn.resourcemanager.hostname": "localhost",
            "yarn.resourcemanager.address": at(resource_manager, "rpc"),
            "yarn.resourcemanager.scheduler.address": at(resource_manager, "scheduler"),
            "yarn.resourcemanager.resource-tracker.address": at(resource_manager, "tracker"),
            "yarn.resourcemanager.admin.address": at(resource_manager, "admin"),
            "yarn.resourcemanager.webapp.address": at(resource_manager, "http"),
            "yarn.resourcemanager.scheduler.class": (
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
            ),
            "yarn.resourcemanager.am.max-attempts": "2",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.scheduler.maximum-allocation-mb": str(state.memory_mb),
            "yarn.scheduler.minimum-allocation-vcores": "1",
            "yarn.scheduler.maximum-allocation-vcores": str(state.vcores),
            "yarn.resource-types.memory-mb.increment-allocation": "128",
            "yarn.application.classpath": f"{layout.conf},{state.jars}/lib/*",
            "yarn.log-aggregation-enable": "true",
            "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
            "yarn.nodemanager.env-whitelist": _CONTAINER_ENVIRONMENT,
            # for yarn.resourcemanager.recovery.enabled; by default on HDFS, which starts together with it
            "yarn.resourcemanager.fs.state-store.uri": f"file://{layout.data}/resourcemanager",
            # both are kept below /tmp by default, for all clusters of the machine together
            "yarn.node-labels.fs-store.root-dir": f"file://{layout.data}/node-labels",
            "yarn.node-attribute.fs-store.root-dir": f"file://{layout.data}/node-attributes",
            "yarn.timeline-service.enabled": "false",
            "yarn.webapp.ui2.enable": "false",
        },
        "capacity-scheduler": {
            "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
            "yarn.scheduler.capacity.root.queues": "default,small",
            "yarn.scheduler.capacity.root.default.capacity": "80",
            "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
            "yarn.scheduler.capacity.root.small.capacity": "20",
            "yarn.scheduler.capacity.root.small.maximum-capacity": "20",
        },
    }


def _node_manager(layout: Layout, state: State, name: str) -> dict[str, str]:
    ports = state.ports[name]
    return {
        "yarn.nodemanager.address": f"localhost:{ports['rpc']}",
        "yarn.nodemanager.localizer.address": f"localhost:{ports['localizer']}",
        "yarn.nodemanager.webapp.address": f"localhost:{ports['http']}",
        "yarn.nodemanager.local-dirs": f"{layout.data}/{name}/local",
        "yarn.nodemanager.log-dirs": f"{layout.logs}/{name}-containers",
        "yarn.nodemanager.resource.memory-mb": str(state.memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": str(state.vcores),
        "yarn.nodemanager.aux-services": "",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        "yarn.nodemanager.pmem-check-enabled": "true",
        # else memory is left to cgroups, which this cluster has none of, and nobody checks it
        "yarn.nodemanager.resource.memory.enforced": "false",
        # JVMs reserve far more address space than they use
        "yarn.nodemanager.vmem-check-enabled": "false",
        # the default, 90 %, declares a well-used workstation's disk bad
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
        # it starts together with the ResourceManager and would ask again only after 30 s
        "yarn.resourcemanager.connect.retry-interval.ms": "1000",
    }


def _write_files(folder: Path, settings: Mapping[str, Mapping[str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        lines = [
            f"  <property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
            for key, value in settings[name].items()
        ]
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<configuration>", *lines, "</configuration>", ""]
        (folder / f"{name}.xml").write_text("\n".join(lines), encoding="utf-8")
    shutil.copy(_TEMPLATES / "log4j.properties", folder)


def _write_zookeeper(layout: Layout, state: State, number: int) -> None:
    name = f"zookeeper-{number}"
    data = layout.data / name
    data.mkdir(parents=True, exist_ok=True)
    lines = [
        "tickTime=2000",
        "initLimit=10",
        "syncLimit=5",
        f"dataDir={data}",
        "clientPortAddress=127.0.0.1",
        f"clientPort={state.ports[name]['client']}",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        # a daemon may be killed here, the machine does not fail; a busy disk ends no session
        "forceSync=no",
        "4lw.commands.whitelist=*",
    ]
    if state.zookeepers > 1:
        (data / "myid").write_text(f"{number}\n")
        for other in range(1, state.zookeepers + 1):
            ports = state.ports[f"zookeeper-{other}"]
            lines.append(f"server.{other}=127.0.0.1:{ports['peer']}:{ports['election']}")
    folder = layout.conf_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
    shutil.copy(_TEMPLATES / "log4j.properties", folder)


def write_clients(layout: Layout, state: State) -> None:
    """Write the client commands."""
    text = (_TEMPLATES / "client.sh").read_text(encoding="utf-8")
    placeholders = {
        "@JAVA_HOME@": state.java_home,
        "@CONF@": str(layout.conf),
        "@JARS@": state.jars,
        "@ARCHIVE@": state.archive,
    }
    for key, value in placeholders.items():
        text = text.replace(key, value)
    for name in CLIENT_COMMANDS:
        (layout.bin / name).write_text(text, encoding="utf-8")
        (layout.bin / name).chmod(0o755)

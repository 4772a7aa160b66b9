"""The daemons: their command lines, and starting one as a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hadoop import archive
from hadoop.layout import Layout, State, user_name
from hadoop.processes import MARK

HEAP_MB = 256
FORMAT = "format"

_SERVER = "org.apache.hadoop.yarn.server"
_MAIN = {
    "zookeeper": "org.apache.zookeeper.server.quorum.QuorumPeerMain",
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": f"{_SERVER}.resourcemanager.ResourceManager",
    "nodemanager": f"{_SERVER}.nodemanager.NodeManager",
    FORMAT: "org.apache.hadoop.hdfs.server.namenode.NameNode",
}


def start(layout: Layout, state: State, name: str, list_classes: bool = False) -> subprocess.Popen[bytes]:
    """Start one daemon, or the formatting of HDFS; what it says is appended to its log.

    With ``list_classes`` it also notes what :mod:`hadoop.archive` needs.
    """
    kind = name.partition("-")[0]
    arguments = [_MAIN[kind]]
    if kind == "zookeeper":
        arguments.append(f"{layout.conf_of(name)}/zoo.cfg")
    elif kind == FORMAT:
        arguments += ["-format", "-nonInteractive"]
    # the class path of some 180 jars is long: in a file it does not fill the lists of processes
    file = layout.arguments_of(name)
    options = _jvm_options(layout, state, name)
    if list_classes:
        options.append(f"-XX:DumpLoadedClassList={layout.run}/{name}{archive.LIST}")
    file.write_text("".join(f'"{option}"\n' for option in options))
    with open(layout.log_of(name), "ab") as log:
        return subprocess.Popen(
            [f"{state.java_home}/bin/java", f"@{file}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=layout.run,
            env=_environment(layout, state),
            start_new_session=True,
        )


def _jvm_options(layout: Layout, state: State, name: str) -> list[str]:
    # folders after the jars: an archive of loaded classes allows no folder before them
    class_path = ":".join([archive.jars_path(state.jars), str(layout.conf_of(name)), state.jars])
    return [
        *archive.options(state.archive),
        f"-Xmx{HEAP_MB}m",
        # small and quick to start rather than fast in the long run
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # better gone, and seen to be, than half alive
        "-XX:+ExitOnOutOfMemoryError",
        # writes below /tmp, whatever java.io.tmpdir says
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={layout.data}/tmp",
        "-Djava.net.preferIPv4Stack=true",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-cp",
        class_path,
    ]


def _environment(layout: Layout, state: State) -> dict[str, str]:
    """What daemons and, by way of the NodeManagers, containers see: nothing of the shell that starts them."""
    user = user_name()
    passed_on = {key: os.environ[key] for key in ("LANG", "TZ") if key in os.environ}
    return {
        "LANG": "C.UTF-8",
        **passed_on,
        "HOME": str(Path.home()),
        "USER": user,
        "LOGNAME": user,
        "PATH": f"{layout.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "JAVA_HOME": state.java_home,
        "HADOOP_HOME": str(layout.folder),
        "HADOOP_CONF_DIR": str(layout.conf),
        MARK: str(layout.folder),
    }

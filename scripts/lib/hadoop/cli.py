"""The command line of scripts/hadoop."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from pathlib import Path

from hadoop import archive, cluster, jars, processes, settings
from hadoop.command_line import run_command
from hadoop.errors import FAILED, USAGE, ClusterError
from hadoop.layout import Layout, State


def main() -> int:
    """Run one command; returns the exit status."""
    return run_command(_parser().parse_args(), Layout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/hadoop",
        description="A real Hadoop on this machine: HDFS, YARN with two NodeManagers, ZooKeeper.",
    )
    state_dir = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--dir",
        type=Path,
        default=Path(state_dir, "yarnflow/hadoop"),
        help="folder of the cluster, for everything it writes (default: %(default)s)",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    verb = verbs.add_parser("start", parents=[common], help="start a cluster and wait until it works")
    for option, default, unit, text in (
        ("--zookeepers", 1, "N", "ZooKeeper servers"),
        ("--memory-mb", 8192, "MB", "what each NodeManager offers"),
        ("--vcores", 8, "N", "what each NodeManager offers"),
    ):
        help_text = f"{text} (default: {default})"
        verb.add_argument(option, type=_count, default=default, metavar=unit, help=help_text)
    verb.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a setting of HDFS or YARN; can be given more than once",
    )
    _add_timeout(verb)
    verb.add_argument("--keep-logs", action="store_true", help="leave the logs if it fails")
    verb.set_defaults(run=_start)

    verb = verbs.add_parser("stop", parents=[common], help="end all its processes and remove its folder")
    verb.add_argument("--keep-logs", action="store_true", help="leave the logs")
    verb.set_defaults(run=_stop)

    verb = verbs.add_parser("status", parents=[common], help="one line per daemon; succeeds if all run")
    verb.set_defaults(run=_status)

    verb = verbs.add_parser("logs", parents=[common], help="what the daemons say")
    verb.add_argument("daemon", nargs="?", help="one of them (default: all)")
    verb.add_argument("-n", type=int, default=50, metavar="N", help="last lines (default: 50)")
    verb.add_argument("--follow", action="store_true", help="go on with what is still to come")
    verb.set_defaults(run=_logs)

    verb = verbs.add_parser("env", parents=[common], help='variables: eval "$(scripts/hadoop env)"')
    verb.add_argument("--json", action="store_true", help="for programs")
    verb.set_defaults(run=_env)

    for name, number, text in (
        ("kill", signal.SIGKILL, "kill a daemon with SIGKILL"),
        ("pause", signal.SIGSTOP, "halt a daemon with SIGSTOP"),
        ("resume", signal.SIGCONT, "let a halted daemon go on"),
    ):
        verb = verbs.add_parser(name, parents=[common], help=text)
        verb.add_argument("daemon")
        verb.set_defaults(run=_signal, signal=number)

    verb = verbs.add_parser("restart", parents=[common], help="start a daemon again, on the same ports")
    verb.add_argument("daemon")
    _add_timeout(verb)
    verb.set_defaults(run=_restart)
    return parser


def _add_timeout(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--timeout", type=_count, default=180, metavar="S", help="seconds it may take (default: %(default)s)"
    )


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def _start(layout: Layout, arguments: argparse.Namespace) -> int:
    chosen = dict(arguments.settings)
    for key in chosen:
        settings.file_of(key)
    java_home, fetched = jars.find_java(), jars.fetch()
    state = State(
        java_home=str(java_home),
        jars=str(fetched),
        archive=archive.existing(java_home, fetched),
        zookeepers=arguments.zookeepers,
        memory_mb=arguments.memory_mb,
        vcores=arguments.vcores,
        settings=chosen,
    )
    cluster.start(layout, state, arguments.timeout, arguments.keep_logs)
    return 0


def _stop(layout: Layout, arguments: argparse.Namespace) -> int:
    cluster.stop(layout, arguments.keep_logs)
    return 0


def _status(layout: Layout, arguments: argparse.Namespace) -> int:
    state = layout.running()
    found = {process.daemon: process for process in processes.find(layout) if process.daemon}
    all_run = True
    for name in state.daemons:
        process = found.get(name)
        ports = " ".join(f"{use}={port}" for use, port in state.ports[name].items())
        if process is None:
            all_run = False
            print(f"{name:16} gone")
        else:
            all_run = all_run and not process.paused
            word = "paused " if process.paused else "running"
            print(f"{name:16} {word} pid {process.pid:<8} {ports}")
    return 0 if all_run else FAILED


def _logs(layout: Layout, arguments: argparse.Namespace) -> int:
    files = sorted(layout.logs.glob("*.log"))
    if arguments.daemon:
        files = [layout.log_of(_daemon(layout.load() or layout.running(), arguments.daemon))]
    if not files or not files[0].is_file():
        raise ClusterError(f"there are no such logs in {layout.logs}")
    command = ["tail", "-n", str(arguments.n), *(["-F"] if arguments.follow else []), *map(str, files)]
    sys.stdout.flush()
    os.execvp(command[0], command)


def _env(layout: Layout, arguments: argparse.Namespace) -> int:
    state = layout.running()
    web = {
        "YARNFLOW_TEST_NAMENODE": state.ports["namenode"]["http"],
        "YARNFLOW_TEST_RESOURCEMANAGER": state.ports["resourcemanager"]["http"],
    }
    servers = [ports["client"] for name, ports in state.ports.items() if name.startswith("zookeeper")]
    variables = {
        "JAVA_HOME": state.java_home,
        "HADOOP_HOME": str(layout.folder),
        "HADOOP_CONF_DIR": str(layout.conf),
        "YARNFLOW_TEST_ZOOKEEPER": ",".join(f"127.0.0.1:{port}" for port in servers),
        **{key: f"http://localhost:{port}" for key, port in web.items()},
    }
    if arguments.json:
        path = f"{layout.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        print(json.dumps({**variables, "PATH": path}, indent=2))
        return 0
    for key, value in variables.items():
        print(f"export {key}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(str(layout.bin))}:"$PATH"')
    return 0


def _signal(layout: Layout, arguments: argparse.Namespace) -> int:
    name = _daemon(layout.running(), arguments.daemon)
    process = processes.daemon(layout, name)
    if process is None:
        raise ClusterError(f"{name} does not run; `scripts/hadoop restart {name}` starts it")
    if arguments.signal == signal.SIGKILL:
        processes.end(layout, name, 0.0)
    else:
        processes.send(layout, process, arguments.signal)
    return 0


def _restart(layout: Layout, arguments: argparse.Namespace) -> int:
    cluster.restart(layout, _daemon(layout.running(), arguments.daemon), arguments.timeout)
    return 0


def _daemon(state: State, named: str) -> str:
    """The daemon of that name; a beginning does where it fits one only."""
    names = state.daemons
    fitting = [name for name in names if name == named] or [name for name in names if name.startswith(named)]
    if len(fitting) != 1:
        raise ClusterError(f"{named!r} is none of the daemons {', '.join(names)}", USAGE)
    return fitting[0]

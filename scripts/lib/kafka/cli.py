"""The command line of scripts/kafka."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path

from hadoop.command_line import run_command
from hadoop.errors import FAILED, ClusterError
from kafka.broker import Broker


def main() -> int:
    """Run one command; returns the exit status."""
    return run_command(_parser().parse_args(), Broker)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/kafka", description="A real Kafka on this machine: one broker, its own controller."
    )
    state_dir = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--dir",
        type=Path,
        default=Path(state_dir, "yarnflow/kafka"),
        help="folder of the broker, for everything it writes (default: %(default)s)",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    verb = verbs.add_parser("start", parents=[common], help="start a broker, or one that was killed again")
    verb.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a setting of the broker; can be given more than once",
    )
    verb.add_argument(
        "--timeout", type=float, default=120.0, metavar="S", help="seconds it may take (default: %(default)s)"
    )
    verb.add_argument(
        "--port", type=int, default=0, help="where a new one listens (default: a free one)"
    )
    verb.set_defaults(run=_start)

    verb = verbs.add_parser("stop", parents=[common], help="end it and remove its folder")
    verb.set_defaults(run=_stop)

    verb = verbs.add_parser("kill", parents=[common], help="kill it with SIGKILL; its data stays")
    verb.set_defaults(run=_kill)

    verb = verbs.add_parser("status", parents=[common], help="one line; succeeds if it runs")
    verb.set_defaults(run=_status)

    verb = verbs.add_parser("env", parents=[common], help='variables: eval "$(scripts/kafka env)"')
    verb.add_argument("--json", action="store_true", help="for programs")
    verb.set_defaults(run=_env)

    return parser


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key.strip(), value


def _start(broker: Broker, arguments: argparse.Namespace) -> int:
    broker.start(dict(arguments.settings), arguments.timeout, arguments.port)
    return 0


def _stop(broker: Broker, arguments: argparse.Namespace) -> int:
    broker.stop()
    return 0


def _kill(broker: Broker, arguments: argparse.Namespace) -> int:
    broker.kill()
    return 0


def _status(broker: Broker, arguments: argparse.Namespace) -> int:
    state, pid = broker.state(), broker.pid()
    if state is None:
        raise ClusterError(f"no broker runs in {broker.folder}; start one with `scripts/kafka start`")
    what = "gone" if pid is None else f"running pid {pid}"
    print(f"broker {what} servers={state.servers} log={broker.log}")
    return FAILED if pid is None else 0


def _env(broker: Broker, arguments: argparse.Namespace) -> int:
    variables = {"KAFKA_BOOTSTRAP_SERVERS": broker.running().servers}
    if arguments.json:
        print(json.dumps(variables, indent=2))
        return 0
    for key, value in variables.items():
        print(f"export {key}={shlex.quote(value)}")
    return 0

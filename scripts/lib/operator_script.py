"""Shared by the operators' scripts: the project's environment, arguments, errors.

Used before anything but Python itself is known to be there.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yarnflow.client.yarn.services import YarnServices

ROOT = Path(__file__).resolve().parents[2]
INTERRUPT_STATUS = 130
#: what the scripts need; a system's own Python may have some of it
LIBRARIES = ("click", "yaml", "hdfs", "requests", "skein", "thrift")


def run(parser: ArgumentParser, work: Callable[[YarnServices, Namespace], int]) -> int:
    """Parse the arguments, connect, work; an error is one line and its exit status."""
    _use_environment(parser.prog)
    parser.add_argument(
        "-D", dest="dynamic", action="append", default=[], metavar="KEY=VALUE", help="set an option"
    )
    parser.add_argument("--conf-dir", type=Path, help="directory of yarnflow-conf.yaml")
    arguments = parser.parse_args()
    from yarnflow.cli.common import load_configuration
    from yarnflow.client.yarn.services import yarn_services
    from yarnflow.errors import YarnflowError

    try:
        services = yarn_services(load_configuration(arguments.conf_dir, arguments.dynamic), os.environ)
        try:
            return work(services, arguments)
        finally:
            services.close()
    except YarnflowError as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPT_STATUS


def _use_environment(program: str) -> None:
    """Go on in the project's virtual environment when this interpreter lacks the libraries."""
    sys.path.insert(0, str(ROOT))
    if not all(find_spec(name) for name in LIBRARIES):
        python = Path(os.environ.get("YARNFLOW_VENV", ROOT / ".venv"), "bin", "python")
        if Path(sys.prefix) == python.parent.parent or not python.exists():
            sys.exit(f"{program}: yarnflow is not installed here; run scripts/quickstart once")
        os.execv(python, [str(python), *sys.argv])

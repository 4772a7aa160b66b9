"""What a container has, told by a process in it; part of ``yarnflow doctor``.

Runs in the master's container of a tiny application: with the environment, the configuration and
the package that a job's containers would get.  The answer travels as the application's
diagnostics, which the ResourceManager tells every client: nothing is written anywhere.  Flink
has no counterpart.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from importlib import import_module, metadata
from typing import Any, Final

from yarnflow.core.yarn import FinalStatus
from yarnflow.errors import YarnflowError

#: distribution → module, of what processes in containers import
MODULES: Final = {
    "click": "click",
    "cloudpickle": "cloudpickle",
    "hdfs": "hdfs",
    "kazoo": "kazoo",
    "msgspec": "msgspec",
    "pandas": "pandas",
    "protobuf": "google.protobuf",
    "pyarrow": "pyarrow",
    "pyspark": "pyspark",
    "pyyaml": "yaml",
    "requests": "requests",
    "rich": "rich",
    "skein": "skein",
    "sqlglot": "sqlglot",
    "thrift": "thrift",
}


def facts() -> dict[str, Any]:
    """What is found here; the keys are those of :func:`yarnflow.client.diagnose.container_check.problems`."""
    found: dict[str, Any] = {
        "host": os.environ.get("NM_HOST") or socket.gethostname(),
        "python": platform.python_version(),
        "interpreter": sys.executable,
        "hadoop_conf": os.path.isfile(os.path.join(os.environ.get("HADOOP_CONF_DIR", ""), "core-site.xml")),
        "versions": {},
        "failed": {},
    }
    for name, module in MODULES.items():
        try:
            import_module(module)
            found["versions"][name] = metadata.version(name)
        except Exception as error:  # a library can fail in any way when it is loaded
            found["failed"][name] = " ".join(f"{type(error).__name__}: {error}".split())[:120]
    try:
        from yarnflow.spark.launch.java import find_java

        java = find_java()
        found["java"], found["java_program"] = java.version, str(java.program)
    except (YarnflowError, OSError) as error:
        found["java_error"] = " ".join(str(error).split())
    return found


def main() -> int:
    """Look, tell, end the application."""
    text = json.dumps(facts())
    # in the log as well, for when the application cannot tell
    print(text, flush=True)
    from yarnflow.yarn.application import YarnApplication

    YarnApplication.from_current().finish(FinalStatus.SUCCEEDED, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

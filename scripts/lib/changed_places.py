#!/usr/bin/env python3
"""Print the integration tests that belong to what changed since a commit, one file or folder a line.

    changed_places.py REV

``PLACES`` says which tests belong to which room of the package: those that a fault in the room would fail
first, not all that pass through it: the gate goes through everything once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

_SAVEPOINTS: Final = (
    "spark/test_savepoints.py", "spark/test_restore.py", "spark/test_element_savepoints.py",
    "spark/test_savepoints_of_scripts.py", "spark/test_changed_topology.py", "spark/test_changed_sinks.py",
    "spark/test_co_process_savepoints.py",
)  # fmt: skip
_ELEMENTS: Final = (
    "pyflink", "spark/test_elements.py", "spark/test_element_edges.py", "spark/test_element_savepoints.py",
    "spark/test_processing_time.py", "faults/test_keyed_events.py",
)  # fmt: skip
_COLUMNS: Final = (
    "spark/test_translate.py", "spark/test_windows.py", "spark/test_joins.py", "spark/test_nexmark.py",
    "test_nexmark.py", "spark/test_batch_mode.py", "spark/test_real_time.py",
)  # fmt: skip
_FILES: Final = ("spark/test_file_formats.py", "spark/test_file_sink.py", "test_living_files.py")
_KAFKA: Final = (
    "spark/test_kafka_source.py", "spark/test_kafka_sink.py", "test_kafka_transactions.py",
    "pyflink/test_kafka_examples.py", "faults/test_kafka.py", "faults/test_kafka_pipelines.py",
    "spark/test_malformed_messages.py", "yarn/test_kafka.py",
)  # fmt: skip
_DATABASES: Final = (
    "spark/test_jdbc_sink.py", "test_batch_table.py", "test_connections.py", "test_pooler.py",
    "faults/test_database_sink.py",
)  # fmt: skip
_RABBITMQ: Final = ("spark/test_rabbitmq.py", "test_rabbitmq.py", "faults/test_queue.py")
_PYTHON_CONNECTORS: Final = ("spark/test_python_sources.py", "faults/test_python_sources.py")
_JARS: Final = ("test_jars.py", "yarn/test_jars.py")
_SCRIPTS: Final = (
    "spark/test_savepoints_of_scripts.py", "test_embedded.py", "test_script_settings.py",
    "spark/test_script_options.py", "spark/test_session.py",
)  # fmt: skip
#: whose job is whose
_KEYS: Final = ("test_programs_of_one_name.py", "yarn/test_programs_of_one_name.py")
_DRIVER: Final = ("spark/test_driver.py", "spark/test_crashes.py")
_STANDALONE: Final = (
    "test_standalone.py", "test_shared_cluster.py", "test_local_clusters.py", "test_examples.py",
)  # fmt: skip
_YARN: Final = ("yarn/test_targets.py", "yarn/test_slots.py", "yarn/test_accounts.py", "yarn/test_faults.py")
_HA: Final = ("ha", "yarn/test_ha.py", "faults/test_high_availability.py")
_FAULTS: Final = ("faults", "yarn/test_faults.py")
_DASHBOARD: Final = (
    "rest/test_dashboard.py", "rest/test_dashboard_use.py", "rest/test_dashboard_modules.py",
    "rest/test_dashboard_on_cluster.py", "rest/test_dashboard_over_rest.py", "rest/test_flink_client.py",
)  # fmt: skip
_REST: Final = ("rest/test_live_jobs.py", "rest/test_fuzzing.py")
#: what another user of the machine must not do
_ATTACKS: Final = ("attack",)

#: room → its tests, below ``integration``; the nearest room above counts where a room has no line of its own
PLACES: Final[dict[str, tuple[str, ...]]] = {
    "": ("test_standalone.py",),
    "__main__": ("test_embedded.py",),
    "errors": ("test_bad_input.py",),
    "airflow": ("airflow",),
    "api": ("pyflink", "test_embedded.py", "test_collecting.py", "spark/test_translate.py"),
    "api.datastream.connectors": (*_KAFKA, "spark/test_programs_of_servers.py", *_FILES),
    "api.datastream.formats": ("spark/test_malformed_messages.py", "spark/test_file_formats.py"),
    "api.metrics": ("test_metrics.py",),
    "api.streams": _COLUMNS,
    "api.table": ("spark/test_file_formats.py",),
    "cli": ("test_bad_input.py", *_STANDALONE, "yarn/test_tools.py"),
    "client": (*_STANDALONE, "test_collecting.py", "test_embedded.py", "yarn/test_targets.py"),
    "client.diagnose": ("yarn/test_tools.py",),
    "client.discovery": ("test_local_clusters.py", "yarn/test_targets.py"),
    "client.drill": ("faults/test_drill.py",),
    "client.environment": ("yarn/test_tools.py",),
    "client.jars": _JARS,
    "client.programs": (*_KEYS, "test_embedded.py"),
    "client.yarn": (*_YARN, "yarn/test_ha.py", "yarn/test_tools.py", "yarn/test_driver_containers.py"),
    "config": ("test_bad_input.py", "test_standalone.py", "yarn/test_targets.py"),
    "config.hadoop": ("yarn/test_hdfs_paths.py", "yarn/test_hdfs.py"),
    "core": ("test_standalone.py", *_HA),
    "core.checkpoint": ("upgrade", "rest/test_live_jobs.py", *_SAVEPOINTS),
    "core.collect": ("test_collecting.py",),
    "core.ha": (*_HA, *_KEYS, "upgrade"),
    "core.jars": _JARS,
    "core.job": (*_REST, "test_standalone.py"),
    "core.job_run": (*_FAULTS, *_REST),
    "core.monitoring": ("test_metrics.py", "test_history.py", "rest/test_live_jobs.py"),
    "core.resources": (*_YARN, "faults/test_kills.py"),
    "entrypoint": (*_STANDALONE, "faults/test_kills.py"),
    "entrypoint.driver": (*_DRIVER, "spark/test_rehearsal.py", "faults/test_hot_spare.py"),
    "entrypoint.master": (*_HA, "faults/test_kills.py"),
    "entrypoint.master.web": (*_REST, "test_history.py", "rest/test_uploaded_programs.py"),
    "entrypoint.taskmanager": ("faults/test_kills.py", "yarn/test_slots.py"),
    "entrypoint.yarn": (*_YARN, "yarn/test_ha.py", "yarn/test_driver_containers.py"),
    "fs": (*_ATTACKS, "yarn/test_hdfs.py", "yarn/test_hadoop.py", "faults/test_hdfs.py", "ha/test_stores.py"),
    "graph": ("upgrade", "pyflink", *_COLUMNS),
    "graph.connectors": (*_KAFKA, *_DATABASES, *_FILES, "spark/test_programs_of_servers.py"),
    "graph.generation": _COLUMNS,
    "graph.modes": ("spark/test_batch_mode.py", "spark/test_real_time.py", "faults/test_real_time.py"),
    "graph.sql": ("spark/test_sql.py",),
    "graph.state": ("upgrade", *_SAVEPOINTS),
    "ha": (*_ATTACKS, *_HA),
    "metrics": ("test_metrics.py",),
    "operators": _ELEMENTS,
    "operators.databases": _DATABASES,
    "operators.joins": ("spark/test_joins.py", "spark/test_co_process_savepoints.py"),
    "operators.lookups": ("spark/test_lookup_join.py",),
    "operators.state": ("upgrade", "spark/test_state_backends.py", *_ELEMENTS),
    "process": (*_ATTACKS, *_FAULTS, *_STANDALONE),
    "process.output": ("test_metrics.py", "yarn/test_tools.py"),
    "process.resources": ("test_metrics.py", "faults/test_levels.py", "faults/test_soak.py"),
    "rest": (*_ATTACKS, *_DASHBOARD, *_REST),
    "rest.history": ("test_history.py", "rest/test_dashboard_over_history.py"),
    "rest.programs": ("rest/test_uploaded_programs.py",),
    "rpc": (
        *(
            *_ATTACKS,
            *_STANDALONE,
            "faults/test_kills.py",
            "faults/test_relay.py",
            "faults/test_partitions.py",
        ),
    ),
    "runtime": (*_STANDALONE, *_REST),
    "runtime.driver": (*_DRIVER, "ha/test_leases.py"),
    "runtime.jobmaster": (*_FAULTS, *_REST),
    "runtime.placement": ("yarn/test_driver_containers.py", "faults/test_hot_spare.py"),
    "runtime.resourcemanager": (*_YARN, "faults/test_kills.py"),
    "runtime.taskexecutor": ("faults/test_kills.py", "yarn/test_slots.py"),
    "spark": (*_ATTACKS, *_COLUMNS, *_DRIVER),
    "spark.checkpoints": ("upgrade", *_SAVEPOINTS),
    "spark.checkpoints.damage": ("spark/test_damaged_state.py", "spark/test_restore.py"),
    "spark.connectors": (
        *(*_FILES, "spark/test_socket_sink.py", "spark/test_translate.py", "faults/test_zombie_tasks.py"),
    ),
    "spark.connectors.elasticsearch": ("spark/test_elasticsearch_sink.py",),
    "spark.connectors.feeds": (*_RABBITMQ, *_PYTHON_CONNECTORS),
    "spark.connectors.jdbc": _DATABASES,
    "spark.connectors.kafka": _KAFKA,
    "spark.connectors.python": _PYTHON_CONNECTORS,
    "spark.connectors.rabbitmq": _RABBITMQ,
    "spark.connectors.redis": ("spark/test_redis_sink.py",),
    "spark.elements": _ELEMENTS,
    "spark.jars": _JARS,
    "spark.launch": ("spark/test_driver.py", "spark/test_rehearsal.py", "faults/test_hot_spare.py"),
    "spark.lookups": ("spark/test_lookup_join.py",),
    "spark.messages": (
        "spark/test_malformed_messages.py", "spark/test_kafka_source.py", "spark/test_kafka_sink.py",
        "spark/test_translate.py",
    ),
    "spark.metrics": ("test_metrics.py",),
    "spark.progress": ("rest/test_live_jobs.py", "spark/test_savepoints.py"),
    "spark.run": (*_DRIVER, "spark/test_rehearsal.py", "spark/test_batch_mode.py"),
    "spark.script": _SCRIPTS,
    "spark.state": ("upgrade", "spark/test_state_backends.py", *_SAVEPOINTS),
    "spark.translate": (*_COLUMNS, "spark/test_sql.py"),
    "staging": ("yarn/test_hdfs.py", "yarn/test_tools.py"),
    "testing": ("test_embedded.py",),
    "yarn": _YARN,
    "yarn.web": ("yarn/test_tools.py", "yarn/test_targets.py"),
}
#: what else has tests of its own, from the project's root
_SCRIPTS_PLACES: Final = {
    "scripts/hadoop": "yarn/test_hadoop.py",
    "scripts/lib/hadoop": "yarn/test_hadoop.py",
    "scripts/lib/airflow": "airflow",
    "scripts/lib/flink": "rest/test_flink_client.py",
}


def room_of(module_path: PurePosixPath) -> str:
    """Return the nearest room with a line in ``PLACES``, of a file below ``yarnflow/``."""
    room = ".".join(module_path.with_suffix("").parts[1:])
    while room and room not in PLACES:
        room = room.rpartition(".")[0]
    return room


def places_of(files: Iterable[str]) -> list[str]:
    """Return the files and folders of tests that belong to changed files, none of them below another.

    A changed test file is a place itself; a module beside it stands for its folder.  Modules in
    ``integration/`` itself are passed over, as the gate uses them all.
    """
    places: set[str] = set()
    for file in map(PurePosixPath, files):
        if file.parts[0] == "yarnflow":
            places.update(f"integration/{place}" for place in PLACES[room_of(file)])
        elif file.parts[0] == "thrift":
            places.update(f"integration/{place}" for place in PLACES["rpc"])
        elif file.parts[0] == "integration" and "bench" not in file.parts:
            if file.name.startswith("test_"):
                places.add(str(file))
            elif len(file.parts) > 2:
                places.add("/".join(file.parts[:2]))
        for prefix, place in _SCRIPTS_PLACES.items():
            if file.is_relative_to(prefix):
                places.add(f"integration/{place}")
    above = {place for place in places if not place.endswith(".py")}
    return sorted(
        place for place in places if not any(str(parent) in above for parent in PurePosixPath(place).parents)
    )


def _changed_files(since: str) -> list[str]:
    """List the files that differ from a commit, those that are not committed yet included."""
    names = ["git", "diff", "--name-only", "--no-renames", since, "--"]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    outputs = (
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for command in (names, new)
    )
    return [line for output in outputs for line in output.splitlines()]


def main(arguments: Sequence[str]) -> int:
    """Print the places that exist."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        files = _changed_files(arguments[0])
    except subprocess.CalledProcessError as error:
        print(f"git cannot compare with {arguments[0]}: {error.stderr.strip()}", file=sys.stderr)
        return 1
    for place in places_of(files):
        if (ROOT / place).exists():
            print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

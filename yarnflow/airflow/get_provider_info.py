"""What Airflow reads about the provider, without importing anything else of it.

The entry point ``apache_airflow_provider`` names :func:`get_provider_info`.
"""

from __future__ import annotations

from typing import Any, Final

_INTEGRATION: Final = "yarnflow"


def get_provider_info() -> dict[str, Any]:
    """The provider, in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "yarnflow",
        "name": "yarnflow",
        "description": "Streaming and batch jobs in Python on YARN, standalone clusters and one machine.",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "tags": ["apache"],
            }
        ],
        "operators": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "yarnflow.airflow.operators.submit",
                    "yarnflow.airflow.operators.stop",
                    "yarnflow.airflow.operators.savepoint",
                    "yarnflow.airflow.operators.restart",
                    "yarnflow.airflow.operators.drill",
                ],
            }
        ],
        "sensors": [{"integration-name": _INTEGRATION, "python-modules": ["yarnflow.airflow.sensors.job"]}],
        "hooks": [{"integration-name": _INTEGRATION, "python-modules": ["yarnflow.airflow.hooks.yarnflow"]}],
        "triggers": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": ["yarnflow.airflow.triggers.job", "yarnflow.airflow.triggers.checkpoint"],
            }
        ],
        "connection-types": [
            {
                "connection-type": "yarnflow",
                "hook-name": "yarnflow",
                "hook-class-name": "yarnflow.airflow.hooks.yarnflow.YarnflowHook",
                "conn-fields": _FIELDS,
                "ui-field-behaviour": _FORM,
            }
        ],
        "extra-links": [
            "yarnflow.airflow.links.YarnflowDashboardLink",
            "yarnflow.airflow.links.YarnApplicationLink",
            "yarnflow.airflow.links.YarnflowLogsLink",
        ],
    }


def _text(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"]}}


def _mapping(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["object", "null"]}}


#: keys of the connection's extra; :mod:`yarnflow.airflow.hooks.settings` reads them
_FIELDS: Final = {
    "target": _text(
        "Target", "Where jobs are submitted: yarn-per-job, yarn-application, yarn-session, remote or local."
    ),
    "conf_dir": _text("Configuration directory", "Directory of yarnflow-conf.yaml on the workers."),
    "hadoop_conf_dir": _text("Hadoop's configuration", "HADOOP_CONF_DIR on the workers."),
    "command": _text("Command", "Path of the command yarnflow; default: the one beside the worker's Python."),
    "history_server": _text(
        "History server", "http://host:port of a history server, asked how a job ended whose cluster is gone."
    ),
    "options": _mapping("Options", "Options of every command (-D), as a JSON object."),
    "env": _mapping("Environment", "Variables of every command, as a JSON object."),
}
_FORM: Final = {
    "hidden-fields": ["schema", "login"],
    "relabeling": {"host": "REST addresses", "port": "REST port", "password": "REST token"},
    "placeholders": {
        "host": "optional: host:port,host:port of a session or standalone cluster",
        "password": "what `yarnflow token` prints, where these addresses want one",
    },
}

__all__ = ["get_provider_info"]

"""The files in conf/ ask for nothing that is not measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from yarnflow.core.metrics import MetricScope, OperatorMetrics
from yarnflow.core.monitoring.declarations import ALL_METRICS
from yarnflow.metrics.reporters.names import prometheus_name

CONF = Path(__file__).resolve().parents[2] / "conf"
_NAME = re.compile(r"\bflink_\w+")


def declared() -> set[str]:
    """All names that Prometheus can get."""
    return {
        prometheus_name(OperatorMetrics(MetricScope(scope), "", {}), metric.name)
        for metric in ALL_METRICS
        for scope in metric.scopes
        if not metric.is_text
    }


def expressions(node: Any) -> Iterator[str]:
    """Every query of a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query", "definition") and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for item in node:
            yield from expressions(item)


def unknown(document: Any) -> set[str]:
    return {name for text in expressions(document) for name in _NAME.findall(text)} - declared()


def test_the_board_shows_what_there_is() -> None:
    board = json.loads((CONF / "grafana-yarnflow.json").read_text(encoding="utf-8"))
    assert unknown(board) == set()
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    with_queries = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(with_queries) > 20 and all(panel["targets"] for panel in with_queries)


def test_rules_ask_for_what_there_is() -> None:
    rules = yaml.safe_load((CONF / "prometheus-alerts.yaml").read_text(encoding="utf-8"))
    assert unknown(rules) == set()
    (group,) = rules["groups"]
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning") and rule["annotations"]["summary"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("expression", ["flink_jobmanager_job_upTime > 1", "sum(flink_numRecordsIn)"])
def test_a_misspelt_name_is_found(expression: str) -> None:
    assert len(unknown({"expr": expression})) == 1

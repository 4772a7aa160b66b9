"""A metric that nobody measures is a promise nobody keeps."""

from __future__ import annotations

import ast
from pathlib import Path

from yarnflow.core.metrics import ScopeKind
from yarnflow.core.monitoring import declarations
from yarnflow.core.monitoring.declarations import ALL_METRICS, STATUS_TIMES, MetricDeclaration
from yarnflow.core.monitoring.page import metrics_markdown

PACKAGE = Path(__file__).resolve().parents[3] / "yarnflow"


def constants() -> dict[str, MetricDeclaration]:
    return {name: value for name, value in vars(declarations).items() if isinstance(value, MetricDeclaration)}


def names_read() -> set[str]:
    """Every attribute that modules of ours mention, those of the declarations left out."""
    return {
        node.attr
        for path in PACKAGE.rglob("*.py")
        if path.name != "declarations.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }


def test_every_metric_is_measured_somewhere() -> None:
    through_a_table = set(STATUS_TIMES.values())
    wanted = {name for name, metric in constants().items() if metric not in through_a_table}
    assert sorted(wanted - names_read()) == []


def test_every_metric_says_what_it_is() -> None:
    for metric in ALL_METRICS:
        assert metric.scopes and metric.description.endswith("."), metric.name
        assert len(set(metric.scopes)) == len(metric.scopes), metric.name


def test_the_page_names_each_in_each_scope() -> None:
    page = metrics_markdown()
    for metric in ALL_METRICS:
        assert page.count(f"| `{metric.name}` |") == len(metric.scopes), metric.name
    assert {scope for metric in ALL_METRICS for scope in metric.scopes} == set(ScopeKind)

"""The page belongs to the table of routes."""

from __future__ import annotations

from pathlib import Path

from yarnflow.rest.routes import SECTIONS
from yarnflow.rest.web import rest_markdown

ROOT = Path(__file__).resolve().parents[2]
#: of Flink 2.3
FLINK = (Path(__file__).parent / "flink_endpoints.txt").read_text().splitlines()


def test_the_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "api" / "rest.md").read_text(encoding="utf-8")
    assert page == rest_markdown(), "run scripts/gen-docs"


def test_every_endpoint_of_flink_is_answered_or_refused() -> None:
    here = {f"{route.method} {route.path}": route.ours for routes in SECTIONS.values() for route in routes}
    assert set(FLINK) - set(here) == set()
    # what Flink does not list among its endpoints although it has it
    unlisted = {"GET /jobmanager/log", "GET /jobmanager/stdout"}
    assert {name for name, ours in here.items() if not ours} - set(FLINK) == unlisted

"""Links from a task to its job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.xcom import XCom

from tests.airflow.surroundings import JOB, Connections
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.links import YarnApplicationLink, YarnflowDashboardLink, YarnflowLogsLink

SITE = """<configuration><property><name>yarn.resourcemanager.webapp.address</name>
<value>rm:8088</value></property></configuration>"""


def links(
    monkeypatch: pytest.MonkeyPatch, pushed: dict[str, Any], missed: list[str] | None = None
) -> list[str]:
    def pulled(*, ti_key: Any, key: str) -> Any:
        if missed is not None and key not in pushed:
            missed.append(key)
        return pushed.get(key)

    monkeypatch.setattr(XCom, "get_value", pulled)
    made = (YarnflowDashboardLink(), YarnApplicationLink(), YarnflowLogsLink())
    return [link.get_link(None, ti_key=None) for link in made]


def test_links(monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = {"rest_url": "http://jm:8081", "yarn_page": "http://rm:8088/cluster/app/a", "job_id": JOB}
    assert links(monkeypatch, pushed) == [
        f"http://jm:8081/#/job/{JOB}",
        "http://rm:8088/cluster/app/a",
        f"http://jm:8081/#/job/{JOB}/configuration",
    ]


def test_a_task_that_knows_no_job_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    missed: list[str] = []
    assert links(monkeypatch, {}, missed) == ["", "", ""]
    # each is an error in Airflow's log
    assert missed == ["job_id"] * 3


def test_a_job_that_is_not_on_yarn(monkeypatch: pytest.MonkeyPatch) -> None:
    missed: list[str] = []
    pushed = {"rest_url": "http://jm:8081", "job_id": JOB}
    assert links(monkeypatch, pushed, missed)[1] == ""
    assert missed == ["yarn_page"]


def test_the_page_of_yarn_is_where_hadoops_configuration_says(
    tmp_path: Path, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    connections.add(hadoop_conf_dir=str(tmp_path))
    assert YarnflowHook().yarn_page("application_1_1") == ""
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    (tmp_path / "yarn-site.xml").write_text(SITE)
    assert YarnflowHook().yarn_page("application_1_1") == "http://rm:8088/cluster/app/application_1_1"

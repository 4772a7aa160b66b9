"""What nobody can run: one line says why, and nothing is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from integration.airflow.jobs import AirflowOnYarn
from integration.faults.records import Numbered

_DAG: Final = """
from airflow.sdk import DAG
from yarnflow.airflow.operators.stop import YarnflowStopOperator
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator

with DAG("bad_input", schedule=None):
    YarnflowSubmitOperator(task_id="no_connection", application="x.py", yarnflow_conn_id="nowhere")
    YarnflowSubmitOperator(task_id="no_program", application="/there/is/none.py")
    YarnflowStopOperator(task_id="no_job", job_key="of nobody")
    YarnflowSubmitOperator(
        task_id="of_another", application={program!r}, yarnflow_conn_id="of_another", job_key="k"
    )
"""
#: task → what its error says
_SAID: Final = {
    "no_connection": "there is no connection nowhere",
    "no_program": "/there/is/none.py",
    "no_job": "no live job of the key of nobody",
    # where that user's jobs have their keys
    "of_another": "belongs to somebody, not to ",
}


@pytest.mark.may_rerun("Airflow's scheduler takes its time")
def test_one_line_says_what_is_wrong(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    api, hadoop, directory = on_yarn.airflow.api, on_yarn.yarn.hadoop, "/tests/airflow-of-another"
    hadoop.hdfs.make_folder(directory)
    hadoop.hdfs.client.set_owner(directory, owner="somebody")
    extra = json.loads(api.call("GET", "/connections/yarnflow_default")["extra"])
    extra["options"] = {"yarn.staging-directory": f"hdfs://{directory}"}
    api.set_connection("of_another", "yarnflow", extra=json.dumps(extra))
    program = Numbered("/tests/airflow-bad-input").write_program(tmp_path / "job.py")
    on_yarn.add("bad_input.py", "bad_input", source=_DAG.format(program=str(program)))
    api.trigger("bad_input", "run")
    assert api.end_of_run("bad_input", "run") == "failed"
    for task_id, said in _SAID.items():
        assert api.task("bad_input", "run", task_id)["state"] == "failed"
        errors = [
            line
            for line in api.log("bad_input", "run", task_id).splitlines()
            if line.startswith("error Task failed with exception")
        ]
        assert len(errors) == 1 and said in errors[0], api.story("bad_input", "run")
    assert on_yarn.applications() == []

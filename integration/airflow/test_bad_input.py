"""What nobody can run: one line says why, and nothing is left."""

from __future__ import annotations

from typing import Final

from integration.airflow.jobs import AirflowOnYarn

_DAG: Final = """
from airflow.sdk import DAG
from yarnflow.airflow.operators.stop import YarnflowStopOperator
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator

with DAG("bad_input", schedule=None):
    YarnflowSubmitOperator(task_id="no_connection", application="x.py", yarnflow_conn_id="nowhere")
    YarnflowSubmitOperator(task_id="no_program", application="/there/is/none.py")
    YarnflowStopOperator(task_id="no_job", job_key="of nobody")
"""
#: task → what its error says
_SAID: Final = {
    "no_connection": "there is no connection nowhere",
    "no_program": "/there/is/none.py",
    "no_job": "of nobody",
}


def test_one_line_says_what_is_wrong(on_yarn: AirflowOnYarn) -> None:
    api = on_yarn.airflow.api
    on_yarn.add("bad_input.py", "bad_input", source=_DAG)
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

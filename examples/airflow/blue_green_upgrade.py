"""A new release of a stream, from a savepoint of the old one; the old one comes back if the new one fails.

Trigger it with the name of the release, a directory in ``live_programs``:

    airflow dags trigger blue_green_upgrade --conf '{"release": "green"}'

Needed: what supervised_stream.py needs, that stream, and a variable of Airflow:

    live_savepoints     directory for savepoints
"""

from airflow.sdk import DAG, Param, Variable, task

from yarnflow.airflow.operators.restart import YarnflowRestartOperator

PROGRAMS = "{{ var.value.live_programs }}"

with DAG(
    "blue_green_upgrade",
    schedule=None,
    max_active_runs=1,
    params={"release": Param(type="string", pattern=r"^[\w.-]+$")},
):
    upgrade = YarnflowRestartOperator(
        task_id="upgrade",
        job_key="live_delays",
        application=PROGRAMS + "/{{ params.release }}/live_delays.py",
        application_args=[
            *("--input", "{{ var.value.live_flights }}"),
            *("--output", "{{ var.value.live_delays }}"),
        ],
        # a release that commits nothing in five minutes is taken back
        rollback_application=PROGRAMS + "/{{ var.value.live_release }}/live_delays.py",
        commit_timeout=300,
        savepoint_dir="{{ var.value.live_savepoints }}",
        target="yarn-per-job",
        # nobody starts the job again meanwhile
        pool="live_delays",
    )

    @task
    def remember(params=None):
        """From now on this release is looked after."""
        Variable.set("live_release", params["release"])

    upgrade >> remember()

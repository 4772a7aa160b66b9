"""A batch on YARN every night: the delays of all flights, as one job that a retry finds again.

Needed: a connection ``yarnflow_default`` of the type yarnflow, and three variables of Airflow:

    yarnflow_programs   directory of yarnflow's examples on the workers
    flights             directory of flights as CSV, hdfs:///data/flights
    flight_delays       directory for the results, a new one below it for each run

Whatever happens to worker, scheduler or triggerer, one job runs: its key is made of DAG, task and run.
"""

from datetime import timedelta

from airflow.sdk import DAG, Asset, task

from yarnflow.airflow.operators.submit import YarnflowSubmitOperator

FLIGHT_DELAYS = Asset("flight_delays")
# a run that a person begins has no logical date
NIGHT = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"

with DAG(
    "nightly_batch",
    schedule="0 2 * * *",
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
):
    delays = YarnflowSubmitOperator(
        task_id="delays",
        application="{{ var.value.yarnflow_programs }}/flight_delays.py",
        application_args=[
            *("--input", "{{ var.value.flights }}"),
            *("--output", "{{ var.value.flight_delays }}/" + NIGHT + "/{{ run_id | replace(':', '-') }}"),
        ],
        target="yarn-per-job",
        parallelism=2,
        # a job that hangs is canceled, and the task fails
        execution_timeout=timedelta(hours=2),
        on_kill="cancel",
        outlets=[FLIGHT_DELAYS],
    )

with DAG("after_the_batch", schedule=[FLIGHT_DELAYS], catchup=False):

    @task
    def tell(triggering_asset_events=None):
        """Begins when the results are there."""
        for events in triggering_asset_events.values():
            for event in events:
                print(f"job {event.extra['job_id']} has written new delays")

    tell()

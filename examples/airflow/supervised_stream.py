"""A stream that is to run for ever, looked after every ten minutes and put to the test every week.

Needed: a connection ``yarnflow_default``, a pool ``live_delays`` of one slot, which keeps the looking-after
and an upgrade (blue_green_upgrade.py) apart, and variables of Airflow:

    live_programs       directory of releases on the workers: blue/live_delays.py, green/live_delays.py
    live_release        the release that is to run: blue
    live_flights        directory that is watched for flights as CSV
    live_delays         directory for the results
"""

from datetime import timedelta

from airflow.sdk import DAG, task

from yarnflow.airflow.assets import checkpoint_asset
from yarnflow.airflow.operators.drill import YarnflowDrillOperator
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator
from yarnflow.airflow.sensors.job import YarnflowCheckpointSensor

JOB_KEY = "live_delays"

with DAG(
    "supervised_stream",
    schedule=timedelta(minutes=10),
    catchup=False,
    max_active_runs=1,
):
    # The job that has the key runs: nothing is done.  Else it is started from the newest state that a job of
    # the key has left: that of one that failed, or the savepoint of one that was stopped.
    running = YarnflowSubmitOperator(
        task_id="running",
        application="{{ var.value.live_programs }}/{{ var.value.live_release }}/live_delays.py",
        application_args=[
            *("--input", "{{ var.value.live_flights }}"),
            *("--output", "{{ var.value.live_delays }}"),
        ],
        target="yarn-per-job",
        job_key=JOB_KEY,
        restore="latest",
        wait_for="checkpoint",
        # the stream goes on, whatever becomes of a task that looks after it
        on_kill="leave",
        pool="live_delays",
    )
    fresh = YarnflowCheckpointSensor(
        task_id="fresh", job_key=JOB_KEY, max_age=timedelta(minutes=5), timeout=300, mode="reschedule"
    )
    # from Kafka there could be a YarnflowLagSensor beside it; files do not tell what is left to read
    running >> fresh

with DAG(
    "weekly_drill",
    schedule="0 10 * * 1",
    catchup=False,
    max_active_runs=1,
):
    # on Monday morning, when somebody is there: the driver is killed, and has to be replaced
    YarnflowDrillOperator(
        task_id="driver_is_replaced", what="driver", job_key=JOB_KEY, recovery_timeout=300, pool="live_delays"
    )

with DAG(
    "after_checkpoints",
    schedule=[checkpoint_asset("live_delays", JOB_KEY, every=5)],
    catchup=False,
    max_active_runs=1,
):

    @task
    def tell(triggering_asset_events=None):
        """New rows can be read."""
        for events in triggering_asset_events.values():
            print(f"{len(events)} times five checkpoints")

    tell()

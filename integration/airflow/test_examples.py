"""The example DAGs, as they are, on YARN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from integration.airflow.feed import Feed
from integration.airflow.jobs import AirflowOnYarn
from integration.conftest import ROOT, wait_until
from integration.faults.records import PATIENT

DAGS: Final = ROOT / "examples/airflow"
PROGRAM: Final = DAGS / "programs/live_delays.py"
RUN: Final = "by-hand"


@pytest.mark.drill
def test_nightly_batch(on_yarn: AirflowOnYarn, flights: str, tmp_path: Path) -> None:
    api = on_yarn.airflow.api
    for name, value in {
        "yarnflow_programs": str(ROOT / "examples"),
        "flights": flights,
        "flight_delays": "/tests/airflow-nightly",
    }.items():
        api.set_variable(name, value)
    on_yarn.add(DAGS / "nightly_batch.py", "nightly_batch", "after_the_batch")
    api.trigger("nightly_batch", RUN)
    assert api.end_of_run("nightly_batch", RUN) == "success", api.story("nightly_batch", RUN)
    left = api.xcoms("nightly_batch", RUN, "delays")
    # Airflow begins another run itself in the two hours behind the time at which it is due
    runs = [str(run["dag_run_id"]) for run in api.runs("nightly_batch")]
    assert [api.end_of_run("nightly_batch", run) for run in runs] == ["success"] * len(runs)
    begun = [str(api.xcom("nightly_batch", run, "delays", "application_id")) for run in runs]
    assert sorted(on_yarn.applications()) == sorted(begun)
    assert left["state"] == "FINISHED"
    (day,) = on_yarn.yarn.below("/tests/airflow-nightly")
    on_yarn.yarn.assert_windows(f"/tests/airflow-nightly/{day}/{RUN}", tmp_path)
    told = api.log("nightly_batch", RUN, "delays")
    assert f"Job {left['job_id']} is RUNNING" in told and f"Job {left['job_id']} is FINISHED" in told
    links = api.links("nightly_batch", RUN, "delays")
    assert left["job_id"] in str(links["yarnflow dashboard"])
    assert left["application_id"] in str(links["YARN application"])
    # the next DAG runs because the data are there
    events = api.asset_events(source_dag_id="nightly_batch")
    assert [event["extra"]["job_id"] for event in events].count(left["job_id"]) == 1

    def following() -> str | None:
        for run in (str(each["dag_run_id"]) for each in api.runs("after_the_batch")):
            ended = api.end_of_run("after_the_batch", run) == "success"
            if ended and left["job_id"] in api.log("after_the_batch", run, "tell"):
                return run
        return None

    assert wait_until(following, "the run after the batch")


@dataclass(frozen=True)
class Stream:
    """The supervised stream of one test; another test's has runs of the same DAGs."""

    on_yarn: AirflowOnYarn
    #: of the test
    name: str

    def run_id(self, run: str) -> str:
        """What Airflow knows a run by."""
        return f"{self.name}-{run}"

    def run(self, dag_id: str, run: str, end: str = "success", **conf: str) -> None:
        """Run a DAG to its end."""
        api, run_id = self.on_yarn.airflow.api, self.run_id(run)
        api.trigger(dag_id, run_id, conf)
        ended = api.end_of_run(dag_id, run_id)
        assert ended == end, api.story(dag_id, run_id)

    def begun(self, run: str) -> str:
        """The job that a run of the stream's DAG has begun or found."""
        api = self.on_yarn.airflow.api
        return str(api.xcom("supervised_stream", self.run_id(run), "running", "job_id"))

    def job(self, run: str) -> str:
        """The job that runs, as the stream's DAG finds it."""
        self.run("supervised_stream", run)
        return self.begun(run)


@pytest.fixture
def stream(on_yarn: AirflowOnYarn, tmp_path: Path) -> Iterator[Stream]:
    """What the examples of a stream need; flights come in, and all results are right in the end."""
    api, where = on_yarn.airflow.api, f"/tests/{tmp_path.name}"
    text = PROGRAM.read_text()
    changes = {
        "blue": ("", ""),
        "green": ('.uid("delays")', '.uid("delays").filter("flights > 0")'),
        # at the first flight: no window need be complete in the first batch
        "broken": (".select(SCHEDULED", '.filter("flight % 0 = 1").select(SCHEDULED'),
    }
    for release, (before, after) in changes.items():
        (tmp_path / release).mkdir()
        assert before in text
        (tmp_path / release / PROGRAM.name).write_text(text.replace(before, after))
    for name, value in {
        "live_programs": str(tmp_path),
        "live_release": "blue",
        "live_flights": f"{where}/flights",
        "live_delays": f"{where}/delays",
        "live_savepoints": f"hdfs://{where}/savepoints",
    }.items():
        api.set_variable(name, value)
    api.set_pool("live_delays", 1)
    feed = Feed(on_yarn.yarn.hadoop, f"{where}/flights")
    stream = Stream(on_yarn, tmp_path.name)
    try:
        on_yarn.add(
            DAGS / "supervised_stream.py", "supervised_stream", "weekly_drill", "after_checkpoints"
        )
        on_yarn.add(DAGS / "blue_green_upgrade.py", "blue_green_upgrade")
        stream.run("supervised_stream", "begins")
        yield stream
    finally:
        feed.finish()
    (application,) = on_yarn.yarn.live()
    stopped = on_yarn.yarn.run(
        *("stop", f"-Dyarn.application.id={application}", "--drain", PATIENT),
        *("-p", f"hdfs://{where}/savepoints", stream.job("looks-after")),
    )
    assert stopped.process.returncode == 0, stopped.stderr
    on_yarn.yarn.assert_windows(f"{where}/delays", tmp_path)


@pytest.mark.drill
def test_supervised_stream(stream: Stream) -> None:
    api = stream.on_yarn.airflow.api
    job = stream.begun("begins")
    assert stream.job("finds-it") == job
    stream.run("weekly_drill", RUN)
    report = api.xcom("weekly_drill", stream.run_id(RUN), "driver_is_replaced")
    assert report["passed"] is True
    assert "commit" in [event["name"] for event in report["events"]]
    # the job's checkpoints begin runs
    (first, *_) = wait_until(lambda: api.runs("after_checkpoints"), "a run after five checkpoints")
    assert api.end_of_run("after_checkpoints", first["dag_run_id"]) == "success"
    assert len(stream.on_yarn.applications()) == 1


@pytest.mark.drill
def test_blue_green_upgrade(stream: Stream) -> None:
    api = stream.on_yarn.airflow.api
    blue = stream.begun("begins")
    stream.run("blue_green_upgrade", "to-green", release="green")
    assert api.call("GET", "/variables/live_release")["value"] == "green"
    green = stream.job("finds-green")
    assert green != blue
    stream.run("blue_green_upgrade", "to-broken", "failed", release="broken")
    assert api.tasks("blue_green_upgrade", stream.run_id("to-broken"))["upgrade"]["state"] == "failed"
    # the old release is back, and is looked after
    assert api.call("GET", "/variables/live_release")["value"] == "green"
    assert stream.job("finds-it-back") not in (blue, green)
    assert len(stream.on_yarn.yarn.live()) == 1

"""What a drill makes of what it sees; the cluster is a script of answers."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.cli.common import terminate_as_interrupt
from yarnflow.client.drill.commits import Batches, CommitTrack, estimate_replay, offset_distance
from yarnflow.client.drill.hdfs import SafeModeFault, watch_over
from yarnflow.client.drill.report import DrillKind, DrillWatch
from yarnflow.client.drill.run import ClusterFault, Drill
from yarnflow.core.checkpoint.messages import SourceProgress
from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.messages import (
    ErrorInfo,
    ExecutionInfo,
    FailureInfo,
    FaultInjected,
    FaultKind,
    FaultRequest,
    Fence,
    JobDetails,
    JobOverview,
    LeaderInfo,
    QueryProgress,
    VertexInfo,
)
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import (
    HaError,
    JobError,
    LeadershipLost,
    RpcUnavailable,
    StorageDenied,
    StorageUnavailable,
)
from yarnflow.process.signals import ENDING
from yarnflow.testing.runtime import ManualClock

JOB = JobId("ab" * 16)
S, E = JobStatus, ExecutionState


def leader(epoch: int = 1) -> LeaderInfo:
    return LeaderInfo(Fence(f"leader-{epoch}", epoch), f"host:{epoch}", "0", "default")


def progress(batch: int, ended_ms: int, query: str = "q") -> QueryProgress:
    source = SourceProgress("rate", str(batch * 25), str((batch + 1) * 25))
    return QueryProgress(
        query, batch, ended_ms - 100, 100, input_rows=25, sources=(source,), directory="d"
    )


def job(
    status: JobStatus = S.RUNNING,
    queries: Sequence[QueryProgress] = (),
    times: dict[JobStatus, int] | None = None,
    failures: Sequence[FailureInfo] = (),
    execution: ExecutionState = E.RUNNING,
    execution_ms: int = 500,
) -> JobDetails:
    found = ExecutionInfo(0, 1, execution, TaskManagerId("tm-1"), {execution.value: execution_ms})
    return JobDetails(
        JobOverview(JOB, "numbered", status, 0, -1),
        1,
        {state.value: at_ms for state, at_ms in (times or {S.RUNNING: 500}).items()},
        (VertexInfo(VertexId("v"), "v", 1, 1, "", (found,)),),
        tuple(queries),
        tuple(failures),
    )


def failure(at_ms: int, level: RestartLevel = RestartLevel.DRIVER) -> FailureInfo:
    return FailureInfo(at_ms, ErrorInfo("DRIVER_LOST", "driver ended by signal 9"), "", level, True)


def injected(kind: DrillKind) -> DrillWatch:
    """Batches 0 to 5 are committed, one each 500 ms; the fault comes at 3 700."""
    watch = DrillWatch(kind)
    for batch in range(6):
        watch.seen(job(queries=[progress(batch, 1000 + 500 * batch)]), leader(), 1000 + 500 * batch)
    watch.injected("pid 7", 3_700)
    return watch


def names(watch: DrillWatch) -> dict[str, int]:
    return {event.name: event.at_ms for event in watch.report().events}


def recovered(watch: DrillWatch) -> bool:
    """As of now: to mypy, an attribute stays what it was."""
    return watch.recovered


def test_a_leader_that_is_adopted_from() -> None:
    watch = injected(DrillKind.LEADER)
    watch.unreachable(3_800, "RpcUnavailable")
    watch.unreachable(3_900, "LeadershipLost")
    # the old leader's last answer is no sign of recovery
    watch.seen(job(queries=[progress(6, 4_000)]), leader(), 4_050)
    assert not recovered(watch)
    taken_over = {S.INITIALIZING: 4_400, S.RECONCILING: 4_410}
    watch.seen(job(S.RECONCILING, times=taken_over, execution=E.RECONCILING), leader(2), 4_700)
    assert not recovered(watch)
    running = {**taken_over, S.RUNNING: 4_900}
    watch.seen(job(queries=[progress(7, 4_500)], times=running, execution_ms=4_950), leader(2), 5_000)
    assert not recovered(watch), "nothing was committed under the new leader"
    watch.seen(job(queries=[progress(8, 5_000)], times=running, execution_ms=4_950), leader(2), 5_100)
    assert recovered(watch)
    report = watch.report()
    assert names(watch) == {
        "fault": 3_700, "detected": 3_800, "commit": 4_000, "elected": 4_400, "adopted": 4_900,
        "running": 4_950,
    }  # fmt: skip
    assert (report.gaps.usual_ms, report.gaps.largest_ms, report.gaps.exact) == (500, 500, True)
    assert report.replay.records == 0 and report.passed
    assert "runs again and commits" in report.verdict


def test_a_driver_that_is_replaced() -> None:
    watch = injected(DrillKind.DRIVER)
    watch.seen(job(queries=[progress(5, 3_500)]), leader(), 3_800)
    assert not recovered(watch) and watch.report().verdict == "the cluster did not notice the fault"
    lost = [failure(3_760)]
    watch.seen(job(S.RESTARTING, failures=lost, execution=E.SCHEDULED), leader(), 4_000)
    assert not recovered(watch)
    assert "not all of its executions run" in watch.report().verdict
    again = {S.RESTARTING: 3_760, S.RUNNING: 9_000}
    watch.seen(job(times=again, failures=lost, execution_ms=9_010), leader(), 9_100)
    assert not recovered(watch) and "committed" in watch.report().verdict
    # batch 6 was begun before the fault and is done again
    rerun = [progress(6, 9_800)]
    watch.seen(job(queries=rerun, times=again, failures=lost, execution_ms=9_010), leader(), 9_900)
    assert recovered(watch)
    assert names(watch) == {
        "fault": 3_700, "detected": 3_760, "restored": 9_000, "running": 9_010, "commit": 9_800
    }  # fmt: skip
    report = watch.report()
    assert report.gaps.largest_ms == 9_800 - 3_500
    assert report.replay.records == 25 and "upper bound" in report.replay.basis
    assert "exactly" in report.replay.offsets


def test_an_old_failure_is_no_sign_of_this_fault() -> None:
    watch = DrillWatch(DrillKind.DRIVER)
    old = failure(900)
    for batch in range(3):
        watch.seen(job(queries=[progress(batch, 1000 + batch)], failures=[old]), leader(), 1000 + batch)
    watch.injected("pid 7", 2_000)
    watch.seen(job(queries=[progress(4, 2_100)], failures=[old]), leader(), 2_200)
    assert not watch.noticed and not recovered(watch)


def test_a_new_leader_that_has_to_start_another_driver_restores() -> None:
    watch = injected(DrillKind.APPLICATION)
    times = {S.INITIALIZING: 9_000, S.RECONCILING: 9_001, S.RESTARTING: 9_500, S.RUNNING: 14_000}
    ran_again = job(queries=[progress(6, 14_500)], times=times, execution_ms=14_001)
    watch.seen(ran_again, leader(2), 14_600)
    assert recovered(watch) and "restored" in names(watch) and "adopted" not in names(watch)


def test_a_lost_task_manager_restarts_tasks_only() -> None:
    watch = injected(DrillKind.TASK_MANAGER)
    lost = [failure(3_720, RestartLevel.TASKS)]
    watch.seen(job(failures=lost, execution=E.SCHEDULED), leader(), 3_800)
    assert not recovered(watch)
    replaced = job(queries=[progress(6, 6_500)], failures=lost, execution_ms=6_000)
    watch.seen(replaced, leader(), 6_600)
    assert recovered(watch)
    report = watch.report()
    assert "restored" not in names(watch) and names(watch)["running"] == 6_000
    assert report.replay.records == 25 and "only the tasks of lost executors" in report.replay.basis


def test_hdfs_has_to_be_writable_again_before_commits_count() -> None:
    watch = injected(DrillKind.HDFS)
    watch.seen(job(queries=[progress(6, 3_900)]), leader(), 4_000)
    assert not recovered(watch)
    watch.lifted(8_000, "safe mode was left")
    assert not recovered(watch)
    watch.seen(job(queries=[progress(7, 8_200)]), leader(), 8_300)
    assert recovered(watch) and watch.report().replay.records == 0


def test_jobs_that_end() -> None:
    watch = injected(DrillKind.DRIVER)
    watch.seen(replace(job(S.FAILED), error=ErrorInfo("X", "disk is full")), leader(), 4_000)
    assert watch.lost and not watch.report().passed
    assert watch.report().verdict == "the job is FAILED: disk is full"
    watch = injected(DrillKind.DRIVER)
    watch.seen(job(S.FINISHED, failures=[failure(3_750)]), leader(), 4_000)
    assert recovered(watch) and watch.report().passed


def test_every_active_query_has_to_commit_and_no_idle_one() -> None:
    watch = DrillWatch(DrillKind.HDFS)
    for batch in range(3):
        both = [progress(batch, 1000 + batch, query="a"), progress(batch, 1000 + batch, query="b")]
        watch.seen(job(queries=[*both, progress(9, 10, query="idle")]), leader(), 1000 + batch)
    watch.injected("x", 2_000)
    watch.lifted(2_100, "left")
    watch.seen(job(queries=[progress(3, 3_000, query="a")]), leader(), 3_000)
    assert not recovered(watch) and watch.commits.first_after_ms() is None
    watch.seen(job(queries=[progress(3, 3_500, query="b")]), leader(), 3_500)
    assert recovered(watch) and names(watch)["commit"] == 3_500


# --- commits and replays ---


def track(batches: Sequence[tuple[int, int]], fault_ms: int) -> CommitTrack:
    commits = CommitTrack()
    for batch, at_ms in batches:
        if at_ms <= fault_ms:
            commits.reported(progress(batch, at_ms))
    commits.fault(fault_ms)
    for batch, at_ms in batches:
        if at_ms > fault_ms:
            commits.reported(progress(batch, at_ms))
    return commits


def test_batches_nobody_reported_make_the_largest_gap_an_upper_bound_until_logs_show_them() -> None:
    commits = track([(1, 1_000), (2, 1_500), (3, 2_000), (9, 5_000)], 2_100)
    assert (commits.gaps().largest_ms, commits.gaps().exact) == (3_000, False)
    commits.logged("q", Batches({}, {batch: 500 + 500 * batch for batch in range(10)}))
    assert (commits.gaps().largest_ms, commits.gaps().usual_ms, commits.gaps().exact) == (500, 500, True)


def test_a_query_that_only_its_logs_know_is_not_active() -> None:
    commits = CommitTrack()
    commits.logged("old", Batches({}, {1: 100, 2: 200}))
    assert list(commits.active) == []
    commits.logged("old", Batches({}, {2: 200, 3: 300}))
    assert commits.active == ("old",)


def test_a_batch_that_was_not_begun_is_not_replayed() -> None:
    commits = track([(1, 1_000), (2, 1_500), (3, 9_000)], 1_600)
    assert estimate_replay(commits, restarted=True, tasks_lost=False).records == 25
    commits.logged("q", Batches({2: 1_400, 3: 8_000}, {2: 1_500, 3: 9_000}))
    assert estimate_replay(commits, restarted=True, tasks_lost=False).records == 0


def test_a_batch_that_was_not_reported_counts_as_the_usual_one() -> None:
    commits = track([(1, 1_000), (2, 1_500), (4, 9_000)], 1_600)
    replay = estimate_replay(commits, restarted=True, tasks_lost=False)
    assert replay.records == 25 and "usual number" in replay.basis and replay.offsets == "not comparable"


def test_committed_records_that_are_read_again_are_counted() -> None:
    commits = CommitTrack()
    commits.reported(progress(1, 1_000))
    commits.reported(progress(2, 1_500))
    commits.fault(1_600)
    back = replace(progress(3, 9_000), sources=(SourceProgress("rate", "60", "100"),))
    commits.reported(back)
    replay = estimate_replay(commits, restarted=True, tasks_lost=False)
    assert replay.records == 25 + 15 and "15 records" in replay.offsets


@pytest.mark.parametrize(
    ("committed", "begun", "distance"),
    [
        ("75", "75", 0),
        ("75", "70", 5),
        ("75", "80", 0),
        ('{"t":{"0":10,"1":4}}', '{"t":{"0":7,"1":4}}', 3),
        ('{"t":{"0":10}}', '{"t":{"0":10,"1":4}}', None),
        ('"a"', '"b"', None),
        ("", "3", None),
    ],
)
def test_offset_distance(committed: str, begun: str, distance: int | None) -> None:
    assert offset_distance(committed, begun) == distance


# --- carrying it out ---


class Cluster:
    """A leader whose answers change with the clock."""

    def __init__(self, clock: ManualClock, answer: Callable[[int], JobDetails]) -> None:
        self.clock, self.answer = clock, answer
        self.requests: list[FaultRequest] = []
        self.dead_until_ms = -1
        self.fault_ms = -1
        #: its clock is that much ahead
        self.ahead_ms = 0
        self.refusal: HaError | None = None

    def gateway(self) -> Cluster:
        return self

    def present_gateway(self) -> Cluster:
        return self

    def leader(self) -> LeaderInfo:
        if self.clock.now_ms() < self.dead_until_ms:
            raise RpcUnavailable("nobody there")
        return leader(2 if self.fault_ms >= 0 else 1)

    def job_details(self, job_id: JobId) -> JobDetails:
        return self.answer(self.clock.now_ms())

    def inject_fault(self, request: FaultRequest) -> FaultInjected:
        if self.refusal is not None:
            raise self.refusal
        self.requests.append(request)
        if not request.check_only:
            self.fault_ms = self.clock.now_ms()
            self.dead_until_ms = self.clock.now_ms() + 1_000
        return FaultInjected("pid 7", self.clock.now_ms() + self.ahead_ms)


def drill(cluster: Cluster, clock: ManualClock) -> Drill:
    kind = DrillKind.LEADER
    fault = ClusterFault(cluster, kind, JOB)  # type: ignore[arg-type]
    return Drill(
        cluster,  # type: ignore[arg-type]
        JOB,
        kind,
        fault,
        clock,
        lambda seconds: clock.advance(round(seconds * 1000)),
        lambda directory: None,
        30_000,
    )


def committing(now_ms: int) -> list[QueryProgress]:
    return [progress(now_ms // 500, now_ms // 500 * 500)]


def test_a_drill_from_the_check_to_the_verdict() -> None:
    clock = ManualClock(1_000_000)

    def answer(now_ms: int) -> JobDetails:
        times = {S.RUNNING: 500}
        if cluster.fault_ms >= 0:
            began = cluster.dead_until_ms
            times = {S.INITIALIZING: began, S.RECONCILING: began, S.RUNNING: began + 200}
        return job(queries=committing(now_ms), times=times, execution_ms=times[S.RUNNING])

    cluster = Cluster(clock, answer)
    running = drill(cluster, clock)
    assert running.check() == "pid 7"
    assert [request.check_only for request in cluster.requests] == [True]
    running.watch_before()
    assert cluster.fault_ms < 0, "the fault came before the job was watched"
    report = running.run()
    assert report.passed and report.replay.records == 0
    assert cluster.requests[1:] == [FaultRequest(FaultKind.LEADER, JOB)]
    after = {event.name: event.at_ms - report.fault_ms for event in report.events}
    assert after["detected"] == 100 and after["elected"] == 1_000 and after["adopted"] == 1_200


def test_times_seen_here_are_put_right_by_the_clusters_clock() -> None:
    clock = ManualClock(1_000_000)
    cluster = Cluster(clock, lambda now_ms: job(queries=committing(now_ms)))
    cluster.ahead_ms = 7_000
    running = drill(cluster, clock)
    running.check()
    running.watch_before()
    report = running.run()
    (detected,) = [event for event in report.events if event.name == "detected"]
    assert detected.at_ms - report.fault_ms == 100


def test_a_job_that_does_not_recover_in_time() -> None:
    clock = ManualClock(1_000_000)

    def answer(now_ms: int) -> JobDetails:
        if cluster.fault_ms >= 0:
            return job(S.RESTARTING, execution=E.SCHEDULED)
        return job(queries=committing(now_ms))

    cluster = Cluster(clock, answer)
    running = drill(cluster, clock)
    running.check()
    running.watch_before()
    report = running.run()
    assert not report.passed and "RESTARTING" in report.verdict
    assert clock.now_ms() - cluster.fault_ms >= 30_000


def test_a_drill_needs_a_job_that_commits() -> None:
    clock = ManualClock(1_000_000)
    cluster = Cluster(clock, lambda now_ms: job(queries=[progress(3, 100)]))
    with pytest.raises(JobError, match="committed no batch"):
        drill(cluster, clock).watch_before()
    cluster = Cluster(clock, lambda now_ms: job(S.FINISHED, queries=[progress(3, 100)]))
    with pytest.raises(JobError, match="is FINISHED"):
        drill(cluster, clock).watch_before()


def test_what_the_cluster_refuses_is_not_done() -> None:
    clock = ManualClock(1_000_000)
    cluster = Cluster(clock, lambda now_ms: job())
    cluster.refusal = HaError("without high availability")
    with pytest.raises(HaError):
        drill(cluster, clock).check()
    cluster.refusal = LeadershipLost("standby")
    with pytest.raises(LeadershipLost):
        drill(cluster, clock).check()


# --- HDFS ---


class Hadoop:
    """``hdfs dfsadmin -safemode``."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failing: dict[str, list[str]] = {}
        self.watches = 0
        #: arrives while safe mode is being left
        self.signal: signal.Signals | None = None

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        assert arguments[:2] == ("dfsadmin", "-safemode")
        self.calls.append(arguments[2])
        if self.failing.get(arguments[2]):
            return 255, self.failing[arguments[2]].pop(0)
        if self.signal is not None and arguments[2] == "leave":
            signal.raise_signal(self.signal)
        return 0, f"Safe mode is {'ON' if self.calls[-2:-1] == ['enter'] else 'OFF'}\n"

    def watch(self) -> Callable[[], None]:
        self.watches += 1

        def dismiss() -> None:
            self.watches -= 1

        return dismiss


def test_safe_mode_is_left_whatever_ends_the_drill() -> None:
    clock, hadoop = ManualClock(1_000_000), Hadoop()

    def answer(now_ms: int) -> JobDetails:
        if "enter" in hadoop.calls:
            raise KeyboardInterrupt
        return job(queries=committing(now_ms))

    cluster = Cluster(clock, answer)
    running = Drill(
        cluster,  # type: ignore[arg-type]
        JOB,
        DrillKind.HDFS,
        SafeModeFault(clock, 5_000, hadoop.run, hadoop.watch),
        clock,
        lambda seconds: clock.advance(round(seconds * 1000)),
        lambda directory: None,
        30_000,
    )
    running.check()
    running.watch_before()
    with pytest.raises(KeyboardInterrupt):
        running.run()
    assert hadoop.calls == ["get", "enter", "leave"] and not hadoop.watches


def test_leaving_safe_mode_is_tried_again() -> None:
    hadoop = Hadoop()
    fault = SafeModeFault(ManualClock(), 1_000, hadoop.run, hadoop.watch)
    fault.inject()
    hadoop.failing["leave"] = ["connection refused", "connection refused"]
    assert fault.lift()
    assert hadoop.calls == ["enter", "leave", "leave", "leave"]
    assert fault.lift() == ""
    fault.inject()
    hadoop.failing["leave"] = ["connection refused"] * 3
    with pytest.raises(StorageUnavailable, match="still in safe mode.*leave it now"):
        fault.lift()
    assert hadoop.watches == 1, "it tries on when this process has ended"


@pytest.mark.parametrize("number", ENDING)
def test_an_interrupt_waits_until_safe_mode_is_left(number: signal.Signals) -> None:
    hadoop = Hadoop()
    fault = SafeModeFault(ManualClock(), 1_000, hadoop.run, hadoop.watch)
    fault.inject()
    hadoop.signal, hadoop.failing["leave"] = number, ["connection refused"]
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        if signal.getsignal(number) is signal.SIG_IGN:  # as one is under nohup, and would stay
            signal.signal(number, signal.SIG_DFL)
        terminate_as_interrupt()
        with pytest.raises(KeyboardInterrupt):
            fault.lift()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert hadoop.calls == ["enter", "leave", "leave"] and not hadoop.watches


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "dismiss()"])
def test_a_killed_drill_is_repaired_by_its_watch(end: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    os.mkfifo(said)
    hdfs = tmp_path / "hdfs"
    hdfs.write_text(f'#!/bin/sh\necho "$@" > {said}\n')
    hdfs.chmod(0o755)
    program = f"import os; from {watch_over.__module__} import watch_over; dismiss = watch_over(); {end}"
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, timeout=PATIENCE.process_s)
    descriptor = os.open(said, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as reader:
        if end == "dismiss()":
            assert done.returncode == 0 and reader.read() == b"", "nobody writes"
        else:
            os.set_blocking(descriptor, True)
            with selectors.DefaultSelector() as selector:
                selector.register(reader, selectors.EVENT_READ)
                assert selector.select(60)
            assert reader.read() == b"dfsadmin -safemode leave\n"


def test_safe_mode_that_may_not_be_entered_is_not_left() -> None:
    hadoop = Hadoop()
    hadoop.failing["enter"] = ["safemode: Access denied for user x. Superuser privilege is required"]
    fault = SafeModeFault(ManualClock(), 1_000, hadoop.run, hadoop.watch)
    with pytest.raises(StorageDenied, match="superuser"):
        fault.inject()
    fault.lift()
    assert hadoop.calls == ["enter"]


def test_safe_mode_that_is_on_already_is_not_ours() -> None:
    fault = SafeModeFault(ManualClock(), 1_000, lambda arguments: (0, "Safe mode is ON"), Hadoop().watch)
    with pytest.raises(StorageUnavailable, match="already"):
        fault.check()

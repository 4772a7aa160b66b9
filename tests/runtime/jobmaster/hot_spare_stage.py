"""A JobMaster whose job has a hot spare: its drivers are told apart, time passes for those that report."""

from __future__ import annotations

from typing import Self

from tests.runtime.jobmaster.job_bench import ADDRESS, JOB, TM1, TM2, Bench
from yarnflow.core.ids import DriverId, ExecutorId, TaskManagerId
from yarnflow.core.job_run.spare_life import REHEARSED
from yarnflow.core.messages import DriverPhase, DriverRegistration, DriverReport, QueryProgress
from yarnflow.errors import DriverLost
from yarnflow.testing.gateways.driver import FakeDriver
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor


class Stage(Bench):
    """A bench whose drivers are told apart: each is served under its own id."""

    def __init__(self, *arguments: str, **more: object) -> None:
        super().__init__(*arguments, **{"hot_spare": True, **more})  # type: ignore[arg-type]
        self._last: dict[DriverId, DriverReport] = {}

    @property
    def drivers(self) -> list[DriverId]:
        """All that were launched."""
        return [assignment.driver_id for assignment in self.launcher.assignments]

    def register(self, driver_id: DriverId | None = None, attempt: int = 0) -> Self:
        driver_id = driver_id or self.driver_id
        self.master.register_driver(
            DriverRegistration(JOB, driver_id, driver_id, 42, "spark://x@y:1", "app", attempt=attempt)
        )
        self.run()
        return self

    def says(self, driver_id: DriverId, phase: DriverPhase, executors: str = "", **more: object) -> Self:
        if phase is DriverPhase.IDLE:
            more = {"milestones_ms": {REHEARSED: 1}, **more}
        elif phase is DriverPhase.RUNNING:
            more = {"queries": (QueryProgress("q", batch_id=0),), **more}
        report = DriverReport(
            JOB,
            driver_id,
            self.attempt if phase is not DriverPhase.IDLE else 0,
            phase,
            tuple(ExecutorId(executor) for executor in executors.split()),
            **more,  # type: ignore[arg-type]
        )
        self._last[driver_id] = report
        self.master.report(report)
        self.run()
        return self

    def seconds(self, count: int, *silent: DriverId) -> Self:
        """Time passes, and drivers that have reported go on to."""
        for _ in range(count):
            self.run(1_000)
            for driver_id, report in self._last.items():
                if driver_id not in silent:
                    try:
                        self.master.report(report)
                    except DriverLost:
                        continue
            self.run()
        return self

    def starts(self) -> Self:
        """The job itself runs on TaskManager 1, for some time."""
        self.start()
        self.offer(TM1, 2)
        self.register()
        return self.says(self.drivers[0], DriverPhase.RUNNING, "0").seconds(5)

    def ready(self, rehearsed: bool = True) -> Self:
        """Its hot spare has an executor on TaskManager 2."""
        self.starts()
        self.offer(TM2, 2)
        self.register()
        milestones_ms = {REHEARSED: 1} if rehearsed else {}
        return self.says(self.drivers[1], DriverPhase.IDLE, "1", milestones_ms=milestones_ms)

    def report_batch(self) -> Self:
        """The job has committed something."""
        queries = (QueryProgress("q", batch_id=3),)
        return self.says(self.drivers[0], DriverPhase.RUNNING, "0", queries=queries)

    def fake(self, driver_id: DriverId) -> FakeDriver:
        return self.gateways.drivers.setdefault(driver_id, FakeDriver())

    def task_manager(self, task_manager: TaskManagerId) -> FakeTaskExecutor:
        return self.gateways.task_executors.setdefault(ADDRESS[task_manager], FakeTaskExecutor())

    def attempts(self, driver_id: DriverId) -> list[int]:
        return [deployment.attempt for deployment in self.fake(driver_id).deployments]

    def started_on(self, task_manager: TaskManagerId) -> list[tuple[str, str]]:
        return [(d.executor_id, d.driver_id) for d in self.task_manager(task_manager).started]

"""Elements on their way through the JobManager, and jobs whose program has gone."""

from __future__ import annotations

import pytest

from tests.runtime.jobmaster.job_bench import JOB, Bench
from yarnflow.core.collect import parts
from yarnflow.core.messages import DriverPhase
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileChanged, JobError, StorageUnavailable, YarnflowError
from yarnflow.runtime.jobmaster import collecting
from yarnflow.runtime.jobmaster.collecting import Collecting
from yarnflow.runtime.leader_clock import Doubt
from yarnflow.testing.runtime import InlineMailbox, ManualClock
from yarnflow.testing.stores import FakeCollectedParts

KEY = parts.part_key(b"secret", JOB)
TIMEOUT_MS = 180_000


def put(files: FakeCollectedParts, batch_id: int, *payloads: bytes, number: int = 0) -> str:
    name = parts.part_name(batch_id, number)
    files.contents[name] = parts.seal(KEY, name, parts.pack(payloads))
    return name


class Reading:
    """A reader whose waits the test fills."""

    def __init__(self) -> None:
        self.files = FakeCollectedParts()
        self.clock = ManualClock()
        self.meanwhile = iter(())
        self.gone: list[str] = []
        self.mailbox = InlineMailbox("job", self.clock)
        self.collecting = Collecting(
            self.files, KEY, TIMEOUT_MS, self.clock, self.mailbox, self.gone.append, self.wait
        )

    def wait(self, seconds: float) -> None:
        self.clock.advance(int(seconds * 1000))
        next(self.meanwhile, None)

    def page(self, position: str = "", timeout_ms: int = 1_000) -> tuple[list[bytes], str]:
        page = self.collecting.await_page(position, timeout_ms, lambda: False)
        return list(page.payloads), page.position


class TestPages:
    def test_committed_elements_come_in_order_and_stay_until_they_are_acknowledged(self) -> None:
        reading = Reading()
        names = [put(reading.files, 0, b"a"), put(reading.files, 1, b"b", b"c"), put(reading.files, 2, b"d")]
        reading.files.last_committed = 1
        assert reading.page() == ([b"a", b"b", b"c"], names[1])
        assert reading.page() == ([b"a", b"b", b"c"], names[1]), "an answer that was lost is lost for ever"
        assert list(reading.files.contents) == names
        reading.files.last_committed = 2
        assert reading.page(names[1]) == ([b"d"], names[2])
        assert list(reading.files.contents) == names[2:]
        assert reading.page(names[2]) == ([], names[2])
        assert reading.files.contents == {}

    def test_a_poll_ends_with_the_first_elements(self) -> None:
        reading = Reading()

        def happenings() -> object:
            yield put(reading.files, 0, b"a")
            reading.files.last_committed = 0
            yield None

        reading.meanwhile = iter(happenings())  # type: ignore[call-overload]
        before = reading.clock.monotonic_ms()
        assert reading.page(timeout_ms=10_000)[0] == [b"a"]
        assert reading.clock.monotonic_ms() - before < 100

    def test_a_poll_ends_with_its_time_or_the_job(self) -> None:
        reading = Reading()
        before = reading.clock.monotonic_ms()
        assert reading.page(timeout_ms=3_000) == ([], "")
        assert 3_000 <= reading.clock.monotonic_ms() - before < 3_500
        before = reading.clock.monotonic_ms()
        assert not reading.collecting.await_page("", 3_000, lambda: True).payloads
        assert reading.clock.monotonic_ms() == before

    def test_a_page_has_a_limited_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(collecting, "PAGE_BYTES", 20)
        reading = Reading()
        names = [put(reading.files, 0, b"x" * 10, number=number) for number in range(3)]
        reading.files.last_committed = 0
        assert reading.page()[1] == names[1]
        assert reading.page(names[1]) == ([b"x" * 10], names[2])

    def test_what_no_driver_wrote_is_refused(self) -> None:
        reading = Reading()
        reading.files.contents[parts.part_name(0, 0)] = b"cos\nsystem\n(S'true'\ntR."
        reading.files.last_committed = 0
        with pytest.raises(FileChanged):
            reading.page()

    def test_files_that_cannot_be_read(self) -> None:
        reading = Reading()
        reading.files.error = StorageUnavailable("safe mode")
        with pytest.raises(StorageUnavailable):
            reading.page()


class TestSlowFiles:
    """A file system that takes longer than a program may be silent."""

    def hanging(self, monkeypatch: pytest.MonkeyPatch, ends: YarnflowError | None = None) -> Reading:
        reading = Reading()
        reading.collecting.watch()

        def names() -> list[str]:
            # the mailbox has a thread of its own
            for _ in range(5):
                reading.clock.advance(TIMEOUT_MS // 2)
                reading.mailbox.run_pending()
            if ends is not None:
                raise ends
            return []

        monkeypatch.setattr(reading.files, "names", names)
        return reading

    def test_a_program_that_waits_for_them_is_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reading = self.hanging(monkeypatch)
        assert reading.page(timeout_ms=0) == ([], "")
        assert not reading.gone
        self.silent(reading)

    def test_so_is_one_that_gets_an_error_in_the_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reading = self.hanging(monkeypatch, StorageUnavailable("safe mode"))
        with pytest.raises(StorageUnavailable):
            reading.page(timeout_ms=0)
        assert not reading.gone
        self.silent(reading)

    def silent(self, reading: Reading) -> None:
        """From the end of the call it has the whole time-out, and no more."""
        reading.clock.advance(TIMEOUT_MS - 1)
        reading.mailbox.run_pending()
        assert not reading.gone
        reading.clock.advance(TIMEOUT_MS)
        reading.mailbox.run_pending()
        assert len(reading.gone) == 1


class TestGonePrograms:
    """A job whose program asks no more."""

    def running(self, **more: object) -> Bench:
        return Bench(collects=True, **more).running()  # type: ignore[arg-type]

    def ask(self, bench: Bench) -> None:
        assert not bench.master.await_collected("", 0).payloads

    def silent(self, bench: Bench, ms: int) -> Bench:
        """The driver is heard all the time."""
        for _ in range(ms // 1_000):
            bench.run(1_000)
            if bench.status() is JobStatus.RUNNING:
                bench.report(DriverPhase.RUNNING)
        return bench

    def test_the_job_is_canceled(self) -> None:
        bench = self.running()
        self.silent(bench, 170_000)
        assert bench.status() is JobStatus.RUNNING
        self.silent(bench, 60_000)
        assert bench.status() is JobStatus.CANCELED

    def test_a_program_that_asks_keeps_its_job(self) -> None:
        bench = self.running()
        for _ in range(4):
            self.silent(bench, 100_000)
            self.ask(bench)
        assert bench.status() is JobStatus.RUNNING
        self.silent(bench, 230_000)
        assert bench.status() is JobStatus.CANCELED

    def test_time_without_a_certain_leader_does_not_count(self) -> None:
        bench = self.running(lead=True)
        self.silent(bench, 100_000)
        bench.doubt()
        bench.settle(Doubt.CONNECTION)
        bench.run()
        self.silent(bench, 130_000)
        assert bench.status() is JobStatus.RUNNING

    def test_a_new_leader_waits_for_the_program_as_long(self) -> None:
        bench = Bench(collects=True, recovered=True)
        bench.start()
        bench.run(170_000)
        assert bench.status() is not JobStatus.CANCELED
        bench.run(60_000)
        assert bench.status() in (JobStatus.CANCELLING, JobStatus.CANCELED)

    def test_other_jobs_are_left_alone(self) -> None:
        bench = Bench().running()
        self.silent(bench, 400_000)
        assert bench.status() is JobStatus.RUNNING
        with pytest.raises(JobError, match="no execute_and_collect"):
            bench.master.await_collected("", 0)


def test_nothing_unread_is_left_of_a_job_that_is_over() -> None:
    bench = Bench(collects=True).running()
    put(bench.stores.collected_parts, 0, b"a")
    bench.master.cancel()
    bench.run()
    bench.report(DriverPhase.CANCELED)
    bench.run()
    assert bench.status() is JobStatus.CANCELED
    assert bench.stores.collected_parts.contents == {}
    assert not bench.master.await_collected("", 60_000).payloads

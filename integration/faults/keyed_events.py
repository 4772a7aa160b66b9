"""A keyed, timed and windowed PyFlink program whose every result is known beforehand.

Its results do not depend on where micro-batches end: a timer counts what came until its time, and the
watermark lets nobody be late.  Nor do they depend on the order of two files: a driver that dies once it has
chosen a file leaves it to the next one, whose batch has another file more.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.dataset as ds

KEYS: Final = 5
#: an event's time is this much out of order at most
DISORDER_MS: Final = 50
TIMER_MS: Final = 100
GAP_MS: Final = 60
_STEP_MS: Final = 7

_PROGRAM: Final = '''
from pyflink.common import Duration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    KeyedProcessFunction, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import EventTimeSessionWindows

from yarnflow.api import FileSink, FileSource

RESULT = Types.ROW_NAMED(["key", "at", "value"], [Types.LONG(), Types.LONG(), Types.LONG()])
TIMERS = OutputTag("timers", RESULT)


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Totals(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.times = runtime_context.get_list_state(ListStateDescriptor("times", Types.LONG()))

    def process_element(self, value, ctx):
        total = (self.total.value() or 0) + value[2]
        self.total.update(total)
        self.times.add(value[1])
        ctx.timer_service().register_event_time_timer(value[1] + {timer_ms})
        yield Row(value[0], value[1], total)

    def on_timer(self, timestamp, ctx):
        yield TIMERS, Row(ctx.get_current_key(), timestamp, sum(time <= timestamp for time in self.times))


class Session(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield Row(key, context.window().start, sum(element[2] for element in elements))


def sink(stream, name):
    stream.sink_to(FileSink.for_path({output!r} + "/" + name).format("parquet").build())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    source = FileSource({events!r}, "csv", schema="k BIGINT, at BIGINT, n BIGINT", max_files_per_trigger=1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis({disorder_ms}))
    events = env.from_source(source).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(At())
    )
    keyed = events.key_by(lambda event: event[0], Types.LONG())
    totals = keyed.process(Totals(), RESULT)
    sink(totals, "totals")
    sink(totals.get_side_output(TIMERS), "timers")
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds({gap_ms})))
    sink(sessions.process(Session(), RESULT), "sessions")
    env.execute("keyed events")


if __name__ == "__main__":
    main()
'''

#: key, time, number
Event = tuple[int, int, int]
#: key, time, value
Result = tuple[int, int, int]


@dataclass(frozen=True)
class KeyedEvents:
    """The program, its input of one small file for each micro-batch, and its results.

    Parameters
    ----------
    directory : Path
        Of program, input and output.
    files : int
        How many micro-batches there are.
    """

    directory: Path
    files: int = 24
    events_per_file: int = 40

    @property
    def program(self) -> Path:
        return self.directory / "keyed_events.py"

    @property
    def output(self) -> Path:
        return self.directory / "output"

    def write(self) -> None:
        """Write the program and its input."""
        inputs = self.directory / "events"
        inputs.mkdir(parents=True)
        self.program.write_text(
            _PROGRAM.format(
                output=str(self.output),
                events=str(inputs),
                timer_ms=TIMER_MS,
                disorder_ms=DISORDER_MS,
                gap_ms=GAP_MS,
            )
        )
        events, size = self.events(), self.events_per_file
        start_s = int(time.time()) - self.files
        for number in range(self.files):
            path = inputs / f"{number:03}.csv"
            lines = events[number * size : (number + 1) * size]
            path.write_text("".join(f"{key},{at},{n}\n" for key, at, n in lines))
            # Spark reads files in the order of their age
            os.utime(path, (start_s + number, start_s + number))

    def events(self) -> list[Event]:
        """All events, by file; each has a number of its own, above 0."""
        chosen = random.Random(1)
        return [
            (chosen.randrange(KEYS), number * _STEP_MS + chosen.randrange(DISORDER_MS), number + 1)
            for number in range(self.files * self.events_per_file)
        ]

    def expected(self) -> dict[str, Counter[Result]]:
        """Results by sink; of a total what it has more than the one before."""
        totals: Counter[Result] = Counter()
        timers: Counter[Result] = Counter()
        sessions: Counter[Result] = Counter()
        by_key: dict[int, list[Event]] = defaultdict(list)
        for event in self.events():
            by_key[event[0]].append(event)
        for key, events in by_key.items():
            totals.update(events)
            for due in {at + TIMER_MS for _, at, _ in events}:
                timers[key, due, sum(at <= due for _, at, _ in events)] += 1
            for session in _sessions(events):
                sessions[key, session[0][1], sum(n for _, _, n in session)] += 1
        return {"totals": totals, "timers": timers, "sessions": sessions}

    def results(self) -> dict[str, Counter[Result]]:
        """What the program wrote, by sink, in the form of :meth:`expected`."""
        found = {name: _rows(self.output / name) for name in ("totals", "timers", "sessions")}
        return {**found, "totals": _steps(found["totals"])}

    def has_results_of_all_kinds(self) -> bool:
        """Whether timers and sessions have fired already, as they must before the end of input."""
        return all(self.results().values())

    def assert_each_result_once(self) -> None:
        """Compare record by record; what is missing, doubled or wrong is named."""
        expected, found = self.expected(), self.results()
        for name, wanted in expected.items():
            assert found[name] == wanted, (
                f"{name}: missing {sorted((wanted - found[name]).elements())[:5]}, "
                f"too many {sorted((found[name] - wanted).elements())[:5]}"
            )


def _steps(totals: Counter[Result]) -> Counter[Result]:
    """Key, time, and by how much the total of the key grew."""
    found: Counter[Result] = Counter()
    before: dict[int, int] = defaultdict(int)
    for key, at, total in sorted(totals.elements(), key=lambda row: row[2]):
        found[key, at, total - before[key]] += 1
        before[key] = total
    return found


def _sessions(events: list[Event]) -> list[list[Event]]:
    sessions: list[list[Event]] = []
    for event in sorted(events, key=lambda event: event[1]):
        # windows that touch are one, as in Flink
        if not sessions or event[1] > sessions[-1][-1][1] + GAP_MS:
            sessions.append([])
        sessions[-1].append(event)
    return sessions


def _rows(directory: Path) -> Counter[Result]:
    if not directory.exists():
        return Counter()
    rows = ds.dataset(directory, format="parquet").to_table().to_pylist()
    return Counter((row["key"], row["at"], row["value"]) for row in rows)

"""What was emitted stays as it was when functions change the object afterwards."""

from __future__ import annotations

from tests.spark.run.programs_in_memory import run

_EVENTS = "s = env.from_collection([{'k': 'a', 'n': 1}, {'k': 'a', 'n': 2}, {'k': 'a', 'n': 3}])\n"


def test_a_value_of_state() -> None:
    program = _EVENTS + """
class Totals(KeyedProcessFunction):
    def open(self, ctx):
        self.totals = ctx.get_state(ValueStateDescriptor("totals", Types.PICKLED_BYTE_ARRAY()))
    def process_element(self, value, ctx):
        totals = self.totals.value() or {"sum": 0}
        totals["sum"] += value["n"]
        self.totals.update(totals)
        ctx.timer_service().register_event_time_timer(value["n"])
        yield totals
    def on_timer(self, timestamp, ctx):
        totals = self.totals.value()
        totals["sum"] += 10
        self.totals.update(totals)
        yield totals
s.key_by(lambda d: d["k"]).process(Totals()).print()
"""
    assert run(program) == [[f"{{'sum': {total}}}" for total in (1, 3, 6, 16, 26, 36)]]


def test_what_a_reduce_changes_in_place() -> None:
    program = _EVENTS + """
def add(total, value):
    total["n"] += value["n"]
    return total
s.key_by(lambda d: d["k"]).reduce(add).map(lambda d: d["n"]).print()
"""
    assert run(program) == [["1", "3", "6"]]


def test_a_row_that_is_filled_again() -> None:
    program = _EVENTS + """
class Same(FlatMapFunction):
    row = Row(0)
    def flat_map(self, value):
        for sign in (1, -1):
            self.row[0] = sign * value["n"]
            yield self.row
s.flat_map(Same(), Types.ROW([Types.INT()])).print()
"""
    assert run(program) == [[f"+I[{number}]" for number in (1, -1, 2, -2, 3, -3)]]


def test_elements_of_windows_and_side_outputs() -> None:
    program = _EVENTS + """
tag = OutputTag("late", Types.PICKLED_BYTE_ARRAY())
class Sum(ProcessWindowFunction):
    found = []
    def process(self, key, context, elements):
        for element in elements:
            self.found.append(element["n"])
            yield tag, self.found
            yield self.found
windows = s.key_by(lambda d: d["k"]).count_window(1).process(Sum())
windows.print()
windows.get_side_output(tag).print()
"""
    assert run(program) == [["[1]", "[1, 2]", "[1, 2, 3]"]] * 2


def test_the_other_ways_of_a_stream() -> None:
    program = _EVENTS + """
def spoil(value):
    value["n"] = 0
    return value
s.map(spoil).map(lambda d: d["n"]).print()
s.map(lambda d: d["n"]).print()
same = s.map(lambda d: d)
same.map(spoil).map(lambda d: d["n"]).print()
same.map(lambda d: d["n"]).print()
"""
    assert run(program) == [["0", "0", "0"], ["1", "2", "3"], ["0", "0", "0"], ["1", "2", "3"]]

"""The counter of counter.py for Bytewax."""

from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.files import DirSource
from bytewax.connectors.stdio import StdOutSink
from bytewax.dataflow import Dataflow


def parse(line):
    key, time_ms, amount = line.split(",")
    return int(key), int(time_ms), int(amount)


def count(before, event):
    after = (before or 0) + 1
    return after, (event[0], after)


def flow(directory):
    dataflow = Dataflow("counter")
    lines = op.input("lines", dataflow, DirSource(Path(directory), glob_pat="*.txt"))
    events = op.map("parse", lines, parse)
    keyed = op.key_on("key", events, lambda event: str(event[0]))
    counted = op.stateful_map("count", keyed, count)
    shown = op.filter("shown", counted, lambda result: result[1][0] == 0)
    op.output("print", op.map("text", shown, lambda result: str(result[1])), StdOutSink())
    return dataflow

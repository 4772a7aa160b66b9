"""Orders and payments of one id meet in a KeyedCoProcessFunction, which keeps whichever came first."""

import os
import sys

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.state import ValueStateDescriptor

EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
PAID = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


def parse(line):
    key, time_ms, amount = line.split(",")
    return int(key), int(time_ms), int(amount)


class Meet(KeyedCoProcessFunction):
    def open(self, runtime_context):
        # a type of its own: PyFlink cannot pickle one that the program has used
        kept = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
        self.order = runtime_context.get_state(ValueStateDescriptor("order", kept))
        self.payment = runtime_context.get_state(ValueStateDescriptor("payment", kept))

    def process_element1(self, value, ctx):
        payment = self.payment.value()
        if payment is None:
            self.order.update(value)
        else:
            self.payment.clear()
            yield value[0], value[2], payment[2]

    def process_element2(self, value, ctx):
        order = self.order.value()
        if order is None:
            self.payment.update(value)
        else:
            self.order.clear()
            yield value[0], order[2], value[2]


def main(directory, mode):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)

    def events(name):
        path = os.path.join(directory, name)
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), name).map(parse, EVENT)

    (
        events("orders")
        .connect(events("payments"))
        .key_by(lambda order: order[0], lambda payment: payment[0], Types.LONG())
        .process(Meet(), PAID)
        .filter(lambda paid: paid[0] % 1000 == 0)
        .print()
    )
    env.execute("join")


if __name__ == "__main__":
    main(*sys.argv[1:])

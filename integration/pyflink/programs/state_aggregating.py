"""AggregatingState: an accumulator of its own type, the result of get() made from it each time."""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import AggregatingStateDescriptor


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Averages(KeyedProcessFunction):
    def open(self, runtime_context):
        self._average = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("average", Average(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx):
        key, number = value
        before = self._average.get()
        if number is None:
            self._average.clear()
        else:
            self._average.add(number)
        yield f"{key},{before} {self._average.get()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", 1), ("a", 2), ("b", 10), ("a", 6), ("a", None), ("a", 5), ("b", None), ("b", None)]
    env.from_collection(events).key_by(lambda e: e[0]).process(Averages()).print()
    env.execute()


if __name__ == "__main__":
    main()

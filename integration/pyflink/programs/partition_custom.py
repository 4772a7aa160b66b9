"""partition_custom by a function and by a class: which subtask handles an element is the program's own
decision.
"""

# compare: sorted
# subtasks: kept

from pyflink.common import Types
from pyflink.datastream import MapFunction, Partitioner, StreamExecutionEnvironment


class Reverse(Partitioner):
    def open(self, runtime_context):
        self._opened = True

    def partition(self, key, num_partitions):
        return num_partitions - 1 - key % num_partitions if self._opened else 0


class Subtask(MapFunction):
    def open(self, runtime_context):
        self._index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return f"{value} in subtask {self._index}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection([(n, f"n{n}") for n in range(7)], Types.ROW([Types.INT(), Types.STRING()]))
    numbers.partition_custom(lambda key, count: key % count, lambda row: row[0]).map(
        Subtask(), Types.STRING()
    ).print("lambda")
    numbers.partition_custom(Reverse(), lambda row: row[0]).map(Subtask(), Types.STRING()).print("class")
    env.execute()


if __name__ == "__main__":
    main()

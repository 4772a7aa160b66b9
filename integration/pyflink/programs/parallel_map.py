"""Two subtasks share the elements; their numbers are 0 and 1 and every element is handled once."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import MapFunction, StreamExecutionEnvironment


class Subtask(MapFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_number_of_parallel_subtasks()
        self._valid = 0 <= runtime_context.get_index_of_this_subtask() < self._count

    def map(self, value):
        return f"{value} in one of {self._count}: {self._valid}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_collection(list(range(10)), type_info=Types.INT()).map(Subtask(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

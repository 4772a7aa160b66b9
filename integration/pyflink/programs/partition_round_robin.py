"""rebalance after a source of one subtask: each of the two subtasks gets every second element, in order."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Subtask(ProcessFunction):
    def open(self, runtime_context):
        self._seen = 0

    def process_element(self, value, ctx):
        self._seen += 1
        # the number of an element in its subtask, the same whichever subtask is the first
        yield f"{value} is number {self._seen}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection(list(range(8)), type_info=Types.INT())
    numbers.rebalance().process(Subtask(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()

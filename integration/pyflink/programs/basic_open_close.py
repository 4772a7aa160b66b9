"""open() comes before the first element, with the runtime context; close() comes before execute() returns."""

# compare: exact
# differs: close() runs when the worker ends, which is after the job's output.

import os
import tempfile

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Counting(MapFunction):
    def __init__(self, path):
        self._path = path
        self._prefix = None
        self._seen = 0

    def open(self, runtime_context: RuntimeContext):
        self._prefix = "subtask %d of %d, attempt %d" % (
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_attempt_number(),
        )

    def map(self, value):
        self._seen += 1
        return f"{self._prefix}: {value} is number {self._seen}"

    def close(self):
        with open(self._path, "a") as file:
            file.write(f"closed after {self._seen}\n")


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    handle, path = tempfile.mkstemp()
    os.close(handle)
    env.from_collection(["a", "b", "c"], type_info=Types.STRING()).map(Counting(path), Types.STRING()).print()
    env.execute()
    with open(path) as file:
        print(file.read(), end="")
    os.unlink(path)


if __name__ == "__main__":
    main()

"""With more subtasks a print sink begins lines with "label:subtask> "."""

# compare: sorted
# run: drill
# subtasks: kept

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection([1, 2], type_info=Types.INT())
    # everything goes to both subtasks, so nothing depends on how elements are distributed
    copies = numbers.broadcast().map(lambda n: n * 10, Types.INT())
    copies.print("copy")
    copies.print()
    env.execute()


if __name__ == "__main__":
    main()

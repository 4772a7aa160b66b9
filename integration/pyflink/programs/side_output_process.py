"""Side outputs of a process function: one tag with a type, one without; the main output goes on."""

# compare: sorted
# run: drill

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

NEGATIVE = OutputTag("negative", Types.INT())
ZERO = OutputTag("zero")
DETAILS = OutputTag("details", Types.ROW_NAMED(["n", "text"], [Types.INT(), Types.STRING()]))


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value < 0:
            yield NEGATIVE, value
        elif value == 0:
            yield ZERO, {"zero": value}
        else:
            yield value
        if value % 2 == 0:
            yield DETAILS, Row(value, f"even {value}")


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([3, -1, 0, 4, -2], type_info=Types.INT())
    main_output = numbers.process(Split(), Types.INT())
    main_output.print("main")
    main_output.get_side_output(NEGATIVE).map(lambda n: -n, Types.INT()).print("negative")
    main_output.get_side_output(ZERO).print("zero")
    main_output.get_side_output(DETAILS).print("details")
    env.execute()


if __name__ == "__main__":
    main()

"""A side output whose main output nobody reads, a tag that nothing is emitted to, and one read twice."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

USED = OutputTag("used", Types.STRING())
UNUSED = OutputTag("unused", Types.STRING())


class Aside(ProcessFunction):
    def process_element(self, value, ctx):
        yield USED, f"aside {value}"
        yield value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    results = env.from_collection([1, 2]).process(Aside())
    results.get_side_output(USED).print("first")
    # a tag is known by its id
    results.get_side_output(OutputTag("used", Types.STRING())).map(lambda v: v.upper(), Types.STRING()).print(
        "second"
    )
    results.get_side_output(UNUSED).print("unused")
    env.execute()


if __name__ == "__main__":
    main()

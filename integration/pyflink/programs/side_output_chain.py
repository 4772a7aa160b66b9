"""Side outputs of two operators with tags of one id are two streams; a tag's tuple is no tuple of the main
output.
"""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

TAG = OutputTag("odd", Types.INT())


class Odd(ProcessFunction):
    def __init__(self, divisor):
        self._divisor = divisor

    def process_element(self, value, ctx):
        if value % self._divisor == 1:
            yield TAG, value
        else:
            yield value


class Pairs(ProcessFunction):
    def process_element(self, value, ctx):
        yield "odd", value  # begins with the id of the tag, not with the tag


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    first = env.from_collection(list(range(12)), type_info=Types.INT()).process(Odd(2), Types.INT())
    second = first.process(Odd(3), Types.INT())
    first.get_side_output(TAG).print("first")
    second.get_side_output(TAG).print("second")
    second.process(Pairs(), Types.TUPLE([Types.STRING(), Types.INT()])).print("main")
    env.execute()


if __name__ == "__main__":
    main()

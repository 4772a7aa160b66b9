"""A ProcessFunction without keys: the earliest time as timestamp without an assigner, any number of results,
nothing for None.
"""

# compare: exact
# run: drill

from pyflink.common import Types
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment


class Results(ProcessFunction):
    def process_element(self, value, ctx):
        if value == 0:
            return None
        if value == 1:
            return [f"one {ctx.timestamp()}"]
        if value == 2:
            return iter(["two", "two again"])
        return (f"{value}-{number}" for number in range(value))


class Watermark(ProcessFunction):
    def process_element(self, value, ctx):
        service = ctx.timer_service()
        yield value, service.current_watermark(), service.current_processing_time() > 1_600_000_000_000


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([0, 1, 2, 3], type_info=Types.INT())
    numbers.process(Results(), Types.STRING()).print()
    env.execute()
    # nobody assigns timestamps, so there is no watermark before the end
    numbers.process(Watermark()).print()
    env.execute()


if __name__ == "__main__":
    main()

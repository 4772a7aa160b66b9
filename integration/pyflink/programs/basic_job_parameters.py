"""Global job parameters reach functions; one that is missing has the default."""

# compare: exact

from pyflink.datastream import MapFunction, StreamExecutionEnvironment


class Scale(MapFunction):
    def open(self, runtime_context):
        self._factor = int(runtime_context.get_job_parameter("factor", "1"))
        self._unit = runtime_context.get_job_parameter("unit", "none")

    def map(self, value):
        return f"{value * self._factor} {self._unit}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.get_config().set_global_job_parameters({"factor": "7"})
    env.from_collection([1, 2]).map(Scale()).print()
    env.execute()


if __name__ == "__main__":
    main()

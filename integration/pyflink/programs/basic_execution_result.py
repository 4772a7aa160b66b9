"""execute() returns a result with a job id and a runtime; a client of execute_async can be waited for."""

# compare: exact

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection([1]).print()
    result = env.execute("with a result")
    print(type(result).__name__, len(str(result.get_job_id())), result.get_net_runtime() >= 0)
    print(result.get_all_accumulator_results())
    env.from_collection([2]).print()
    client = env.execute_async("asynchronous")
    done = client.get_job_execution_result().result()
    print(str(done.get_job_id()) == str(client.get_job_id()))


if __name__ == "__main__":
    main()

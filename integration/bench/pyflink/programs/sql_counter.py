"""The counter of counter.py in SQL, without Python; its changelog is thrown away."""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment


def main(directory):
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.execute_sql(
        "CREATE TABLE events (k BIGINT, time_ms BIGINT, amount BIGINT) WITH "
        f"('connector' = 'filesystem', 'path' = '{directory}', 'format' = 'csv')"
    )
    env.execute_sql("CREATE TABLE counts (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')")
    env.execute_sql("INSERT INTO counts SELECT k, COUNT(*) FROM events GROUP BY k").wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

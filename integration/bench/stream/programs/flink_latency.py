"""Records from topic to topic in Flink SQL, as they come.

python flink_latency.py pass|count SERVERS FROM TO JAR BUFFER_TIMEOUT_MS
"""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment


def main(pipeline, servers, topic, out, jar, timeout_ms):
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": "2",
        "pipeline.jars": f"file://{jar}",
        "execution.buffer-timeout.interval": f"{timeout_ms} ms",
        "execution.checkpointing.interval": "120 s",
    }
    for name, value in settings.items():
        env.get_config().set(name, value)
    kafka = f"'properties.bootstrap.servers' = '{servers}', 'topic' = "
    env.execute_sql(
        f"CREATE TABLE sent (k BIGINT, sent_us BIGINT) WITH ('connector' = 'kafka', {kafka} '{topic}', "
        "'scan.startup.mode' = 'earliest-offset', 'format' = 'json')"
    )
    if pipeline == "pass":
        key, connector = "", f"'connector' = 'kafka', {kafka} '{out}', 'format' = 'json'"
        query = "SELECT k, sent_us, CAST(1 AS BIGINT) FROM sent"
    else:
        key = ", PRIMARY KEY (k) NOT ENFORCED"
        formats = "'key.format' = 'json', 'value.format' = 'json'"
        connector = f"'connector' = 'upsert-kafka', {kafka} '{out}', {formats}"
        query = "SELECT k, MAX(sent_us), COUNT(*) FROM sent GROUP BY k"
    env.execute_sql(f"CREATE TABLE found (k BIGINT, sent_us BIGINT, n BIGINT{key}) WITH ({connector})")
    env.execute_sql(f"INSERT INTO found {query}").wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

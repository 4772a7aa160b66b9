"""Bids in Flink SQL, in a MiniCluster of PyFlink's.

python flink_sql.py PIPELINE OUT file|kafka DIRECTORY|SERVERS TOPIC JAR [pandas]
"""

import sys

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, time_ms BIGINT, extra STRING"


def main(pipeline, out, kind, place, topic, jar, function="scalar"):
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("table.local-time-zone", "UTC")
    env.get_config().set("pipeline.object-reuse", "true")
    env.get_config().set("pipeline.jars", f"file://{jar}")
    if kind == "file":
        options = f"'connector' = 'filesystem', 'path' = '{place}'"
    else:
        options = (
            f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{place}', 'topic' = '{topic}', "
            "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"
        )
    timed = ", t AS TO_TIMESTAMP_LTZ(time_ms, 3), WATERMARK FOR t AS t - INTERVAL '10' SECOND"
    columns = BID + (timed if pipeline == "windows" else "")
    env.execute_sql(f"CREATE TABLE bids ({columns}) WITH ({options}, 'format' = 'json')")
    env.execute_sql(
        "CREATE TABLE found (a BIGINT, b BIGINT, c BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')"
    )
    if pipeline == "filter":
        query = "SELECT auction, bidder, price FROM bids WHERE price > 900"
    elif pipeline == "windows":
        query = (
            "SELECT auction, 1000 * UNIX_TIMESTAMP(CAST(window_start AS STRING)), COUNT(*) "
            "FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(t), INTERVAL '10' SECOND)) "
            "GROUP BY auction, window_start, window_end"
        )
    else:
        kind_of = {"func_type": "pandas"} if function == "pandas" else {}
        euros = udf(lambda price: price * 92 // 100, result_type=DataTypes.BIGINT(), **kind_of)
        env.create_temporary_function("euros", euros)
        query = "SELECT * FROM (SELECT auction, bidder, euros(price) AS e FROM bids) WHERE e > 828"
    env.execute_sql(f"INSERT INTO found {query}").wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

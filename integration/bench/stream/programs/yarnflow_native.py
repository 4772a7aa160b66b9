"""Bids on yarnflow: operators with columns, and a function on whole rows.

python -m yarnflow yarnflow_native.py PIPELINE OUT file|kafka DIRECTORY|SERVERS TOPIC
"""

import sys

from yarnflow import api
from yarnflow.api.common import Types
from yarnflow.api.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema

BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, time_ms BIGINT, extra STRING"
EUROS = "auction BIGINT, bidder BIGINT, euros BIGINT"


def source(kind, place, topic):
    if kind == "file":
        return api.FileSource(place, "json", BID)
    names = [field.split()[0] for field in BID.split(", ")]
    types = [Types.STRING() if "STRING" in field else Types.LONG() for field in BID.split(", ")]
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(names, types)).build()
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(place)
        .set_topics(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(schema)
        .build()
    )


def main(pipeline, out, kind, place, topic=""):
    env = api.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    bids = env.from_source(source(kind, place, topic), api.WatermarkStrategy.no_watermarks(), "bids")
    if pipeline == "filter":
        found = bids.filter("price > 900").select("auction", "bidder", "price")
    elif pipeline == "windows":
        times = api.WatermarkStrategy.for_bounded_out_of_orderness("10 seconds")
        found = (
            bids.assign_timestamps_and_watermarks(times.with_timestamp_assigner("timestamp_millis(time_ms)"))
            .key_by("auction")
            .window(api.TumblingEventTimeWindows.of("10 seconds"))
            .aggregate("count(*) AS n")
            .select("auction", "unix_millis(window_start) AS start_ms", "n")
        )
    else:
        found = bids.map(
            lambda bid: api.Row(auction=bid.auction, bidder=bid.bidder, euros=bid.price * 92 // 100), EUROS
        ).filter(lambda row: row.euros > 828)
    found.sink_to(api.FileSink(out, "csv"))
    env.execute("bids")


if __name__ == "__main__":
    main(*sys.argv[1:])

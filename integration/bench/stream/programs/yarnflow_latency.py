"""Records from topic to topic on yarnflow, as they come.

python -m yarnflow yarnflow_latency.py pass|count SERVERS FROM TO real-time|micro-batch
"""

import sys

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Configuration, Types, WatermarkStrategy
from yarnflow.api.datastream.connectors import DeliveryGuarantee
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

SENT = Types.ROW_NAMED(["k", "sent_us"], [Types.LONG(), Types.LONG()])
FOUND = Types.ROW_NAMED(["k", "sent_us", "n"], [Types.LONG()] * 3)


def main(pipeline, servers, topic, out, mode):
    config = Configuration()
    config.set_string("pipeline.execution-mode", mode)
    config.set_string("execution.buffer-timeout.interval", "1 ms")
    config.set_string("execution.checkpointing.interval", "120 s")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(2)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(SENT).build())
        .build()
    )
    sent = env.from_source(source, WatermarkStrategy.no_watermarks(), "sent")
    if pipeline == "pass":
        found = sent.select("k", "sent_us", "1L AS n")
    else:
        found = sent.key_by("k").aggregate("max(sent_us) AS sent_us", "count(*) AS n")
    rows = JsonRowSerializationSchema.builder().with_type_info(FOUND).build()
    record = KafkaRecordSerializationSchema.builder().set_topic(out).set_value_serialization_schema(rows)
    found.sink_to(
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(record.build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )
    env.execute("latency")


if __name__ == "__main__":
    main(*sys.argv[1:])

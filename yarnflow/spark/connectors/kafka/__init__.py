"""Topics of Kafka: read by Spark's connector, written by librdkafka.

Runs in the driver, which knows offsets and begins transactions, and in Python workers, which produce.  Never
decides which offsets a batch has: Spark logs them.
"""

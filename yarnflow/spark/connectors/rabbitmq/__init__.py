"""RabbitMQ: messages of a queue, received in the driver, and messages to a queue, published in workers.

Decides when a message is acknowledged: when the micro-batch that has it is committed, never before.
"""

"""Messages of brokers as elements and back: text, JSON, CSV, Avro.

A block of messages is read at once where its format can be; one by one where something in the block is not
as the format wants it, which finds the message at fault.
"""

"""How a job runs: as a stream or as a batch, by micro-batches or in real time.

Pure; decides by the job's graph alone, on the client.  Never looks at slots or brokers.
"""

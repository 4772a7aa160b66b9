"""From the calls of a program to its job graph: resolve, validate, chain, and see what is read.

Flink counterparts: ``StreamGraphGenerator``, ``StreamingJobGraphGenerator``.
"""

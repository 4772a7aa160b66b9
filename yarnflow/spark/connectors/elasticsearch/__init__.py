"""Elasticsearch and OpenSearch: documents in bulk requests, by workers.

Every document has an id that is the same when its micro-batch is done again, so it replaces itself.
"""

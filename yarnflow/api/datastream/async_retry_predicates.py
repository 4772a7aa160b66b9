"""What is tried again.  PyFlink: ``pyflink.datastream.async_retry_predicates``."""

from yarnflow.operators.functions.asynchronous import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]

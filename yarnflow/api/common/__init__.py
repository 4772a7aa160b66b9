"""What all programs use: types, rows, times, configuration, jobs.  PyFlink: ``pyflink.common``."""

from yarnflow.api.common.completable_future import CompletableFuture
from yarnflow.api.common.config_options import ConfigOption, ConfigOptions
from yarnflow.api.common.configuration import Configuration
from yarnflow.api.common.execution_config import ExecutionConfig
from yarnflow.api.common.input_dependency_constraint import InputDependencyConstraint
from yarnflow.api.common.job_client import JobClient
from yarnflow.api.common.job_execution_result import JobExecutionResult
from yarnflow.api.common.job_id import JobID
from yarnflow.api.common.job_status import JobStatus
from yarnflow.api.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from yarnflow.api.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from yarnflow.api.common.serializer import TypeSerializer
from yarnflow.api.common.time import Duration, Instant, Time
from yarnflow.api.common.typeinfo import TypeInformation, Types
from yarnflow.api.common.types import Row, RowKind
from yarnflow.api.common.watermark_strategy import AssignerWithPeriodicWatermarksWrapper, WatermarkStrategy
from yarnflow.api.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from yarnflow.api.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
]

"""Files.  PyFlink: ``pyflink.datastream.connectors.file_system``."""

from yarnflow.api.common.io import InputFormat
from yarnflow.api.common.serialization import BulkWriterFactory
from yarnflow.api.datastream.connectors.files.sink import (
    BucketAssigner,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileCompactStrategyBuilder,
    FileSink,
    FileSinkBuilder,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    OutputFileConfigBuilder,
    RollingPolicy,
    StreamingFileSink,
)
from yarnflow.api.datastream.connectors.files.source import (
    BulkFormat,
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "BulkWriterFactory",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactStrategyBuilder",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSinkBuilder",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "InputFormat",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "OutputFileConfigBuilder",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]

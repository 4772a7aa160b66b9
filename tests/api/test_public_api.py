"""What users may import, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

import yarnflow.api

NAMES = """
BatchToken DataGeneratorSource DataStream DataStreamSink Duration EventTimeSessionWindows FileSink FileSource
FilterFunction FlatMapFunction Function JobClient JobExecutionResult JobStatus KeySelector
KeyedStream MapFunction PrintSink ProcessWindowFunction RateSource ReduceFunction Row Sink
SlidingEventTimeWindows SocketSource Source StreamExecutionEnvironment Time TimeWindow
TimestampAssigner TumblingEventTimeWindows WatermarkStrategy WindowAssigner WindowedStream
batch_token close_cluster commit_once
""".split()


def test_public_names() -> None:
    assert yarnflow.api.__all__ == sorted(yarnflow.api.__all__)
    assert set(yarnflow.api.__all__) == set(NAMES)
    assert all(getattr(yarnflow.api, name).__doc__ for name in NAMES)


def test_importing_loads_no_heavy_library() -> None:
    program = (
        "import sys; from yarnflow.api import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.read_text_file('x').map(len).key_by('value').count().print()\n"
        "print({'pandas', 'pyspark', 'pyarrow', 'sqlglot', 'thrift'} & sys.modules.keys())"
    )
    root = str(Path(yarnflow.api.__file__).parents[2])
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"

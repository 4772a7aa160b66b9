"""The programs of the page on sources and sinks that need a server, each with a real one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from integration import rabbitmq, redis
from integration.conftest import ROOT, wait_until
from integration.opensearch import OpenSearch
from integration.rabbitmq import RabbitMq
from integration.redis import Redis
from integration.servers import running
from integration.spark.test_jdbc_sink import attempt as run_attempt
from integration.spark.test_rabbitmq import attempt_of
from yarnflow.api.executor import use_executor
from yarnflow.graph.job_graph import JobGraph
from yarnflow.testing.kept_graph import KeptGraph

PAGE = (ROOT / "docs" / "programs" / "sources-and-sinks.md").read_text(encoding="utf-8")


def graph_of(name: str, password: str, places: Mapping[str, str]) -> JobGraph:
    """The job of the page's program that has a name, at other places than the page's."""
    (source,) = [text for text in re.findall(r"^```py\n(.*?)^```$", PAGE, re.M | re.S) if name in text]
    # whoever keeps the graph has no results
    always = {"from pyflink.": "from yarnflow.api.", "env.execute(": "env.execute_async("}
    for shown, real in {**always, **places}.items():
        assert shown in source
        source = source.replace(shown, real)
    kept = KeptGraph()
    with use_executor(kept):
        exec(compile(source, name, "exec"), {"__name__": "__main__", "password": password})
    return kept.graphs[-1]


def test_rabbitmq(spark: SparkSession, tmp_path: Path) -> None:
    with running(RabbitMq) as server:
        places = {"broker.example.com": "127.0.0.1", "set_port(5672)": f"set_port({server.port})"}
        graph = graph_of("RMQSource", rabbitmq.PASSWORD, places)
        with server.channel() as channel:
            channel.queue_declare("orders", durable=True)
        server.send("orders", ["tea", "cake"], with_ids=True)
        with attempt_of(spark, graph, tmp_path) as found:
            wait_until(lambda: found.ended() or server.messages("loud-orders") == 2, "both messages")
        assert found.failure is None, found.failure
        assert sorted(server.take_all("loud-orders")) == ["CAKE", "TEA"]


def test_redis(spark: SparkSession, tmp_path: Path) -> None:
    with running(Redis) as server:
        places = {"redis.example.com": "127.0.0.1", "6379": str(server.port)}
        run_attempt(spark, graph_of("RedisMapper", redis.PASSWORD, places), tmp_path / "checkpoint")
        with server.client() as client:
            assert client.hgetall("word-counts") == {"TO": "2", "BE": "2", "OR": "1", "NOT": "1"}


def test_elasticsearch(spark: SparkSession, tmp_path: Path) -> None:
    with running(OpenSearch) as server:
        places = {"https://search.example.com:9200": f"http://127.0.0.1:{server.port}"}
        run_attempt(spark, graph_of("ElasticsearchEmitter", "", places), tmp_path / "checkpoint")
        assert server.documents("readings") == {
            "1": {"id": "1", "city": "Rome"}, "2": {"id": "2", "city": "Oslo"}
        }  # fmt: skip

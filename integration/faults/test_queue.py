"""kill -9 of driver, executor and servers while a job counts orders of a queue into Redis, each once.

Publishers give each order a correlation id, so the queue is read exactly once, and Redis is written exactly
once: the counts are those of the orders, whatever is killed.
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from integration import rabbitmq, redis
from integration.conftest import Commands, Started, wait_until
from integration.processes import kill_driver, replace_executor
from integration.rabbitmq import RabbitMq
from integration.redis import Redis
from integration.servers import running
from tests.patience import PATIENCE

ORDERS, ROUND = 2_400, 240
QUEUE = "orders"

PROGRAM = """
import sys
from pyflink.common import SimpleStringSchema, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSource
from yarnflow.api.datastream.connectors.redis import (
    RedisCommand, RedisCommandDescription, RedisConfig, RedisMapper, RedisSink
)

queue_port, queue_password, redis_port, redis_password = sys.argv[1:]


class Orders(RedisMapper):
    def get_command_description(self):
        return RedisCommandDescription(RedisCommand.HINCRBY, "orders")

    def get_key_from_data(self, data):
        return data

    def get_value_from_data(self, data):
        return 1


env = StreamExecutionEnvironment.get_execution_environment()
config = (
    RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(int(queue_port)).set_virtual_host("/")
    .set_user_name("ann").set_password(queue_password).set_prefetch_count(100)
    .set_network_recovery_interval(200).build()
)
orders = env.add_source(RMQSource(config, "orders", True, SimpleStringSchema()))
known = orders.map(lambda order: order, Types.STRING())
known.sink_to(RedisSink(RedisConfig("127.0.0.1", int(redis_port), password=redis_password), Orders(), 5))
env.execute("orders")
"""


@pytest.mark.drill
def test_every_order_is_counted_once(yarnflow: Commands, tmp_path: Path) -> None:
    with running(RabbitMq) as broker, running(Redis) as store:
        broker.new_queue(QUEUE)
        program = tmp_path / "orders.py"
        program.write_text(PROGRAM)
        started = yarnflow.start(
            *("submit", "-p", "2", "-Dexecution.micro-batch.interval=500 ms"),
            *(program, str(broker.port), rabbitmq.PASSWORD, str(store.port), redis.PASSWORD),
        )
        publisher = Publisher(broker, store, started)
        publisher.next_round()

        replace_executor(yarnflow.mark)
        publisher.next_round()

        for _ in range(2):
            # in the middle of what it has been sent
            publisher.send()
            publisher.await_counted(publisher.sent - ROUND + 1)
            kill_driver(yarnflow.mark)
            publisher.next_round()

        publisher.send()
        broker.kill()
        broker.start()
        publisher.next_round()

        store.kill()
        store.start()
        while publisher.sent < ORDERS:
            publisher.next_round()
        publisher.await_counted(publisher.sent)
        counts = publisher.counts()
        started.process.send_signal(signal.SIGINT)
        started.process.wait(PATIENCE.process_s)
        left = broker.take_all(QUEUE)
    assert counts == Counter(f"o{n}" for n in range(publisher.sent)), "each once"
    assert not left, "all were acknowledged"


class Publisher:
    """Sends orders and sees what was counted."""

    def __init__(self, broker: RabbitMq, store: Redis, started: Started) -> None:
        self._broker = broker
        self._store = store
        self._started = started
        self.sent = 0

    def send(self) -> None:
        """Some more orders."""
        self._broker.send(QUEUE, (f"o{self.sent + n}" for n in range(ROUND)), with_ids=True)
        self.sent += ROUND

    def next_round(self) -> None:
        """Send some more and wait until most of them were counted: a job that is in the middle of it."""
        self.send()
        self.await_counted(self.sent - ROUND // 2)

    def await_counted(self, count: int) -> None:
        def counted() -> bool:
            assert self._started.process.poll() is None, self._started.stderr
            with self._store.client() as client:
                return bool(client.hlen("orders") >= count)

        wait_until(counted, f"{count} orders")

    def counts(self) -> Counter[str]:
        with self._store.client() as client:
            return Counter({order: int(count) for order, count in client.hgetall("orders").items()})

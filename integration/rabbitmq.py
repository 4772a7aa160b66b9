"""A real RabbitMQ for tests."""

from __future__ import annotations

import shutil
import signal
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pika
import pika.exceptions

from integration.servers import Server, free_ports, program
from yarnflow.api.datastream.connectors.rabbitmq import RMQConnectionConfig

USER: Final = "ann"
PASSWORD: Final = "it's a test?"
#: where Debian keeps the programs that do not ask for root
_PROGRAMS: Final = Path("/usr/lib/rabbitmq/bin")


class RabbitMq(Server):
    """RabbitMQ with one user."""

    # its Erlang port mapper would stay
    quick_stop = signal.SIGKILL

    def _create(self) -> None:
        config = self.directory / "rabbitmq.conf"
        config.write_text(f"default_user = {USER}\ndefault_pass = {PASSWORD}\nloopback_users = none\n")
        self._ports = tuple(free_ports(2))
        #: that a death may take along
        self._queues: list[str] = []
        if self._owner is not None:
            shutil.chown(config, self._owner)

    def _environment(self) -> dict[str, str]:
        mapper, distribution = self._ports
        return {
            "HOME": str(self.directory),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(mapper),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "plugins"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": str(self.directory),
            "RABBITMQ_MNESIA_BASE": str(self.directory),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
        }

    def _command(self) -> list[str]:
        return ["sh", "-c", f"{program('epmd')} -address 127.0.0.1 & exec {_program('rabbitmq-server')}"]

    def _ready(self) -> bool:
        try:
            with self.channel():
                return True
        except (pika.exceptions.AMQPError, OSError):
            return False

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel of the user."""
        parameters = pika.ConnectionParameters(
            "127.0.0.1", self.port, "/", pika.PlainCredentials(USER, PASSWORD), connection_attempts=1
        )
        connection = pika.BlockingConnection(parameters)
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def config(self, **settings: Any) -> RMQConnectionConfig:
        """For programs; settings as the builder calls them, without ``set_``."""
        builder = RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(self.port)
        builder.set_virtual_host("/").set_user_name(USER).set_password(PASSWORD)
        builder.set_network_recovery_interval(200)
        for name, value in settings.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()

    def new_queue(self, name: str = "") -> str:
        """A durable queue, which outlives :meth:`kill`; without a name, it is given one."""
        name = name or f"q-{uuid.uuid4().hex[:8]}"
        with self.channel() as channel:
            channel.queue_declare(name, durable=True)
        self._queues.append(name)
        return name

    def kill(self) -> None:
        """As of any server, once it has written down which queues it has."""
        if self._queues:
            self.write_down()
        super().kill()

    def write_down(self) -> None:
        """Have the broker write down which queues it has: one that is only in its log may be lost."""
        self._run_program(_program("rabbitmqctl"), "eval", "mnesia:dump_log().")
        self._queues.clear()

    def send(self, queue: str, bodies: Iterable[str], with_ids: bool = False) -> None:
        """Publish persistent messages; with ids, the body is the correlation id as well."""
        with self.channel() as channel:
            channel.tx_select()
            for body in bodies:
                properties = pika.BasicProperties(
                    delivery_mode=2, correlation_id=f"id-{body}" if with_ids else None
                )
                channel.basic_publish("", queue, body.encode(), properties)
            channel.tx_commit()

    def messages(self, queue: str) -> int:
        """Messages that nobody has yet; 0 if there is no such queue."""
        with self.channel() as channel:
            try:
                return int(channel.queue_declare(queue, passive=True).method.message_count)
            except pika.exceptions.ChannelClosedByBroker:
                return 0

    def take_all(self, queue: str) -> list[str]:
        """Read and acknowledge what is there."""
        found: list[str] = []
        with self.channel() as channel:
            while True:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return found
                found.append(body.decode())


def _program(name: str) -> str:
    # the one on PATH wants to be root
    return str(_PROGRAMS / name) if _PROGRAMS.exists() else program(name)

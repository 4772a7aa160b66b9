"""A real Redis for tests."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from integration.servers import Server, program
from yarnflow.api.datastream.connectors.redis import RedisConfig

PASSWORD: Final = "it's a test?"


class Redis(Server):
    """Redis with a password; every command is on disk when it is answered."""

    def _create(self) -> None:
        """It makes its files itself."""

    def _command(self) -> list[str]:
        return [
            *(program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1"),
            *("--dir", str(self.directory), "--requirepass", PASSWORD),
            *("--appendonly", "yes", "--appendfsync", "always"),
        ]

    def client(self) -> Any:
        """A connection; the caller closes it."""
        return import_module("redis").Redis("127.0.0.1", self.port, password=PASSWORD, decode_responses=True)

    def _ready(self) -> bool:
        errors = import_module("redis.exceptions")
        with self.client() as client:
            try:
                return bool(client.ping())
            except (errors.BusyLoadingError, errors.ConnectionError):
                return False

    def config(self, **settings: Any) -> RedisConfig:
        """For programs."""
        return RedisConfig("127.0.0.1", self.port, **{"password": PASSWORD, **settings})

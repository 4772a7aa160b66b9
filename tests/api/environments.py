"""Environments and what is set in them."""

from __future__ import annotations

from typing import Any

from yarnflow.api import StreamExecutionEnvironment


def environment(configuration: Any = None) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def options(env: StreamExecutionEnvironment) -> dict[str, str]:
    return dict(env._settings.values)

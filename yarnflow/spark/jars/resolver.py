"""Packages resolved where there is no driver: by a JVM of its own, which ends at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from yarnflow.core.jars.request import JarRequest
from yarnflow.spark.jars import ivy
from yarnflow.spark.jars.maven_settings import resolver_environment
from yarnflow.spark.launch.class_data_sharing import Role, installed_flags
from yarnflow.spark.launch.java import find_java
from yarnflow.spark.launch.jvm import DRIVER_JVM_FLAGS, GatewayJvm, gateway_command

_HEAP_MIB: Final = 256


def resolve_apart(
    request: JarRequest,
    ivy_directory: Path,
    wrap: Callable[[list[str]], list[str]],
    properties: tuple[str, ...] = (),
) -> list[Path]:
    """:func:`yarnflow.spark.jars.ivy.resolve` in a new JVM.

    Parameters
    ----------
    wrap : callable
        Ties the JVM's life to this process.
    properties : tuple of str
        ``-Dname=value`` for the JVM, such as a proxy's.

    Raises
    ------
    JarError
        See there.
    JavaUnavailable
        There is no Java.
    """
    java = find_java()
    flags = [*DRIVER_JVM_FLAGS, *installed_flags(Role.DRIVER, java), *properties]
    jvm = GatewayJvm.launch(
        gateway_command(java, _HEAP_MIB, flags),
        host="127.0.0.1",
        log_file=ivy_directory / "resolver.log",
        wrap=wrap,
        environ=resolver_environment(os.environ),
    )
    try:
        gateway = jvm.connect()
        try:
            return ivy.resolve(gateway, request, ivy_directory)
        finally:
            gateway.shutdown()
    finally:
        jvm.stop()

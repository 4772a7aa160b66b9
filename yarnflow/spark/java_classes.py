"""Classes of the driver's JVM, by their full names.

``jvm.org.apache.hadoop.fs.Path`` asks the JVM five questions, one for each part of the name, and to say that
``org`` is no class it looks into every jar of the class path: 3.3 ms where the class itself needs 0.2 ms.
"""

from __future__ import annotations

from typing import Any


def java_class(gateway: Any, name: str) -> Any:
    """A class that the JVM is asked for when it is used first, and for nothing else.

    Parameters
    ----------
    gateway : JavaGateway
    name : str
        With its packages; of a class within another one as in ``java.util.Map$Entry``.
    """
    # not before there is a JVM: a driver is started sooner without
    from py4j.java_gateway import JavaClass

    return JavaClass(name, gateway._gateway_client)


def is_instance(gateway: Any, java_object: Any, name: str) -> bool:
    """Whether an object of the JVM is of a class; as py4j's ``is_instance_of``, in one question."""
    return bool(java_class(gateway, "py4j.reflection.TypeUtil").isInstanceOf(name, java_object))

"""What each service offers, read once from the gateway protocols of ``core.ports``.

Signature and type hints of a protocol's method give the generated argument and result classes
and all converters, for the server and for the client (:mod:`~yarnflow.rpc.gateways`); nothing
here is written per method.  Decides which methods may be tried
again, which run on the I/O thread and which are long polls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import MappingProxyType, ModuleType, NoneType
from typing import Any, Final, Generic, TypeVar, get_type_hints

from yarnflow.core import ports
from yarnflow.rpc._gen.dispatcher import Dispatcher
from yarnflow.rpc._gen.driver import Driver
from yarnflow.rpc._gen.jobmaster import JobMaster
from yarnflow.rpc._gen.master import Master
from yarnflow.rpc._gen.resourcemanager import ResourceManager
from yarnflow.rpc._gen.taskexecutor import TaskExecutor
from yarnflow.rpc.codec import Convert, camel, converter

G = TypeVar("G")


@dataclass(frozen=True)  # a generic class with slots cannot be made with its parameter
class Endpoint(Generic[G]):
    """One service: its name on the wire, its protocol ``G`` and its generated code."""

    name: str
    protocol: type
    generated: ModuleType


DISPATCHER: Final = Endpoint[ports.DispatcherGateway]("Dispatcher", ports.DispatcherGateway, Dispatcher)
RESOURCE_MANAGER: Final = Endpoint[ports.ResourceManagerGateway](
    "ResourceManager", ports.ResourceManagerGateway, ResourceManager
)
JOB_MASTER: Final = Endpoint[ports.JobMasterGateway]("JobMaster", ports.JobMasterGateway, JobMaster)
TASK_EXECUTOR: Final = Endpoint[ports.TaskExecutorGateway](
    "TaskExecutor", ports.TaskExecutorGateway, TaskExecutor
)
DRIVER: Final = Endpoint[ports.DriverGateway]("Driver", ports.DriverGateway, Driver)
MASTER: Final = Endpoint[ports.MasterGateway]("Master", ports.MasterGateway, Master)

#: by name
ENDPOINTS: Final[Mapping[str, Endpoint[Any]]] = {
    endpoint.name: endpoint
    for endpoint in (DISPATCHER, RESOURCE_MANAGER, JOB_MASTER, TASK_EXECUTOR, DRIVER, MASTER)
}

#: may not be sent twice when the connection broke in between
_NOT_IDEMPOTENT: Final = frozenset(
    {
        (DISPATCHER.name, "shut_down_cluster"),
        (DISPATCHER.name, "inject_fault"),
        (TASK_EXECUTOR.name, "halt"),
        (DRIVER.name, "halt"),
    }
)
_JOB_ID: Final = "job_id"
#: run on the I/O thread: their handlers only post to a mailbox
QUICK: Final = frozenset({"heartbeat", "report", "ping"})
#: answer late on purpose; their ``timeout_ms`` argument comes on top of the call's own
_LONG_POLLS: Final = frozenset({"await_job_change", "await_checkpoint", "await_collected"})


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """One method of one service."""

    service: str
    #: as in ``core.ports``
    name: str
    #: the protocol's
    signature: inspect.Signature
    #: as in the IDL
    wire_name: str
    args_class: Any
    result_class: Any
    #: one per argument after the context
    arg_names: tuple[str, ...]
    args_to_thrift: tuple[Convert | None, ...]
    args_from_thrift: tuple[Convert | None, ...]
    returns_nothing: bool
    result_to_thrift: Convert | None
    result_from_thrift: Convert | None
    idempotent: bool
    #: id of the job that a call with these arguments is about; empty = none
    job_of: Callable[[Sequence[Any]], str]
    #: position of the poll's own ``timeout_ms`` among the arguments; -1 = no long poll
    poll_timeout_index: int

    @property
    def call_name(self) -> str:
        """``Service:method`` as Thrift's multiplexed protocol sends it."""
        return f"{self.service}:{self.wire_name}"

    @property
    def long_poll(self) -> bool:
        """The answer may come late on purpose."""
        return self.poll_timeout_index >= 0


@cache
def methods_of(service: str) -> Mapping[str, MethodSpec]:
    """Methods of a service, by their name in ``core.ports``."""
    endpoint = ENDPOINTS[service]
    found = {
        name: _describe(service, name, function, endpoint.generated)
        for name, function in vars(endpoint.protocol).items()
        if not name.startswith("_") and inspect.isfunction(function)
    }
    return MappingProxyType(found)


def _describe(service: str, name: str, function: Callable[..., Any], module: ModuleType) -> MethodSpec:
    hints = get_type_hints(function)
    signature = inspect.signature(function)
    arg_names = tuple(p for p in signature.parameters if p != "self")
    arguments = [converter(hints[arg]) for arg in arg_names]
    wire_name = camel(name)
    nothing = hints["return"] is NoneType
    result = converter(hints["return"])
    return MethodSpec(
        service=service,
        name=name,
        signature=signature,
        wire_name=wire_name,
        args_class=getattr(module, f"{wire_name}_args"),
        result_class=getattr(module, f"{wire_name}_result"),
        arg_names=tuple(camel(arg) for arg in arg_names),
        args_to_thrift=tuple(c.to_thrift for c in arguments),
        args_from_thrift=tuple(c.from_thrift for c in arguments),
        returns_nothing=nothing,
        result_to_thrift=result.to_thrift,
        result_from_thrift=result.from_thrift,
        idempotent=(service, name) not in _NOT_IDEMPOTENT,
        job_of=_job_finder([(name, hints[name]) for name in arg_names]),
        poll_timeout_index=arg_names.index("timeout_ms") if name in _LONG_POLLS else -1,
    )


def _job_finder(arguments: Sequence[tuple[str, Any]]) -> Callable[[Sequence[Any]], str]:
    """Finds the job's id in the arguments of a method: one of them, or a field of a message."""
    for index, (name, hint) in enumerate(arguments):
        if name == _JOB_ID:
            return lambda values, index=index: str(values[index])  # type: ignore[misc]
        if is_dataclass(hint) and any(field.name == _JOB_ID for field in fields(hint)):
            return lambda values, index=index: str(values[index].job_id)  # type: ignore[misc]
    return lambda _values: ""


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """A method with the implementation that serves it."""

    spec: MethodSpec
    handler: Callable[..., Any]
    #: runs on the I/O thread
    quick: bool


class Service:
    """A gateway implementation as the server sees it.

    Parameters
    ----------
    endpoint : Endpoint
        Which service it is.
    implementation : G
        Has the methods of the service's protocol in ``core.ports``.
    quick : frozenset of str
        Methods that run on the I/O thread.  They must only post to a mailbox: while one runs,
        no other call of any client is read.
    """

    def __init__(self, endpoint: Endpoint[G], implementation: G, quick: frozenset[str] = QUICK) -> None:
        specs = methods_of(endpoint.name)
        missing = [method for method in specs if not callable(getattr(implementation, method, None))]
        if missing:
            raise TypeError(
                f"{type(implementation).__name__} lacks {', '.join(missing)} of service {endpoint.name}"
            )
        self.methods: Sequence[BoundMethod] = tuple(
            BoundMethod(spec, getattr(implementation, method), method in quick)
            for method, spec in specs.items()
        )

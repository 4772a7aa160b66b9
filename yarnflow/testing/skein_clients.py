"""skein's two clients without a JVM: one that submits, and one of an application's own containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


class FakeSkeinClient:
    """``skein.Client`` as far as it is used.

    Attributes
    ----------
    submitted : list
        Specifications, also of submits that failed.
    error : BaseException, optional
        Raised by :meth:`submit` while it is set.
    on_submit : callable
        Called before that.
    """

    def __init__(self) -> None:
        self.submitted: list[Any] = []
        self.error: BaseException | None = None
        self.on_submit: Callable[[], None] = lambda: None

    def submit(self, spec: Any) -> str:
        """Answer ``application_1_0001``."""
        self.on_submit()
        self.submitted.append(spec)
        if self.error is not None:
            raise self.error
        return "application_1_0001"

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class FakeSkeinContainer:
    """``skein.model.Container`` as far as it is used."""

    instance: int
    state: str = "REQUESTED"
    exit_message: str = ""
    yarn_container_id: str = ""
    yarn_node_http_address: str = ""
    service_name: str = "taskmanager"
    #: what was asked for with it
    env: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """As skein names it."""
        return f"{self.service_name}_{self.instance}"


class _KeyValueStore(dict[str, bytes]):
    def wait(self, key: str) -> bytes:
        return self[key]


class FakeSkeinApplication:
    """``skein.ApplicationClient`` as far as it is used; containers wait until the test grants them.

    Parameters
    ----------
    initial : int
        TaskManagers that were asked for with the application.
    memory_mib : int
        Of each TaskManager.

    Attributes
    ----------
    containers : list of FakeSkeinContainer
        All there ever were.
    kv : dict
        The key-value store.
    calls : list of tuple
        Names and arguments of what was asked for, in order, also of calls that failed.
    before : callable
        Given each call when it has been noted, before it does anything; may raise.
    down : Exception, optional
        Raised by every method while it is set.
    """

    id = "application_1_0001"

    def __init__(self, initial: int = 0, memory_mib: int = 1728) -> None:
        self.containers = [FakeSkeinContainer(number) for number in range(initial)]
        self.memory_mib = memory_mib
        self.kv = _KeyValueStore()
        self.calls: list[tuple[Any, ...]] = []
        self.before: Callable[[tuple[Any, ...]], None] = lambda call: None
        self.down: Exception | None = None

    @property
    def ui(self) -> FakeSkeinApplication:
        """Has the methods about web pages."""
        return self

    def add_container(self, service: str, env: Mapping[str, str] | None = None) -> FakeSkeinContainer:
        """Ask for one more."""
        self._begin("add", service)
        container = FakeSkeinContainer(len(self.containers), service_name=service, env=dict(env or {}))
        self.containers.append(container)
        return container

    def kill_container(self, container_id: str) -> None:
        """End one that has not ended."""
        self._begin("kill", container_id)
        container = next(each for each in self.containers if each.id == container_id)
        if container.state in ("REQUESTED", "WAITING", "RUNNING"):
            container.state, container.exit_message = "KILLED", "Killed by user request."

    def get_containers(self, services: Sequence[str], states: Sequence[str]) -> list[FakeSkeinContainer]:
        """Copies of those that are of a service and in a state."""
        self._begin("get", *states)
        of_services = (each for each in self.containers if each.service_name in services)
        return [replace(each) for each in of_services if each.state in states]

    def get_specification(self) -> Any:
        """Say how large a TaskManager is."""
        self._begin("specification")
        resources = type("Resources", (), {"memory": self.memory_mib})
        service = type("Service", (), {"resources": resources})
        return type("Specification", (), {"services": {"taskmanager": service}})

    def set_progress(self, progress: float) -> None:
        """Only note it."""
        self._begin("progress", progress)

    def shutdown(self, status: str, diagnostics: str) -> None:
        """Only note it."""
        self._begin("shutdown", status, diagnostics)

    def add_page(self, route: str, target: str, link_name: str) -> Any:
        """Answer a page behind YARN's proxy."""
        self._begin("page", route, target, link_name)
        return type("Page", (), {"address": f"http://proxy/pages/{route}"})

    def remove_page(self, route: str) -> None:
        """Only note it."""
        self._begin("no page", route)

    def close(self) -> None:
        """Only note it."""
        self._begin("close")

    def grant(self, instance: int) -> None:
        """YARN starts a container on node1."""
        container = self.containers[instance]
        container.state = "RUNNING"
        container.yarn_container_id = f"container_1_0001_01_{instance + 2:06}"
        container.yarn_node_http_address = "node1:8042"

    def end(self, instance: int, state: str = "FAILED", message: str = "") -> None:
        """A container ends."""
        self.containers[instance].state = state
        self.containers[instance].exit_message = message

    def states(self) -> list[str]:
        """Of all containers, by their instance."""
        return [container.state for container in self.containers]

    def _begin(self, *call: Any) -> None:
        self.calls.append(call)
        self.before(call)
        if self.down is not None:
            raise self.down

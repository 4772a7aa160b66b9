"""Fakes by address."""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.core.ports import (
    DriverGateway,
    JobMasterGateway,
    MasterGateway,
    RemoteDispatcher,
    ResourceManagerGateway,
    TaskExecutorGateway,
)
from yarnflow.errors import RpcUnavailable, YarnflowError
from yarnflow.testing.gateways.dispatcher import FakeDispatcher
from yarnflow.testing.gateways.driver import FakeDriver
from yarnflow.testing.gateways.job_master import FakeJobMaster
from yarnflow.testing.gateways.master import FakeMaster
from yarnflow.testing.gateways.resource_manager import FakeResourceManager
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor


@dataclass
class FakeGateways:
    """:class:`~yarnflow.core.ports.GatewayFactory` of fakes.

    A fake is made for each address that has none.  Only Dispatchers have to be put in by the test: those
    at other addresses answer every call with :attr:`unreachable`, unless there is a master.
    """

    task_executors: dict[str, FakeTaskExecutor] = field(default_factory=dict)
    drivers: dict[str, FakeDriver] = field(default_factory=dict)
    masters: dict[str, FakeMaster] = field(default_factory=dict)
    resource_managers: dict[str, FakeResourceManager] = field(default_factory=dict)
    job_masters: dict[str, FakeJobMaster] = field(default_factory=dict)
    dispatchers: dict[str, FakeDispatcher] = field(default_factory=dict)
    unreachable: YarnflowError = field(default_factory=lambda: RpcUnavailable("nobody listens"))
    #: addresses of Dispatchers, in the order of the calls
    opened_dispatchers: list[str] = field(default_factory=list)
    #: what is no address of a TaskManager or driver
    bad_addresses: set[str] = field(default_factory=set)
    closes: int = 0

    def task_executor(self, address: str) -> TaskExecutorGateway:
        """One of :attr:`task_executors`."""
        self._check(address)
        return self.task_executors.setdefault(address, FakeTaskExecutor())

    def driver(self, address: str) -> DriverGateway:
        """One of :attr:`drivers`."""
        self._check(address)
        return self.drivers.setdefault(address, FakeDriver())

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway:
        """One of :attr:`resource_managers`."""
        leader = LeaderInfo(fence, address, "0", "cluster")
        return self.resource_managers.setdefault(address, FakeResourceManager(leader))

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway:
        """One of :attr:`job_masters`."""
        return self.job_masters.setdefault(address, FakeJobMaster())

    def dispatcher(self, address: str, timeout_ms: int | None = None) -> RemoteDispatcher:
        """One of :attr:`dispatchers`, that of one of :attr:`masters`, or one that nobody can reach."""
        self.opened_dispatchers.append(address)
        if address in self.dispatchers:
            return self.dispatchers[address]
        other = FakeDispatcher()
        other.down = self.masters[address].down if address in self.masters else self.unreachable
        return other

    def master(self, address: str) -> MasterGateway:
        """One of :attr:`masters`."""
        return self.masters.setdefault(address, FakeMaster())

    def close(self) -> None:
        """Count."""
        self.closes += 1

    def _check(self, address: str) -> None:
        if address in self.bad_addresses:
            raise RpcUnavailable(f"{address!r} is no address")

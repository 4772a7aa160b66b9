"""A Dispatcher that is wherever the leader is.

Decides whom to ask: the leader is looked up, in ZooKeeper or at the masters that are known, whenever
a call finds that it does not lead or does not answer; what may be repeated is repeated there until
``client.timeout`` is over.  An address is never kept over a failover, only asked who leads.  Flink
counterpart: ``RestClusterClient`` with its ``LeaderRetrievalService``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ha.ports import LeaderRetrieval, PolledRetrieval
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    ClusterOverview,
    FaultInjected,
    FaultRequest,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    LogLevel,
    LogLevelResult,
    RestAccess,
)
from yarnflow.core.ports import DispatcherGateway, RemoteDispatcher
from yarnflow.errors import (
    HaError,
    LeadershipLost,
    RpcTimeout,
    RpcUnavailable,
    StaleEpoch,
    YarnflowError,
    ZooKeeperUnavailable,
)
from yarnflow.runtime.leader_follower import FollowedLeader, LeaderFollower

T = TypeVar("T")
_Leader = FollowedLeader[RemoteDispatcher]

#: between two attempts
RETRY_S: Final = 0.2
#: who was called does not lead: nothing was done
_REFUSED: Final = (LeadershipLost, StaleEpoch, ZooKeeperUnavailable)
#: nobody knows whether anything was done
_UNANSWERED: Final = (RpcUnavailable, RpcTimeout)


class KnownMasters(PolledRetrieval):
    """Who leads, as ZooKeeper or the masters that are known say.

    Implements :class:`yarnflow.core.ha.ports.LeaderRetrieval`.

    Parameters
    ----------
    dispatcher : callable
        Gateway to the master at an address (``GatewayFactory.dispatcher``).
    addresses : callable
        ``host:port`` of masters that are known now; asked at every lookup.
    registry : LeaderRetrieval, optional
        Knows the leader better than any master does.
    """

    def __init__(
        self,
        dispatcher: Callable[[str], RemoteDispatcher],
        addresses: Callable[[], Iterable[str]],
        registry: LeaderRetrieval | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._addresses = addresses
        self._registry = registry
        #: who led last; not to be believed before others were asked
        self._last: tuple[int, str] = (0, "")
        #: leaders named by others; they may know the next one
        self._named: dict[str, None] = {}

    @property
    def may_change(self) -> bool:
        """There are several masters."""
        return True

    def leader(self) -> LeaderInfo | None:
        """The leader.

        Raises
        ------
        LeadershipLost
            There is none.
        RpcUnavailable
            No master answers.
        """
        return self._ask_registry() or self._ask_masters()

    def doubt(self, epoch: int, address: str) -> None:
        """This leader did not answer, or leads no more."""
        self._last = (epoch, address)

    def _ask_registry(self) -> LeaderInfo | None:
        if self._registry is None:
            return None
        try:
            info = self._registry.leader()
        except HaError:
            # masters go on without it for a while
            if self._known():
                return None
            raise
        if info is None:
            raise LeadershipLost("no master of the cluster leads at the moment; start one, or try again")
        return info

    def _ask_masters(self) -> LeaderInfo:
        last_epoch, last_address = self._last
        best: LeaderInfo | None = None
        refusals: list[YarnflowError] = []
        known = self._known()
        # whoever led last may be frozen: that costs a time-out, so it is asked last
        for address in sorted(known, key=lambda address: address == last_address):
            try:
                info = self._dispatcher(address).leader()
            except (*_REFUSED, *_UNANSWERED) as error:
                refusals.append(error)
                continue
            self._named[info.address] = None
            if best is None or info.fence.epoch > best.fence.epoch:
                best = info
            if info.fence.epoch > last_epoch:
                break
        if best is not None:
            return best
        for refusal in refusals:
            if isinstance(refusal, LeadershipLost):
                raise refusal
        raise RpcUnavailable(
            f"no master answers at {', '.join(known)}: {refusals[0]}"
            if refusals
            else "no master of the cluster is known; start one, or name it with -m host:port"
        )

    def _known(self) -> list[str]:
        return list(dict.fromkeys([*self._addresses(), *self._named, *filter(None, [self._last[1]])]))


class LeaderFollowingDispatcher:
    """:class:`yarnflow.core.ports.DispatcherGateway` of a cluster with several masters.

    Parameters
    ----------
    dispatcher : callable
        Gateway to the master at an address (``GatewayFactory.dispatcher``).
    addresses : callable
        ``host:port`` of masters that are known now; asked at every lookup.
    retrieval : LeaderRetrieval, optional
        Knows the leader better than any master does.
    timeout_ms : int
        How long one call is tried again (``client.timeout``).
    is_over : callable
        Asked before each further try: the cluster has ended, so nobody will lead it any more.
    """

    def __init__(
        self,
        dispatcher: Callable[[str], RemoteDispatcher],
        addresses: Callable[[], Iterable[str]],
        retrieval: LeaderRetrieval | None = None,
        *,
        timeout_ms: int = 60_000,
        is_over: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._masters = KnownMasters(dispatcher, addresses, retrieval)
        # nothing is accepted from a leader, so whoever is named is asked
        self._leaders: LeaderFollower[RemoteDispatcher] = LeaderFollower(
            self._masters, lambda leader: dispatcher(leader.address), newest_only=False
        )
        self._timeout_ms = timeout_ms
        self._is_over = is_over
        self._sleep = sleep
        self._now = now

    @property
    def followed(self) -> Fence | None:
        """The leader that answered last; None before the first answer and while one is looked for."""
        leader = self._leaders.present
        return None if leader is None else _present_fence(leader)

    @property
    def present(self) -> DispatcherGateway | None:
        """The leader that answered last, asked without patience; None while one is looked for."""
        leader = self._leaders.present
        return None if leader is None else leader.gateway

    def connect(self) -> None:
        """Find the leader, waiting for an election; but not for masters of which none answers.

        Raises
        ------
        RpcUnavailable
            Nobody listens where masters are known.
        """
        try:
            self._leaders.leader()
        except (*_REFUSED, RpcTimeout):
            self.leader()

    def leader(self) -> LeaderInfo:
        return self._call(lambda gateway: gateway.leader())

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        return self._call(lambda gateway: gateway.submit_job(submission))

    def list_jobs(self) -> Sequence[JobOverview]:
        return self._call(lambda gateway: gateway.list_jobs())

    def job_details(self, job_id: JobId) -> JobDetails:
        return self._call(lambda gateway: gateway.job_details(job_id))

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        # versions rise over all leaders, so what was seen of one can be said to another
        return self._call(lambda gateway: gateway.await_job_change(job_id, seen_version, timeout_ms))

    def cancel_job(self, job_id: JobId) -> None:
        self._call(lambda gateway: gateway.cancel_job(job_id))

    def cluster_overview(self) -> ClusterOverview:
        return self._call(lambda gateway: gateway.cluster_overview())

    def shut_down_cluster(self) -> None:
        # without an answer it is not known whether it was done, and it must not be done twice
        self._call(lambda gateway: gateway.shut_down_cluster(), repeatable=False)

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        self._call(lambda gateway: gateway.trigger_checkpoint(job_id, request))

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        return self._call(lambda gateway: gateway.await_checkpoint(job_id, request_id, timeout_ms))

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        return self._call(lambda gateway: gateway.job_checkpoints(job_id))

    def await_collected(self, job_id: JobId, position: str, timeout_ms: int) -> CollectedPage:
        # parts outlive a leader, so positions are known to the next
        return self._call(lambda gateway: gateway.await_collected(job_id, position, timeout_ms))

    def rest_access(self) -> RestAccess:
        """Address and tokens of the REST interface."""
        return self._call(lambda gateway: gateway.rest_access())

    def inject_fault(self, request: FaultRequest) -> FaultInjected:
        # one that was done without an answer must not be done to the next leader
        return self._call(lambda gateway: gateway.inject_fault(request), repeatable=request.check_only)

    def change_log_level(self, level: LogLevel) -> LogLevelResult:
        return self._call(lambda gateway: gateway.change_log_level(level))

    def _call(self, call: Callable[[DispatcherGateway], T], *, repeatable: bool = True) -> T:
        give_up_s: float | None = None
        while True:
            leader: _Leader | None = None
            try:
                leader = self._leaders.leader()
                return call(leader.gateway)
            except (*_REFUSED, *_UNANSWERED) as error:
                self._forget(leader)
                done_perhaps = leader is not None and isinstance(error, _UNANSWERED)
                if done_perhaps and not repeatable:
                    raise
                now_s = self._now()
                give_up_s = now_s + self._timeout_ms / 1000 if give_up_s is None else give_up_s
                if now_s >= give_up_s or self._is_over():
                    raise
                self._sleep(RETRY_S)

    def _forget(self, leader: _Leader | None) -> None:
        if leader is not None and self._leaders.present is leader:
            # before it is forgotten: whoever looks next is not to ask this one first
            self._masters.doubt(_present_fence(leader).epoch, leader.info.address)
            self._leaders.forget(leader)


def _present_fence(leader: _Leader) -> Fence:
    """A gateway follows a leader that was started again at the same address by itself."""
    return leader.gateway.known_fence or leader.fence

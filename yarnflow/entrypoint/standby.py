"""What a master answers while another one leads: who that is, and nothing else.

Its RPC port and its web page are there all the time, so clients may ask any master they know.
Flink counterpart: the ``LeaderRetriever`` half of ``WebMonitorEndpoint``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import LeadershipLost
from yarnflow.rest.routes import Answer, error_answer
from yarnflow.rpc.methods import DISPATCHER, JOB_MASTER, RESOURCE_MANAGER, Service

_TEXT: Final = "text/plain; charset=UTF-8"
NOBODY: Final = Fence("", 0)


class Standby:
    """Serves every call of a JobManager; only :meth:`leader` has an answer.

    Parameters
    ----------
    known_leader : callable
        Who leads as far as this process knows; quick.
    """

    def __init__(self, known_leader: Callable[[], LeaderInfo | None]) -> None:
        self._known_leader = known_leader

    def leader(self) -> LeaderInfo:
        """The leader of this cluster, which is another process.

        Raises
        ------
        LeadershipLost
            There is none at the moment.
        """
        leader = self._known_leader()
        if leader is None:
            raise LeadershipLost("this master is a standby and no master leads at the moment; try again")
        return leader

    def services(self) -> Mapping[str, Service]:
        """All services of a JobManager."""
        return {name: Service(name, self) for name in (DISPATCHER, RESOURCE_MANAGER, JOB_MASTER)}

    def fence(self) -> Fence:
        """Calls meant for the leader pass, so that they are told where it is."""
        leader = self._known_leader()
        return NOBODY if leader is None else leader.fence

    def answer(self, method: str, target: str) -> Answer:
        """Send browsers to the leader's web page."""
        leader = self._known_leader()
        if leader is None:
            return error_answer("This master is a standby and no master leads at the moment.", 503)
        if not leader.web_address:
            where = leader.address
            return error_answer(f"This master is a standby; the leader {where} has no web page.", 503)
        location = leader.web_address.rstrip("/") + "/" + target.lstrip("/")
        return Answer(307, _TEXT, f"The leader is at {leader.web_address}.\n".encode(), location)

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse

    def _refuse(self, *_arguments: object) -> NoReturn:
        raise LeadershipLost(f"this master is a standby; the leader is at {self.leader().address}")

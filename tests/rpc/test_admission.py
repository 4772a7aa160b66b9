"""Peers that connect and say nothing, and processes without descriptors."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.patience import PATIENCE
from tests.rpc.conftest import FENCE, JOB_MANAGER, LONG_MS, Cluster, read, read_all
from yarnflow.errors import RpcUnavailable
from yarnflow.rpc import descriptors
from yarnflow.rpc.admission import GRACE_S, MAX_WAITING_PER_PEER, Admission
from yarnflow.rpc.auth import CHALLENGE_BYTES, PROOF_BYTES, is_accepted
from yarnflow.rpc.client import RpcClient
from yarnflow.rpc.member import Role
from yarnflow.rpc.methods import methods_of

PING = methods_of("Driver")["ping"]

#: a server in a process that may have few descriptors; does what it is told, a line each
SERVER = """
import os, resource, sys, threading
from tests.rpc.conftest import LONG_MS, Cluster

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
cluster = Cluster(handshake_timeout_ms=LONG_MS)
held = []
print(cluster.server.port, flush=True)
for line in sys.stdin:
    if line == "exhaust\\n":
        # the connection of the one who has called must not give its descriptor back later
        cluster.someone_gone.wait()
        closed = threading.Event()
        cluster.server._loop.call_soon_threadsafe(closed.set)
        closed.wait()
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
    elif line == "relax\\n":
        while held:
            os.close(held.pop())
    print("done", flush=True)
"""


class SmallServer:
    """A server with few descriptors."""

    def __init__(self, limit: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.port = int(self._read())
        self.address = f"127.0.0.1:{self.port}"

    def tell(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        assert self._read() == "done\n"

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def small_server() -> Iterator[Callable[[int], SmallServer]]:
    made: list[SmallServer] = []

    def make(limit: int) -> SmallServer:
        made.append(SmallServer(limit))
        return made[-1]

    yield make
    for server in made:
        server.close()


def ping(address: str) -> None:
    client = RpcClient(
        address,
        Role.DRIVER,
        JOB_MANAGER,
        fence=lambda: FENCE,
        timeout_ms=int(PATIENCE.answer_s * 1000),
        identity="probe",
    )
    try:
        client.call(PING, ())
    finally:
        client.close()


def test_silent_peers_do_not_shut_out_others(small_server: Callable[[int], SmallServer]) -> None:
    server = small_server(256)
    silent = [socket.create_connection(("127.0.0.1", server.port), PATIENCE.answer_s) for _ in range(400)]
    try:
        ping(server.address)
    finally:
        for connection in silent:
            connection.close()


def test_without_descriptors_a_peer_is_told_at_once(small_server: Callable[[int], SmallServer]) -> None:
    server = small_server(256)
    ping(server.address)
    server.tell("exhaust")
    for _ in range(3):
        with pytest.raises(RpcUnavailable):
            ping(server.address)
    server.tell("relax")
    ping(server.address)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert descriptors.raise_limit() >= 8192, "raise the limit of open files (ulimit -Hn)"
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_descriptors")
def test_a_burst_of_honest_peers_of_one_address_is_let_in(make_cluster: Callable[..., Cluster]) -> None:
    """As the processes of a host come that look for a new leader at the same moment."""
    cluster = make_cluster(now_s=lambda: 0.0, handshake_timeout_ms=LONG_MS)
    connections = [cluster.raw() for _ in range(1000)]
    peers = [(one, cluster.handshake(one, f"peer-{n}")) for n, one in enumerate(connections)]
    # the server has them all before the first one goes on: it takes connections in their order
    ping(cluster.address)
    assert len(cluster.server._admission) == 1000
    for connection, handshake in peers:
        connection.sendall(handshake.hello())
    for connection, handshake in peers:
        connection.sendall(handshake.prove(read(connection, CHALLENGE_BYTES)))
    for connection, handshake in peers:
        assert is_accepted(read(connection, 1))
        handshake.verify(read(connection, PROOF_BYTES))
    # the last one has its answer before the server counts it
    ping(cluster.address)
    assert len(cluster.server._admission) == 0


@pytest.mark.usefixtures("many_descriptors")
def test_silent_sockets_are_cut_when_they_have_had_their_time(make_cluster: Callable[..., Cluster]) -> None:
    now_s = 0.0
    cluster = make_cluster(now_s=lambda: now_s, handshake_timeout_ms=LONG_MS)
    silent = [cluster.raw() for _ in range(400)]
    ping(cluster.address)
    now_s = GRACE_S
    ping(cluster.address)
    # the honest one took the place of the oldest; so many may stay until the handshake's own limit
    for connection in silent[: 401 - MAX_WAITING_PER_PEER]:
        assert read_all(connection) == b""
    assert len(cluster.server._admission) == MAX_WAITING_PER_PEER - 1
    for _ in range(3):
        ping(cluster.address)


def test_a_silent_peer_makes_room_for_the_next(make_cluster: Callable[..., Cluster]) -> None:
    """The oldest goes, and those that authenticated stay."""
    now_s = 0.0
    cluster = make_cluster(now_s=lambda: now_s, handshake_timeout_ms=LONG_MS)
    client = cluster.client()
    client.call(PING, ())
    admission = Admission[str](max_waiting=2)
    cluster.server._admission = admission  # type: ignore[assignment]
    oldest, second = cluster.raw(), cluster.raw()
    ping(cluster.address)
    now_s = GRACE_S
    third = cluster.raw()
    assert read_all(oldest) == b""
    client.call(PING, ())
    for connection in (second, third):
        connection.close()


def test_one_address_has_its_share() -> None:
    admission = Admission[str](max_waiting=10, max_per_peer=3)
    assert [admission.came(f"a{n}", "a", now_s=n) for n in range(4)] == [[], [], [], ["a0"]]
    assert admission.came("b0", "b", now_s=4) == []
    assert len(admission) == 4


def test_nobody_goes_before_having_had_the_time_to_authenticate() -> None:
    admission = Admission[str](max_waiting=8, max_per_peer=3, grace_s=1)
    assert [admission.came(f"a{n}", "a", now_s=0.1 * n) for n in range(10)] == [[]] * 10
    # in all there are more than may be, and of the other address there is only this one
    assert admission.came("b0", "b", now_s=0.99) == []
    assert admission.came("b1", "b", now_s=1.15) == ["a0", "a1"]
    # those of the address that comes go first
    assert admission.came("a10", "a", now_s=1.55) == ["a2", "a3", "a4", "a5"]
    assert admission.came("a11", "a", now_s=99) == ["a6", "a7", "a8"]


def test_when_descriptors_run_short_nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnflow.rpc.admission.limit", lambda: 16)
    admission = Admission[str](grace_s=1)
    assert [admission.came(name, name[0], now_s=0) for name in ("a0", "b0", "a1", "c0")] == [[]] * 4
    assert admission.came("d0", "d", now_s=0) == ["a0"]
    assert len(admission) == 4


def test_over_all_the_heaviest_address_gives_way() -> None:
    admission = Admission[str](max_waiting=4, max_per_peer=3)
    for name in ("b0", "a0", "a1", "c0"):
        assert admission.came(name, name[0], now_s=0) == []
    assert admission.came("d0", "d", now_s=GRACE_S) == ["a0"]
    admission.left("a0", "a")
    assert len(admission) == 4
    assert admission.drop() is not None and len(admission) == 3


def test_whoever_has_authenticated_does_not_count() -> None:
    admission = Admission[str](max_waiting=2, max_per_peer=2)
    for number in range(50):
        assert admission.came(f"a{number}", "a", now_s=number) == []
        admission.left(f"a{number}", "a")
    assert len(admission) == 0 and admission.drop() is None


def test_the_limit_is_raised_for_children_too() -> None:
    script = (
        "import resource, subprocess, sys\n"
        "from yarnflow.rpc import descriptors\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\n"
        "print(descriptors.raise_limit(), flush=True)\n"
        "subprocess.run(['sh', '-c', 'ulimit -n'], check=True)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE.process_s
    ).stdout.split()
    assert said == [str(descriptors.highest_limit())] * 2
    assert descriptors.limit() <= resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def test_a_reserve_gives_one_descriptor() -> None:
    reserve = descriptors.Reserve()
    with reserve.released():
        first = os.open(os.devnull, os.O_RDONLY)
        os.close(first)
    second = os.open(os.devnull, os.O_RDONLY)
    os.close(second)
    assert second != first, "it was not taken back"
    reserve.close()
    reserve.close()

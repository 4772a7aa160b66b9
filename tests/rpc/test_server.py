"""What the server does with peers that are late, wrong, broken or gone."""

from __future__ import annotations

import logging
import re
import select
import socket
import threading
from collections.abc import Callable

import pytest

from tests.patience import PATIENCE
from tests.rpc.conftest import FENCE, JOB_MANAGER, SECRET, Cluster, read, read_all
from tests.rpc.samples import sample
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    DriverReport,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    TaskManagerHeartbeat,
)
from yarnflow.errors import (
    AuthenticationFailed,
    InternalError,
    PortUnavailable,
    RpcProtocolError,
    RpcTimeout,
    RpcUnavailable,
    StaleEpoch,
    WrongProcess,
)
from yarnflow.rpc import auth, framing
from yarnflow.rpc import server as server_module
from yarnflow.rpc.auth import ClientHandshake
from yarnflow.rpc.client import RpcClient, map_thrift_errors, split_address
from yarnflow.rpc.listen import bind
from yarnflow.rpc.member import Destination, Member, Role, numeric
from yarnflow.rpc.methods import ENDPOINTS, Service, methods_of
from yarnflow.rpc.server import RpcServer

MakeCluster = Callable[..., Cluster]
PING = methods_of("Driver")["ping"]
CANCEL = methods_of("Driver")["cancel"]
#: a context whose first field claims to be a list of two thousand million structs
HUGE_LIST = b"\x0c\x00\x01\x0f\x00\x01\x0c\x7f\xff\xff\xff"
#: context of leader-1, epoch 5, without limit and request id
CONTEXT = (
    b"\x0c\x00\x01\x0c\x00\x01\x0b\x00\x01\x00\x00\x00\x08leader-1\x0a\x00\x02" + bytes(7) + b"\x05\x00"
    b"\x0a\x00\x02" + bytes(8) + b"\x00\x00"
)


def authenticated(cluster: Cluster, identity: str = "") -> socket.socket:
    """A raw connection behind its handshake."""
    connection = cluster.raw()
    handshake = cluster.handshake(connection, identity)
    connection.sendall(handshake.hello())
    connection.sendall(handshake.prove(read(connection, auth.CHALLENGE_BYTES)))
    answer = read(connection, 1 + auth.PROOF_BYTES)
    handshake.verify(answer[1:])
    return connection


def still_serves(cluster: Cluster) -> bool:
    cluster.client().call(PING, ())
    return cluster.recorders["Driver"].calls[-1] == ("ping", ())


# --- fence -------------------------------------------------------------------


@pytest.mark.parametrize(
    "claimed", [Fence("leader-1", 4), Fence("leader-1", 6), Fence("leader-2", 5), Fence("", 0)]
)
@pytest.mark.parametrize("service", ["ResourceManager", "JobMaster", "TaskExecutor", "Driver"])
def test_stale_fence_never_reaches_the_handler(cluster: Cluster, service: str, claimed: Fence) -> None:
    method, arguments = {
        "ResourceManager": ("heartbeat", [sample(TaskManagerHeartbeat)]),
        "JobMaster": ("report", [sample(DriverReport)]),
    }.get(service, ("ping", []))
    with pytest.raises(StaleEpoch, match="look the leader up again"):
        cluster.client().call(methods_of(service)[method], arguments, fence=claimed)
    assert cluster.recorders[service].calls == []


def test_epoch_zero_is_for_the_dispatcher_only(cluster: Cluster) -> None:
    cluster.recorders["Dispatcher"].answers["leader"] = LeaderInfo(FENCE, "a:1", "1", "default")
    found = cluster.client().call(methods_of("Dispatcher")["leader"], (), fence=Fence("", 0))
    assert found.fence == FENCE


def test_process_without_a_leader_serves_nobody(cluster: Cluster) -> None:
    cluster.fence = Fence("", 0)
    with pytest.raises(StaleEpoch, match="nobody"):
        cluster.client().call(PING, (), fence=Fence("", 0))


# --- authentication ----------------------------------------------------------


def test_wrong_secret_is_refused_and_named(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    gateway = cluster.factory(secret=b"another secret").driver(cluster.address)
    with pytest.raises(AuthenticationFailed) as caught:
        gateway.ping()
    assert cluster.address in str(caught.value)
    assert "security.cluster-secret-file" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert cluster.recorders["Driver"].calls == []
    assert still_serves(cluster)
    assert [r.levelno for r in caplog.records if "does not know the cluster secret" in r.getMessage()] == [
        logging.WARNING
    ]


def test_http_request_is_told_what_this_is(cluster: Cluster) -> None:
    connection = cluster.raw()
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"yarnflow RPC port" in answer
    assert still_serves(cluster)


@pytest.mark.parametrize(
    "data", [b"\x00" * 100, b"\xff" * 100_000, b"\x80\x01\x00\x01\x00\x00\x00\x04ping\x00\x00\x00\x01\x00"]
)
def test_garbage_is_refused_in_one_line(
    cluster: Cluster, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    connection = cluster.raw()
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    answer = read_all(connection)
    assert answer.startswith(b"yarnflow refused: RPC_PROTOCOL: ")
    assert answer.count(b"\n") == 1
    assert len([r for r in caplog.records if "not the yarnflow protocol" in r.getMessage()]) == 1
    assert still_serves(cluster)


def test_silent_peer_is_cut_off(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(handshake_timeout_ms=20)
    assert b"RPC_TIMEOUT" in read_all(cluster.raw())


def test_peer_that_stops_in_the_handshake_is_cut_off(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(handshake_timeout_ms=20)
    connection = cluster.raw()
    connection.sendall(cluster.handshake(connection).hello()[:20])
    assert b"RPC_TIMEOUT" in read_all(connection)


def test_refused_peer_that_never_closes_is_cut_off(make_cluster: MakeCluster) -> None:
    """The answer comes with an end of stream, and the socket is not kept for a peer that stays."""
    cluster = make_cluster()
    connection = cluster.raw()
    connection.sendall(b"nonsense")
    assert read_all(connection).startswith(b"yarnflow refused")


def test_client_of_another_kind_of_server_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def ssh() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                peer.shutdown(socket.SHUT_WR)
                read_all(peer)

        thread = threading.Thread(target=ssh)
        thread.start()
        with pytest.raises(RpcProtocolError, match=f"127.0.0.1:{port} is not a yarnflow RPC server.*SSH-2.0"):
            RpcClient(f"127.0.0.1:{port}", Role.DRIVER, JOB_MANAGER).call(PING, ())
        thread.join()


# --- malformed messages ------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x7f\xff\xff\xff", "rpc.framesize"),
        (b"GET ", "rpc.framesize"),
        (b"\x00\x00\x00\x00", "no Thrift message"),
        (b"\x00\x00\x00\x08garbage!", "no Thrift message"),
        (framing.frame(framing.REPLY, "Driver:ping", 1, b"\x00"), "kind 2"),
        (framing.frame(framing.CALL, "Driver:ping", 1, b"\x00"), "without context"),
        (framing.frame(framing.CALL, "Driver:ping", 1, b""), "cannot be decoded"),
        (framing.frame(framing.CALL, "Driver:ping", 1, HUGE_LIST), "size exceeded"),
    ],
)
def test_malformed_message_costs_only_its_connection(
    cluster: Cluster, data: bytes, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = cluster.client()
    other.call(PING, ())
    connection = authenticated(cluster, "tm-7")
    connection.sendall(data)
    assert read_all(connection) == b""
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert complaint in warnings[0] and "'tm-7'" in warnings[0] and "\n" not in warnings[0]
    other.call(PING, ())


def test_half_a_message_then_close(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    connection = authenticated(cluster, "tm-7")
    connection.sendall(b"\x00\x00\x01\x00half")
    connection.close()
    assert cluster.someone_gone.wait(PATIENCE.thread_s)
    assert any("in the middle of a message" in r.getMessage() for r in caplog.records)
    assert still_serves(cluster)


def test_message_in_single_bytes(cluster: Cluster) -> None:
    connection = authenticated(cluster)
    for byte in framing.frame(framing.CALL, "Driver:ping", 7, CONTEXT):
        connection.sendall(bytes([byte]))
    length = int.from_bytes(read(connection, 4), "big")
    header = framing.read_header(read(connection, length))
    assert (header.kind, header.name, header.sequence) == (framing.REPLY, "ping", 7)


def test_peer_that_sends_ahead_and_does_not_read_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    1. far more answers are asked for than the sockets hold; nobody reads
    2. the server stops working for this peer
    3. it goes on as the peer reads, in order
    """
    stalled = threading.Event()
    pause_writing = server_module._Connection.pause_writing

    def pause(connection: server_module._Connection) -> None:
        pause_writing(connection)
        stalled.set()

    monkeypatch.setattr(server_module._Connection, "pause_writing", pause)
    cluster.recorders["Dispatcher"].answers["list_jobs"] = [sample(JobOverview)] * 2000
    connection = authenticated(cluster)
    calls = [framing.frame(framing.CALL, "Dispatcher:listJobs", number, CONTEXT) for number in range(150)]
    connection.sendall(b"".join(calls))
    assert stalled.wait(PATIENCE.thread_s)
    assert len(cluster.recorders["Dispatcher"].calls) < 150
    for number in range(150):
        length = int.from_bytes(read(connection, 4), "big")
        header = framing.read_header(read(connection, length))
        assert (header.kind, header.sequence) == (framing.REPLY, number)


def test_unknown_method_is_named(cluster: Cluster) -> None:
    server = RpcServer("127.0.0.1", "0", {}, Member(Role.DRIVER, SECRET, "c"), lambda: FENCE)
    server.start()
    try:
        gateway = cluster.factory().driver(f"127.0.0.1:{server.port}")
        with pytest.raises(RpcProtocolError, match="has no method Driver:ping.*right process"):
            gateway.ping()
    finally:
        server.stop()


def test_frame_limit_holds_on_both_sides(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(max_frame_bytes=4096)
    submit = methods_of("Dispatcher")["submit_job"]
    big = JobSubmission(JobId("a" * 32), "big", sample(JobSubmission).kind, "x" * 5000, {})
    with pytest.raises(RpcProtocolError, match=r"arguments have \d+ bytes, more than rpc.framesize"):
        cluster.client(max_frame_bytes=4096).call(submit, [big])
    with pytest.raises(RpcUnavailable):
        cluster.client().call(submit, [big])
    cluster.recorders["Dispatcher"].answers["list_jobs"] = [sample(JobOverview)] * 100
    with pytest.raises(RpcProtocolError, match=r"answer of Dispatcher:listJobs has \d+ bytes"):
        cluster.client().call(methods_of("Dispatcher")["list_jobs"], ())


def test_big_message_passes(cluster: Cluster) -> None:
    submit = methods_of("Dispatcher")["submit_job"]
    content = bytes(range(256)) * 4096 * 8
    job = JobSubmission(JobId("a" * 32), "big", sample(JobSubmission).kind, "{}", {}, files={"data": content})
    cluster.recorders["Dispatcher"].answers["submit_job"] = sample(JobSubmitted)
    cluster.client(timeout_ms=60_000).call(submit, [job])
    assert cluster.recorders["Dispatcher"].calls[-1] == ("submit_job", (job,))


# --- handlers ----------------------------------------------------------------


@pytest.mark.parametrize("spec", [PING, CANCEL], ids=["quick", "pooled"])
def test_bug_in_a_handler_is_one_line_and_logged(
    cluster: Cluster, spec: object, caplog: pytest.LogCaptureFixture
) -> None:
    for method in ("ping", "cancel"):
        cluster.recorders["Driver"].answers[method] = ZeroDivisionError("over\nhere")
    client = cluster.client()
    with pytest.raises(InternalError) as caught:
        client.call(spec, ())  # type: ignore[arg-type]
    assert re.search(r"Driver:\w+ failed: ZeroDivisionError: over here; see the log", str(caught.value))
    assert "\n" not in str(caught.value)
    assert any(r.exc_info and r.exc_info[0] is ZeroDivisionError for r in caplog.records)
    cluster.recorders["Driver"].answers.clear()
    client.call(PING, ())


def test_answer_of_the_wrong_type_is_an_internal_error(cluster: Cluster) -> None:
    cluster.recorders["Dispatcher"].answers["leader"] = None
    with pytest.raises((InternalError, RpcProtocolError)):
        cluster.client().call(methods_of("Dispatcher")["leader"], ())
    assert still_serves(cluster)


def test_quick_calls_run_on_the_io_thread_and_others_do_not(cluster: Cluster) -> None:
    threads: list[str] = []
    for method in ("ping", "cancel"):
        cluster.recorders["Driver"].answers[method] = lambda: threads.append(threading.current_thread().name)
    client = cluster.client()
    client.call(PING, ())
    client.call(CANCEL, ())
    assert threads[0].startswith("rpc-io-") and threads[1].startswith("rpc-handler-")


def test_long_polls_hold_up_nobody(make_cluster: MakeCluster) -> None:
    """
    1. more long polls wait than there are handler threads
    2. quick and pooled calls are answered meanwhile
    3. released, every poll gets its own answer
    """
    cluster = make_cluster(handler_threads=1)
    waiting, release = threading.Semaphore(0), threading.Event()

    def wait_for_change(job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        waiting.release()
        assert release.wait(PATIENCE.thread_s)
        return JobDetails(sample(JobDetails).overview, seen_version + 1)

    cluster.recorders["Dispatcher"].answers["await_job_change"] = wait_for_change
    client, poll = cluster.client(), methods_of("Dispatcher")["await_job_change"]
    # the poll's own time comes on top of the client's limit
    patient = cluster.client(timeout_ms=1)
    answers: list[int] = []

    def ask(version: int) -> None:
        answers.append(patient.call(poll, (JobId("j"), version, 60_000)).version)

    threads = [threading.Thread(target=ask, args=(version,)) for version in range(8)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=PATIENCE.thread_s)
    client.call(PING, ())
    client.call(CANCEL, ())
    assert answers == []
    release.set()
    for thread in threads:
        thread.join(PATIENCE.thread_s)
    assert sorted(answers) == [version + 1 for version in range(8)]


def test_call_whose_time_is_up_in_the_queue_is_not_started(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(handler_threads=1)
    started, release = threading.Event(), threading.Event()
    order: list[str] = []

    def block() -> None:
        order.append("cancel")
        started.set()
        assert release.wait(PATIENCE.thread_s)

    cluster.recorders["Driver"].answers["cancel"] = block
    cluster.recorders["Driver"].answers["shut_down"] = lambda: order.append("shut_down")
    client = cluster.client()
    blocker = threading.Thread(target=lambda: client.call(CANCEL, (), timeout_ms=60_000))
    blocker.start()
    assert started.wait(PATIENCE.thread_s)
    with pytest.raises(RpcTimeout, match="did not answer Driver:shutDown within 30 ms"):
        client.call(methods_of("Driver")["shut_down"], (), timeout_ms=30)
    # the server counts from the call's arrival, so its 30 ms may end later than the client's
    release.wait(0.5)
    release.set()
    blocker.join(PATIENCE.thread_s)
    client.call(CANCEL, ())
    assert order == ["cancel", "cancel"]


def test_slow_handler_times_out_and_the_client_goes_on(cluster: Cluster) -> None:
    release = threading.Event()
    cluster.recorders["Driver"].answers["cancel"] = lambda: release.wait(PATIENCE.thread_s) and None
    client = cluster.client()
    with pytest.raises(RpcTimeout):
        client.call(CANCEL, (), timeout_ms=20)
    client.call(PING, ())
    release.set()


# --- connections -------------------------------------------------------------


def test_end_of_a_peers_last_connection_is_reported(cluster: Cluster) -> None:
    first, second = authenticated(cluster, "tm-1"), authenticated(cluster, "tm-1")
    nameless = authenticated(cluster)
    first.close()
    nameless.close()
    authenticated(cluster, "tm-2").close()
    assert cluster.someone_gone.wait(PATIENCE.thread_s)
    assert cluster.gone == ["tm-2"]
    cluster.someone_gone.clear()
    second.close()
    assert cluster.someone_gone.wait(PATIENCE.thread_s)
    assert cluster.gone == ["tm-2", "tm-1"]


def test_calls_beside_each_other_leave_one_connection(cluster: Cluster) -> None:
    """More of them would be there for ever, of each TaskManager and to each."""
    client = cluster.client(identity="tm-1")
    together = threading.Barrier(4)
    cluster.recorders["Driver"].answers["cancel"] = lambda: together.wait(PATIENCE.thread_s) and None
    calls = [threading.Thread(target=lambda: client.call(CANCEL, ())) for _ in range(4)]
    for call in calls:
        call.start()
    for call in calls:
        call.join(PATIENCE.thread_s)
    assert len(client._open) == 1 and client._open == set(client._idle)
    client.call(PING, ())
    assert not cluster.gone, "the peer still lives"
    client.close()
    assert cluster.someone_gone.wait(PATIENCE.thread_s) and cluster.gone == ["tm-1"]


def test_end_of_a_peer_is_seen_while_its_call_runs(cluster: Cluster) -> None:
    started, release = threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        assert release.wait(PATIENCE.thread_s)

    cluster.recorders["Driver"].answers["cancel"] = block
    client = cluster.client(identity="tm-1")

    def call() -> None:
        with pytest.raises(RpcUnavailable):
            client.call(CANCEL, ())

    thread = threading.Thread(target=call)
    thread.start()
    assert started.wait(PATIENCE.thread_s)
    client.close()
    assert cluster.someone_gone.wait(PATIENCE.thread_s)
    thread.join(PATIENCE.thread_s)
    release.set()
    assert still_serves(cluster)


def test_failing_callback_hurts_nobody(cluster: Cluster) -> None:
    seen = threading.Event()

    def fail(identity: str) -> None:
        seen.set()
        raise ValueError(identity)

    cluster.on_gone = fail
    authenticated(cluster, "tm-1").close()
    assert seen.wait(PATIENCE.thread_s)
    assert still_serves(cluster)


def test_client_finds_a_restarted_server_by_itself() -> None:
    """Even a call that must not be sent twice: the dead connection is seen before it is used."""
    first = Cluster()
    port = first.server.port
    client = RpcClient(first.address, Role.DRIVER, JOB_MANAGER, fence=lambda: FENCE)
    shut_down = methods_of("Dispatcher")["shut_down_cluster"]
    try:
        client.call(shut_down, ())
        first.close()
        with pytest.raises(RpcUnavailable, match=f"nobody listens at 127.0.0.1:{port}"):
            client.call(shut_down, ())
        seen: list[int] = []
        recorder = first.recorders["Dispatcher"]
        recorder.answers["shut_down_cluster"] = lambda: seen.append(1)
        second = RpcServer(
            "127.0.0.1",
            str(port),
            {"d": Service(ENDPOINTS["Dispatcher"], recorder)},
            Member(Role.DRIVER, SECRET, "c"),
            lambda: FENCE,
        )
        second.start()
        try:
            client.call(shut_down, ())
        finally:
            second.stop()
        assert seen == [1]
    finally:
        client.close()


@pytest.mark.parametrize(("method", "sent"), [("list_jobs", 2), ("shut_down_cluster", 1)])
def test_only_idempotent_calls_are_sent_again(method: str, sent: int) -> None:
    """A server that reads the call and dies."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(sent):
                peer, _ = listener.accept()
                with peer:
                    handshake = auth.ServerHandshake(JOB_MANAGER, numeric(peer.getsockname()), "peer")
                    while not handshake.done:
                        peer.sendall(handshake.feed(peer.recv(4096)))
                    received.append(peer.recv(4096))

        thread = threading.Thread(target=serve)
        thread.start()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        client = RpcClient(address, Role.JOB_MANAGER, JOB_MANAGER)
        with pytest.raises(RpcUnavailable, match="check that the process there is up|cannot reach"):
            client.call(methods_of("Dispatcher")[method], ())
        thread.join(PATIENCE.thread_s)
        client.close()
    assert len(received) == sent


def test_many_connections_share_one_io_thread(cluster: Cluster) -> None:
    connections = [authenticated(cluster, f"tm-{index}") for index in range(100)]
    io_threads = [t for t in threading.enumerate() if t.name == f"rpc-io-{cluster.server.port}"]
    assert len(io_threads) == 1
    for connection in connections:
        connection.close()
    assert still_serves(cluster)


def test_stop_closes_everything_and_twice_is_fine() -> None:
    cluster = Cluster()
    connection = authenticated(cluster, "tm-1")
    cluster.server.stop()
    cluster.server.stop()
    assert read_all(connection) == b""
    assert cluster.gone == []
    assert not [t for t in threading.enumerate() if t.name == f"rpc-io-{cluster.server.port}"]
    cluster.close()


# --- addresses and ports -----------------------------------------------------


@pytest.mark.parametrize("text", ["", "x", "-1", "65536", "2-1", "0-10", "1,,2", "6123-", "999999"])
def test_bad_port_ranges_are_named(text: str) -> None:
    with pytest.raises(PortUnavailable, match=re.escape(repr(text))):
        bind("127.0.0.1", text)


def test_ports_in_use_are_passed_over_and_named_when_none_is_left() -> None:
    with bind("127.0.0.1", "0") as taken:
        port = taken.getsockname()[1]
        server = RpcServer("127.0.0.1", str(port), {}, JOB_MANAGER, lambda: FENCE)
        with pytest.raises(PortUnavailable, match=f"no port of {port} is free on 127.0.0.1"):
            server.start()
        if port < 65000:
            for text in (f"{port}-{port + 50}", f"{port}, {port + 1}-{port + 50}"):
                with bind("127.0.0.1", text) as other:
                    assert port < other.getsockname()[1] <= port + 50


def test_host_of_another_machine_is_named() -> None:
    with pytest.raises(PortUnavailable, match="cannot bind to 192.0.2.1"):
        bind("192.0.2.1", "0")


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:0", "host:70000", "host:x"])
def test_bad_addresses_are_named(address: str) -> None:
    with pytest.raises(RpcUnavailable, match=re.escape(repr(address))):
        split_address(address)


def test_addresses() -> None:
    assert split_address("host:1") == ("host", 1)
    assert split_address("[::1]:80") == ("::1", 80)


def test_unknown_host_is_named() -> None:
    with pytest.raises(RpcUnavailable, match="cannot reach h:1 for S:m: Name or service not known"):
        with map_thrift_errors("h:1", "S:m", 10):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


# --- whom a client means -----------------------------------------------------


def test_a_relay_serves_neither_side(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """It passes every byte on, and is dialled in the place of the server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def pass_on() -> None:
            dialled, _ = listening.accept()
            with dialled, cluster.raw() as server:
                while select.select([dialled, server], [], []):
                    for source, target in ((dialled, server), (server, dialled)):
                        if select.select([source], [], [], 0)[0]:
                            if not (data := source.recv(4096)):
                                return
                            target.sendall(data)

        thread = threading.Thread(target=pass_on)
        thread.start()
        port = listening.getsockname()[1]
        client = RpcClient(f"127.0.0.1:{port}", Role.DRIVER, JOB_MANAGER, fence=lambda: FENCE)
        with pytest.raises(WrongProcess, match="passes connections on") as caught:
            client.call(PING, ())
        client.close()
        thread.join(PATIENCE.thread_s)
    assert cluster.address in caught.value.message and f"127.0.0.1:{port}" in caught.value.message
    assert caught.value.message.partition("refused the connection: ")[2] in caplog.text
    assert cluster.recorders["Driver"].calls == []


def test_a_port_that_another_role_has_now_is_not_called(cluster: Cluster) -> None:
    gateway = cluster.factory().driver(cluster.address)
    gateway.ping()
    cluster.become(Role.TASK_MANAGER)
    with pytest.raises(WrongProcess, match="wants the driver of cluster 'c' at .* here is the TaskManager"):
        cluster.factory().driver(cluster.address).ping()


def test_a_translated_address_is_taken_when_it_is_named(make_cluster: MakeCluster) -> None:
    """As a port forward has it."""
    named = make_cluster(translated_addresses=["Published:7000"])
    with named.raw() as connection:
        handshake = ClientHandshake(
            JOB_MANAGER, Destination(Role.DRIVER, "published:7000", "192.0.2.1:7000"), "jm"
        )
        connection.sendall(handshake.hello())
        connection.sendall(handshake.prove(read(connection, auth.CHALLENGE_BYTES)))
        handshake.verify(read(connection, 1 + auth.PROOF_BYTES)[1:])

"""The handshake, without sockets."""

from __future__ import annotations

import pytest

from yarnflow.errors import AuthenticationFailed, RpcProtocolError, RpcUnavailable, WrongProcess
from yarnflow.rpc import auth
from yarnflow.rpc.auth import ClientHandshake, Refused, ServerHandshake
from yarnflow.rpc.member import CALLERS, Destination, Member, Role, numeric

SECRET = b"s" * 32
HERE = "10.0.0.5:6123"


def client_side(
    identity: str = "",
    *,
    role: Role = Role.TASK_MANAGER,
    wants: Role = Role.JOB_MANAGER,
    cluster_id: str = "c",
    dialled: str = "master:6123",
    reached: str = HERE,
    secret: bytes = SECRET,
) -> ClientHandshake:
    return ClientHandshake(Member(role, secret, cluster_id), Destination(wants, dialled, reached), identity)


def server_side(
    role: Role = Role.JOB_MANAGER,
    *,
    cluster_id: str = "c",
    local: str = HERE,
    peer: str = "peer",
    translated: tuple[str, ...] = (),
) -> ServerHandshake:
    return ServerHandshake(Member(role, SECRET, cluster_id), local, peer, translated)


def shake_hands(client: ClientHandshake, server: ServerHandshake) -> None:
    """Both sides, to the end or to a refusal."""
    answer = server.feed(client.prove(server.feed(client.hello())))
    assert auth.is_accepted(answer[:1])
    client.verify(answer[1:])


def test_both_sides_prove_the_secret_byte_by_byte() -> None:
    server = server_side()
    client = client_side("tm-1")
    challenge = b"".join(server.feed(bytes([byte])) for byte in client.hello())
    assert len(challenge) == auth.CHALLENGE_BYTES
    answer = b"".join(server.feed(bytes([byte])) for byte in client.prove(challenge))
    assert server.done and server.identity == "tm-1"
    assert auth.is_accepted(answer[:1])
    client.verify(answer[1:])


def test_bytes_behind_the_handshake_are_kept() -> None:
    server = server_side()
    client = client_side()
    server.feed(client.prove(server.feed(client.hello())) + b"more")
    assert server.rest() == b"more"


def test_wrong_secret_is_refused_by_the_server() -> None:
    server = server_side(peer="10.0.0.7:4711")
    client = client_side(secret=b"other")
    proof = client.prove(server.feed(client.hello()))
    with pytest.raises(Refused) as caught:
        server.feed(proof)
    assert not server.done
    assert isinstance(caught.value.error, AuthenticationFailed)
    assert "10.0.0.7:4711" in caught.value.error.message
    assert "security.cluster-secret-file" in caught.value.error.message
    assert isinstance(auth.explain_answer("server", caught.value.reply), AuthenticationFailed)


def test_server_that_does_not_know_the_secret_is_refused_by_the_client() -> None:
    client = client_side(dialled="server:1")
    impostor = server_side()
    client.prove(impostor.feed(client.hello()))
    with pytest.raises(AuthenticationFailed, match="server:1 does not know the cluster secret"):
        client.verify(b"\x00" * auth.PROOF_BYTES)


def test_a_clients_own_proof_does_not_prove_the_server() -> None:
    server = server_side()
    client = client_side()
    proof = client.prove(server.feed(client.hello()))
    with pytest.raises(AuthenticationFailed):
        client.verify(proof)


def test_a_recorded_conversation_is_useless() -> None:
    first = server_side()
    client = client_side()
    hello = client.hello()
    proof = client.prove(first.feed(hello))
    second = server_side()
    second.feed(hello)
    with pytest.raises(Refused):
        second.feed(proof)


def test_identity_cannot_be_changed_on_the_way() -> None:
    server = server_side()
    client = client_side("tm-1")
    challenge = server.feed(client.hello().replace(b"tm-1", b"tm-2"))
    with pytest.raises(Refused):
        server.feed(client.prove(challenge))


def test_a_process_that_dials_itself_proves_nothing() -> None:
    """Whoever has its port reflects what it sends to its own port, which is another one."""
    for role in Role:
        for wants in Role:
            client = client_side(role=role, wants=wants, dialled="localhost:6123", reached="127.0.0.1:6123")
            with pytest.raises(Refused) as caught:
                shake_hands(client, server_side(role, local="127.0.0.1:6124"))
            assert isinstance(caught.value.error, WrongProcess)


def test_another_role_than_the_one_that_was_dialled_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        shake_hands(client_side(), server_side(Role.DRIVER, peer="10.0.0.7:4711"))
    assert caught.value.error.message == (
        "the TaskManager at 10.0.0.7:4711 wants the JobManager of cluster 'c' at master:6123 (10.0.0.5:6123),"
        " and here is the driver of cluster 'c' at 10.0.0.5:6123; check which process listens at master:6123,"
        " and whether something passes connections on"
    )
    error = auth.explain_answer("master:6123", caught.value.reply)
    assert isinstance(error, WrongProcess) and error.retryable
    assert error.message == f"master:6123 refused the connection: {caught.value.error.message}"


@pytest.mark.parametrize("server", Role)
@pytest.mark.parametrize("caller", Role)
def test_processes_are_called_by_those_who_have_to(caller: Role, server: Role) -> None:
    client = client_side(role=caller, wants=server)
    if caller in CALLERS[server]:
        shake_hands(client, server_side(server))
        return
    with pytest.raises(Refused, match=f"no {caller.value} calls a {server.value}"):
        shake_hands(client, server_side(server))


def test_another_cluster_with_the_same_secret_is_refused() -> None:
    with pytest.raises(Refused, match="of cluster 'd' at .*of cluster 'c' at .*high-availability.cluster-id"):
        shake_hands(client_side(cluster_id="d"), server_side())
    # a client that knows the secret only
    shake_hands(client_side(role=Role.CLIENT, cluster_id=""), server_side())


@pytest.mark.parametrize("reached", ["10.0.0.5:6124", "10.0.0.6:6123", "127.0.0.1:6123", "[::1]:6123"])
def test_a_connection_that_was_passed_on_is_refused(reached: str) -> None:
    """Even one that was dialled by the server's own name."""
    with pytest.raises(Refused, match="it passes connections on.*security.translated-addresses") as caught:
        shake_hands(client_side(reached=reached), server_side())
    assert f"at master:6123 ({reached})" in caught.value.error.message
    assert f"at {HERE};" in caught.value.error.message


def test_addresses_may_be_translated_where_an_option_says_so() -> None:
    translated = ("master:6123", "gateway:*")
    shake_hands(
        client_side(dialled="Master:6123", reached="192.0.2.1:6123"), server_side(translated=translated)
    )
    shake_hands(
        client_side(dialled="gateway:40123", reached="192.0.2.1:40123"), server_side(translated=translated)
    )
    with pytest.raises(Refused, match="passes connections on"):
        shake_hands(
            client_side(dialled="m:6123", reached="192.0.2.1:6123"), server_side(translated=translated)
        )


def test_who_does_not_know_the_secret_is_not_told_who_it_is() -> None:
    with pytest.raises(Refused) as caught:
        shake_hands(client_side(secret=b"other", wants=Role.DRIVER), server_side(cluster_id="private"))
    assert isinstance(caught.value.error, AuthenticationFailed) and b"private" not in caught.value.reply


@pytest.mark.parametrize("name", [b"TaskManager", b"JobManager", b"master:6123", HERE.encode()])
def test_names_cannot_be_changed_on_the_way(name: bytes) -> None:
    server, client = server_side(), client_side()
    challenge = server.feed(
        client.hello().replace(name, name.swapcase() if name.isalpha() else b"9" * len(name))
    )
    with pytest.raises(Refused, match="does not know the cluster secret"):
        server.feed(client.prove(challenge))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (("127.0.0.1", 1), "127.0.0.1:1"),
        (("::ffff:10.0.0.5", 6123, 0, 0), "10.0.0.5:6123"),
        (("fe80::1%eth0", 6123, 0, 2), "[fe80::1]:6123"),
        (("2001:DB8:0::1", 6123, 0, 0), "[2001:db8::1]:6123"),
    ],
)
def test_both_ends_write_an_address_alike(address: tuple[object, ...], expected: str) -> None:
    assert numeric(address) == expected


def test_other_version_is_named_on_both_sides() -> None:
    hello = bytearray(client_side().hello())
    hello[len(auth.MAGIC) + 1] = 9
    with pytest.raises(Refused, match="speaks version 9") as caught:
        server_side().feed(bytes(hello))
    error = auth.explain_answer("server", caught.value.reply)
    assert isinstance(error, RpcProtocolError) and "install the same yarnflow version" in error.message
    challenge = auth.MAGIC + b"\x00\x09" + b"n" * auth.NONCE_BYTES
    with pytest.raises(RpcProtocolError, match="version 9"):
        client_side().prove(challenge)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x01\x00\x01\x00\x00\x00\x04ping",
        b"\x00\x00\x00\x20\x80\x01\x00\x01",
        b"\x16\x03\x01\x02\x00",
        b"garbage",
        b"Y",
        b"YARN!",
    ],
)
def test_other_protocols_are_refused_at_their_first_odd_byte(data: bytes) -> None:
    server = server_side()
    if auth.MAGIC.startswith(data):
        assert server.feed(data) == b""
        return
    with pytest.raises(Refused, match="not the yarnflow protocol") as caught:
        server.feed(data)
    assert caught.value.reply.startswith(b"yarnflow refused: RPC_PROTOCOL: ")
    assert caught.value.reply.count(b"\n") == 1


def test_http_gets_an_http_answer() -> None:
    with pytest.raises(Refused) as caught:
        server_side().feed(b"GET /jobs HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = caught.value.reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"HTTP request to a yarnflow RPC port" in body


def test_identity_has_a_limit_and_is_text() -> None:
    with pytest.raises(RpcProtocolError, match="identity"):
        client_side("x" * 513)
    with pytest.raises(RpcProtocolError, match="shorten high-availability.cluster-id"):
        client_side(cluster_id="c" * 4096)
    hello = client_side("tm").hello()
    start = hello[: len(auth.MAGIC) + 2 + auth.NONCE_BYTES]
    with pytest.raises(Refused, match="65535 bytes"):
        server_side().feed(start + b"\xff\xff")
    for announced in (hello[len(start) + 2 : -2] + b"\xff\xff", b"\x00", b"\x00\x05tm", b"\x00\x00" * 5):
        with pytest.raises(Refused, match="not 6 texts"):
            server_side().feed(start + len(announced).to_bytes(2, "big") + announced)


def test_empty_secret_is_no_secret() -> None:
    with pytest.raises(AuthenticationFailed, match="secret is empty"):
        Member(Role.CLIENT, b"")


def test_answers_that_are_no_handshake_are_explained() -> None:
    assert isinstance(auth.explain_answer("host:1", b""), RpcUnavailable)
    error = auth.explain_answer("host:1", b"SSH-2.0-OpenSSH_9.6")
    assert isinstance(error, RpcProtocolError) and "SSH-2.0" in error.message and "host:1" in error.message

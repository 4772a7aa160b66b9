"""The handshake, without sockets."""

from __future__ import annotations

import pytest

from yarnflow.errors import AuthenticationFailed, RpcProtocolError, RpcUnavailable
from yarnflow.rpc import auth
from yarnflow.rpc.auth import ClientHandshake, Refused, ServerHandshake

SECRET = b"s" * 32


def test_both_sides_prove_the_secret_byte_by_byte() -> None:
    server = ServerHandshake(SECRET, "peer")
    client = ClientHandshake(SECRET, "server", "tm-1")
    challenge = b"".join(server.feed(bytes([byte])) for byte in client.hello())
    assert len(challenge) == auth.CHALLENGE_BYTES
    answer = b"".join(server.feed(bytes([byte])) for byte in client.prove(challenge))
    assert server.done and server.identity == "tm-1"
    assert auth.is_accepted(answer[:1])
    client.verify(answer[1:])


def test_bytes_behind_the_handshake_are_kept() -> None:
    server = ServerHandshake(SECRET, "peer")
    client = ClientHandshake(SECRET, "server")
    server.feed(client.prove(server.feed(client.hello())) + b"more")
    assert server.rest() == b"more"


def test_wrong_secret_is_refused_by_the_server() -> None:
    server = ServerHandshake(SECRET, "10.0.0.7:4711")
    client = ClientHandshake(b"other", "server")
    proof = client.prove(server.feed(client.hello()))
    with pytest.raises(Refused) as caught:
        server.feed(proof)
    assert not server.done
    assert isinstance(caught.value.error, AuthenticationFailed)
    assert "10.0.0.7:4711" in caught.value.error.message
    assert "security.cluster-secret-file" in caught.value.error.message
    assert isinstance(auth.explain_answer("server", caught.value.reply), AuthenticationFailed)


def test_server_that_does_not_know_the_secret_is_refused_by_the_client() -> None:
    client = ClientHandshake(SECRET, "server:1")
    impostor = ServerHandshake(SECRET, "peer")
    client.prove(impostor.feed(client.hello()))
    with pytest.raises(AuthenticationFailed, match="server:1 does not know the cluster secret"):
        client.verify(b"\x00" * auth.PROOF_BYTES)


def test_a_clients_own_proof_does_not_prove_the_server() -> None:
    server = ServerHandshake(SECRET, "peer")
    client = ClientHandshake(SECRET, "server")
    proof = client.prove(server.feed(client.hello()))
    with pytest.raises(AuthenticationFailed):
        client.verify(proof)


def test_a_recorded_conversation_is_useless() -> None:
    first = ServerHandshake(SECRET, "peer")
    client = ClientHandshake(SECRET, "server")
    hello = client.hello()
    proof = client.prove(first.feed(hello))
    second = ServerHandshake(SECRET, "peer")
    second.feed(hello)
    with pytest.raises(Refused):
        second.feed(proof)


def test_identity_cannot_be_changed_on_the_way() -> None:
    server = ServerHandshake(SECRET, "peer")
    client = ClientHandshake(SECRET, "server", "tm-1")
    challenge = server.feed(client.hello().replace(b"tm-1", b"tm-2"))
    with pytest.raises(Refused):
        server.feed(client.prove(challenge))


def test_other_version_is_named_on_both_sides() -> None:
    hello = bytearray(ClientHandshake(SECRET, "server").hello())
    hello[len(auth.MAGIC) + 1] = 9
    with pytest.raises(Refused, match="speaks version 9") as caught:
        ServerHandshake(SECRET, "peer").feed(bytes(hello))
    error = auth.explain_answer("server", caught.value.reply)
    assert isinstance(error, RpcProtocolError) and "install the same yarnflow version" in error.message
    challenge = auth.MAGIC + b"\x00\x09" + b"n" * auth.NONCE_BYTES
    with pytest.raises(RpcProtocolError, match="version 9"):
        ClientHandshake(SECRET, "server").prove(challenge)


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
    server = ServerHandshake(SECRET, "peer")
    if auth.MAGIC.startswith(data):
        assert server.feed(data) == b""
        return
    with pytest.raises(Refused, match="not the yarnflow protocol") as caught:
        server.feed(data)
    assert caught.value.reply.startswith(b"yarnflow refused: RPC_PROTOCOL: ")
    assert caught.value.reply.count(b"\n") == 1


def test_http_gets_an_http_answer() -> None:
    with pytest.raises(Refused) as caught:
        ServerHandshake(SECRET, "peer").feed(b"GET /jobs HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = caught.value.reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"HTTP request to a yarnflow RPC port" in body


def test_identity_has_a_limit_and_is_text() -> None:
    with pytest.raises(RpcProtocolError, match="identity"):
        ClientHandshake(SECRET, "server", "x" * 513)
    hello = ClientHandshake(SECRET, "server", "tm").hello()
    with pytest.raises(Refused, match="65535 bytes"):
        ServerHandshake(SECRET, "peer").feed(hello[:-4] + b"\xff\xff")
    with pytest.raises(Refused, match="not text"):
        ServerHandshake(SECRET, "peer").feed(hello[:-2] + b"\xff\xff")


def test_empty_secret_is_no_secret() -> None:
    for side in (ServerHandshake, ClientHandshake):
        with pytest.raises(AuthenticationFailed, match="secret is empty"):
            side(b"", "peer")


def test_answers_that_are_no_handshake_are_explained() -> None:
    assert isinstance(auth.explain_answer("host:1", b""), RpcUnavailable)
    error = auth.explain_answer("host:1", b"SSH-2.0-OpenSSH_9.6")
    assert isinstance(error, RpcProtocolError) and "SSH-2.0" in error.message and "host:1" in error.message

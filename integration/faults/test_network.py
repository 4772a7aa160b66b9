"""The network that faults are tried on: what is cut is cut, and all is gone at its end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from integration.faults.network import Host, network
from integration.faults.relay import Behaviour
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

#: prints what a connection brings back for what is sent, or the class of the error
_ASK = """
import socket, sys
try:
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))
    connection.sendall(sys.argv[4].encode())
    connection.shutdown(socket.SHUT_WR)
    print(connection.makefile(errors="replace").read())
except OSError as error:
    print(type(error).__name__)
"""
#: answers datagrams to one sender, and prints what it gets
_HEAR = """
import socket, sys
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("0.0.0.0", 5000))
heard.settimeout(float(sys.argv[1]))
print("ready", flush=True)
try:
    print(heard.recv(100).decode(), flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
"""
_SAY = """
import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"word", (sys.argv[1], 5000))
"""


def ask(host: Host, address: str, port: int, text: str = "a word", timeout_s: float | None = None) -> str:
    limit_s = PATIENCE.answer_s if timeout_s is None else timeout_s
    return host.run(sys.executable, "-c", _ASK, address, str(port), str(limit_s), text).strip()


def heard(source: Host, target: Host, timeout_s: float | None = None) -> str:
    limit_s = PATIENCE.answer_s if timeout_s is None else timeout_s
    words = [str(word) for word in target.command([sys.executable, "-c", _HEAR, str(limit_s)])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        source.run(sys.executable, "-c", _SAY, target.address)
        return process.stdout.readline().strip()


@contextmanager
def echo() -> Iterator[int]:
    """A server of this machine's localhost that sends back what it gets."""

    def serve(connection: socket.socket) -> None:
        with closing(connection):
            while content := connection.recv(65536):
                connection.sendall(content)

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[connection], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_cut_is_one_way_and_ends() -> None:
    with network() as made:
        here, there = made.host("here"), made.host("there")
        with made.cut(here, there):
            assert heard(here, there, timeout_s=1) == "TimeoutError"
            assert heard(there, here) == "word"
        assert heard(here, there) == "word"
        with made.cut_off(here, [here, there]):
            assert heard(there, here, timeout_s=1) == "TimeoutError"
        with made.loss([here], 1.0):
            assert heard(there, here, timeout_s=1) == "TimeoutError"
            assert heard(here, there) == "word"


def test_a_service_of_localhost_is_reached_until_it_is_cut() -> None:
    with echo() as port, network([port]) as made:
        host, other = made.host("host"), made.host("other")
        assert ask(host, "127.0.0.1", port) == "a word"
        with made.cut_services([host], [port]):
            assert ask(host, "127.0.0.1", port, timeout_s=1) == "TimeoutError"
            assert ask(other, "127.0.0.1", port) == "a word"
        assert ask(host, "127.0.0.1", port) == "a word"
        # others of the machine are not the host's
        with socket.create_server(("127.0.0.1", 0)) as secret:
            assert ask(host, "127.0.0.1", secret.getsockname()[1]) == "ConnectionRefusedError"


def test_a_relay_passes_all_and_changes_what_it_is_told_to() -> None:
    with echo() as port, network([port], relays=True) as made:
        host = made.host("host")
        assert ask(host, "127.0.0.1", port, "word" * 1000) == "word" * 1000
        with made.relayed([host], Behaviour(delay_s=1.0)):
            assert ask(host, "127.0.0.1", port, timeout_s=1) == "TimeoutError"
            assert ask(host, "127.0.0.1", port) == "a word"
        with made.relayed([host], Behaviour(flip_ports=[port], flip_share=1.0, seed=1)):
            assert ask(host, "127.0.0.1", port) != "a word"
        assert host.behave()["flipped"] >= 2
        with made.relayed([host], Behaviour(flip_ports=[port + 1], flip_share=1.0)):
            assert ask(host, "127.0.0.1", port) == "a word"
        with made.cut_services([host], [port]):
            assert ask(host, "127.0.0.1", port, timeout_s=1) == "TimeoutError"


def test_nothing_of_it_is_left() -> None:
    def state() -> str:
        commands = (["ip", "-o", "link"], ["ip", "netns"], ["iptables", "-t", "nat", "-S"])
        return "".join(
            subprocess.run(words, capture_output=True, text=True, check=True).stdout for words in commands
        )

    before = state()
    with pytest.raises(RuntimeError), network([1, 2], relays=True) as made:
        made.host("here")
        assert state() != before
        raise RuntimeError
    assert state() == before

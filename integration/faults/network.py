"""Hosts of a network on this machine: network namespaces at one bridge, to be cut off from each other.

A host reaches the others and this machine by their addresses, and some ports of this machine's ``localhost``
as its own: the Hadoop and the ZooKeeper of tests listen there only.  Faults are rules of ``iptables`` in the
namespace of a host.  In the namespace of the machine there is one chain for each network.

A cut drops packets, as a broken cable does: nobody is told, and what was sent is sent again later.  Delay and
flipped bits need a relay in each host (``relays=True``), as not every kernel can delay packets.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from integration.faults.relay import MARK, Behaviour
from tests.patience import PATIENCE

#: of namespaces, bridges and chains; the pid of their owner follows
_PREFIX: Final = "yf"
#: above the ports that Hadoop is given, which are not to be taken in a host by anybody else
_LOCAL_PORTS: Final = "40000 60999"
_RELAY_PORT: Final = 39999
#: iptables takes so many ports in one rule
_PORTS_OF_A_RULE: Final = 15


@dataclass
class Host:
    """One of a network; made by :meth:`Network.host`."""

    name: str
    namespace: str
    address: str
    relay: subprocess.Popen[str] | None = None

    def command(self, words: Sequence[str | Path]) -> list[str | Path]:
        """The command that runs a command in this host, in the same process."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "--", *words]

    def run(self, *words: str) -> str:
        """Run a command in this host to its end; returns its standard output.

        Raises
        ------
        AssertionError
            It failed; carries what it said.
        """
        return _run(*map(str, self.command(words)))

    def behave(self, behaviour: Behaviour | None = None) -> dict[str, Any]:
        """Tell the relay what to do; None only asks it what it has done."""
        assert self.relay is not None and self.relay.stdin and self.relay.stdout, "a network without relays"
        self.relay.stdin.write(json.dumps(asdict(behaviour) if behaviour else {}) + "\n")
        self.relay.stdin.flush()
        return dict(json.loads(self.relay.stdout.readline()))

    @contextmanager
    def rule(self, *words: str) -> Iterator[None]:
        """A rule of this host's ``iptables`` for the time of the block; ``words`` begin with its chain."""
        # before all others, and taken away by its text
        self.run("iptables", "-w", "-I", *words)
        try:
            yield
        finally:
            self.run("iptables", "-w", "-D", *words)


@dataclass
class Network:
    """A bridge and its hosts; made by :func:`network`."""

    bridge: str
    #: ``10.x.y``
    subnet: str
    #: of this machine's localhost, which every host has as its own
    services: tuple[int, ...]
    relays: bool
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def gateway(self) -> str:
        """This machine's own address."""
        return f"{self.subnet}.1"

    def host(self, name: str) -> Host:
        """One more host."""
        number = len(self.hosts) + 2
        host = Host(name, f"{self.bridge}-{number}", f"{self.subnet}.{number}")
        outside = f"{self.bridge}v{number}"
        _run("ip", "netns", "add", host.namespace)
        self.hosts[name] = host
        _run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        _run("ip", "link", "set", outside, "master", self.bridge, "up")
        for words in (
            "ip link set lo up",
            f"ip addr add {host.address}/24 dev eth0",
            "ip link set eth0 up",
            f"ip route add default via {self.gateway}",
            "sysctl -qw net.ipv4.conf.all.route_localnet=1",
            f"sysctl -qw net.ipv4.ip_local_port_range={_LOCAL_PORTS.replace(' ', ',')}",
        ):
            host.run(*[word.replace(",", " ") for word in words.split()])
        if self.relays:
            self._start_relay(host)
        for ports in _port_lists(self.services):
            host.run(
                *"iptables -w -t nat -A OUTPUT -p tcp -d 127.0.0.1 -m multiport --dports".split(),
                *(ports, "-j", "DNAT", "--to-destination", self.gateway),
            )
        host.run(
            *"iptables -w -t nat -A POSTROUTING -p tcp -s 127.0.0.1 -d".split(),
            *(self.gateway, "-j", "MASQUERADE"),
        )
        return host

    def _start_relay(self, host: Host) -> None:
        script = Path(__file__).with_name("relay.py")
        words = [str(word) for word in host.command([sys.executable, script, str(_RELAY_PORT)])]
        host.relay = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert host.relay.stdout and host.relay.stdout.readline(), "the relay did not start"
        # those of the relay itself go where they are meant to
        common = f"iptables -w -t nat -A OUTPUT -p tcp -m mark ! --mark {MARK}"
        back = f"-j REDIRECT --to-ports {_RELAY_PORT}"
        host.run(*f"{common} -d {host.address} -j ACCEPT".split())
        host.run(*f"{common} -d {self.subnet}.0/24 {back}".split())
        for ports in _port_lists(self.services):
            host.run(*f"{common} -d 127.0.0.1 -m multiport --dports {ports} {back}".split())

    # --- faults, each for the time of a block ---

    @contextmanager
    def cut(self, source: Host, target: Host) -> Iterator[None]:
        """Nothing of the first reaches the second; what the second sends arrives."""
        with target.rule("INPUT", "-s", source.address, "-j", "DROP"):
            yield

    @contextmanager
    def cut_off(self, host: Host, others: Iterable[Host]) -> Iterator[None]:
        """No packet passes between the host and others, in either direction."""
        with ExitStack() as cuts:
            for other in others:
                if other is not host:
                    cuts.enter_context(self.cut(host, other))
                    cuts.enter_context(self.cut(other, host))
            yield

    @contextmanager
    def cut_services(self, hosts: Iterable[Host], ports: Iterable[int]) -> Iterator[None]:
        """No packet passes between hosts and some of the services of this machine's localhost."""
        with ExitStack() as cuts:
            for host in hosts:
                for listed in _port_lists(ports):
                    many = f"-p tcp -m multiport --dports {listed} -d {self.gateway} -j DROP".split()
                    cuts.enter_context(host.rule("OUTPUT", *many))
                    many = f"-p tcp -m multiport --sports {listed} -s {self.gateway} -j DROP".split()
                    cuts.enter_context(host.rule("INPUT", *many))
            yield

    @contextmanager
    def loss(self, hosts: Iterable[Host], share: float) -> Iterator[None]:
        """A share of the packets that come to hosts is lost."""
        lost = f"-i eth0 -m statistic --mode random --probability {share} -j DROP".split()
        with ExitStack() as losses:
            for host in hosts:
                losses.enter_context(host.rule("INPUT", *lost))
            yield

    @contextmanager
    def relayed(self, hosts: Sequence[Host], behaviour: Behaviour) -> Iterator[None]:
        """Relays delay or change what hosts send and are sent on connections that they begin."""
        for host in hosts:
            host.behave(behaviour)
        try:
            yield
        finally:
            for host in hosts:
                host.behave(Behaviour())


@contextmanager
def network(services: Iterable[int] = (), relays: bool = False) -> Iterator[Network]:
    """A network without hosts, and its end with all of them; needs root.

    Parameters
    ----------
    services : iterable of int
        TCP ports of this machine's localhost that every host has as its own.
    relays : bool
        Whether delay and flipped bits are possible.
    """
    _remove_left_over()
    bridge = f"{_PREFIX}{os.getpid()}"
    made = Network(bridge, _free_subnet(), tuple(services), relays)
    try:
        _run("ip", "link", "add", bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{made.gateway}/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        # packets to 127.0.0.1 that come from elsewhere are dropped by default
        _run("sysctl", "-qw", f"net.ipv4.conf.{bridge}.route_localnet=1")
        _run("iptables", "-w", "-t", "nat", "-N", bridge)
        for ports in _port_lists(made.services):
            rule = f"-p tcp -d {made.gateway} -m multiport --dports {ports} -j DNAT"
            _run(
                *("iptables", "-w", "-t", "nat", "-A", bridge),
                *(*rule.split(), "--to-destination", "127.0.0.1"),
            )
        _run("iptables", "-w", "-t", "nat", "-A", "PREROUTING", "-i", bridge, "-j", bridge)
        yield made
    finally:
        for host in made.hosts.values():
            if host.relay is not None:
                host.relay.kill()
                host.relay.wait()
                for stream in (host.relay.stdin, host.relay.stdout):
                    assert stream is not None
                    stream.close()
        _remove(bridge)


def _remove_left_over() -> None:
    """Of test runs that were killed."""
    for line in _run("ip", "-o", "link", "show", "type", "bridge").splitlines():
        name = line.split(": ")[1]
        pid = name.removeprefix(_PREFIX)
        if name.startswith(_PREFIX) and pid.isdigit() and not Path("/proc", pid).exists():
            _remove(name)


def _remove(bridge: str) -> None:
    for line in _run("ip", "netns", "list").splitlines():
        if line.startswith(f"{bridge}-"):
            # with it goes the other end of its cable, once its last process has ended
            _run("ip", "netns", "delete", line.split()[0])
    for line in _run("ip", "-o", "link", "show", "type", "veth").splitlines():
        name = line.split(": ")[1].partition("@")[0]
        if name.startswith(f"{bridge}v"):
            _run("ip", "link", "delete", name, check=False)
    rules = ("-D", "PREROUTING", "-i", bridge, "-j", bridge), ("-F", bridge), ("-X", bridge)
    for rule in rules:
        _run("iptables", "-w", "-t", "nat", *rule, check=False)
    _run("ip", "link", "delete", bridge, check=False)


def _free_subnet() -> str:
    taken = _run("ip", "-o", "-4", "addr") + _run("ip", "-4", "route")
    while (found := f"10.{random.randrange(100, 250)}.{random.randrange(1, 255)}") and f" {found}." in taken:
        continue
    return found


def _port_lists(ports: Iterable[int]) -> Iterator[str]:
    every = [str(port) for port in ports]
    for first in range(0, len(every), _PORTS_OF_A_RULE):
        yield ",".join(every[first : first + _PORTS_OF_A_RULE])


def _run(*words: str, check: bool = True) -> str:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE.process_s
    )
    assert done.returncode == 0 or not check, f"{' '.join(words)}: {done.stderr or done.stdout}"
    return done.stdout

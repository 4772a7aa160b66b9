"""IDL, gateway protocols and method table say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from yarnflow.core import ports
from yarnflow.core.ids import AllocationId, JobId
from yarnflow.core.messages import SlotRequest
from yarnflow.rpc.methods import DRIVER, Service, methods_of

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("Dispatcher", "ResourceManager", "JobMaster", "TaskExecutor", "Driver", "Master")
_METHOD = re.compile(
    r"/\*\*(?P<doc>(?:(?!\*/).)*)\*/\s*[\w.<>]+ (?P<name>\w+)\((?P<args>[^)]*)\)\s*throws", re.S
)


def idl_of(service: str) -> dict[str, tuple[str, list[str]]]:
    text = (ROOT / "thrift" / f"{service.lower()}.thrift").read_text()
    body = text[text.index("service ") :]
    return {
        m["name"]: (m["doc"], [part.split()[-1] for part in m["args"].split(",")])
        for m in _METHOD.finditer(body)
    }


@pytest.mark.parametrize("service", SERVICES)
def test_idl_has_exactly_the_methods_of_the_protocol(service: str) -> None:
    specs = {spec.wire_name: spec for spec in methods_of(service).values()}
    idl = idl_of(service)
    assert list(idl) == list(specs)
    for name, (_, arguments) in idl.items():
        assert arguments == ["context", *specs[name].arg_names]


@pytest.mark.parametrize("service", SERVICES)
def test_idl_says_of_every_method_whether_it_is_idempotent(service: str) -> None:
    for spec in methods_of(service).values():
        doc = idl_of(service)[spec.wire_name][0]
        assert ("Idempotent" in doc) is not ("Not idempotent" in doc), spec.name
        assert ("Idempotent" in doc) is spec.idempotent, spec.name


@pytest.mark.parametrize("service", SERVICES)
def test_protocol_agrees_about_idempotence(service: str) -> None:
    protocol = getattr(ports, f"{service}Gateway")
    for spec in methods_of(service).values():
        doc = getattr(protocol, spec.name).__doc__
        if "dempotent" in doc:
            assert ("Idempotent" in doc) is spec.idempotent, spec.name


def test_only_await_calls_are_long_polls() -> None:
    polls = [spec.name for service in SERVICES for spec in methods_of(service).values() if spec.long_poll]
    assert polls == ["await_job_change", "await_checkpoint", "await_collected"]


def test_incomplete_implementation_is_refused_at_once() -> None:
    class Half:
        def deploy(self) -> None: ...

    lacking = "cancel, take_checkpoint, shut_down, ping, thread_dump, halt, set_log_level of service Driver"
    with pytest.raises(TypeError, match=f"Half lacks {lacking}"):
        Service(DRIVER, cast(ports.DriverGateway, Half()))


@pytest.mark.parametrize(
    ("service", "method", "arguments", "job_id"),
    [
        ("Dispatcher", "cancel_job", ["ab"], "ab"),
        ("Dispatcher", "list_jobs", [], ""),
        ("TaskExecutor", "stop_executor", ["ab", "1"], "ab"),
        ("TaskExecutor", "request_slot", [SlotRequest(JobId("ab"), AllocationId("a"), 0)], "ab"),
        ("TaskExecutor", "ping", [], ""),
    ],
)
def test_calls_tell_which_job_they_are_about(
    service: str, method: str, arguments: list[object], job_id: str
) -> None:
    assert methods_of(service)[method].job_of(arguments) == job_id

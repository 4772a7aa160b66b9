"""Every message class survives Thrift and JSON."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.patience import PATIENCE
from tests.rpc.samples import MESSAGE_CLASSES, sample, values_of
from yarnflow.core import messages, states, yarn
from yarnflow.core.checkpoint import messages as checkpoint_messages
from yarnflow.core.ids import TaskManagerId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import (
    DriverReport,
    ErrorInfo,
    Fence,
    JobSubmission,
    SlotStatus,
    TaskManagerHeartbeat,
)
from yarnflow.errors import RpcProtocolError
from yarnflow.rpc import framing
from yarnflow.rpc._gen.types import constants, ttypes
from yarnflow.rpc.codec import from_thrift, struct_for, to_thrift

ROOT = Path(__file__).resolve().parents[2]
_QUICK = settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def over_the_wire(value: Any) -> Any:
    struct = to_thrift(value)
    return from_thrift(type(value), framing.decode(type(struct), framing.encode(struct), 0))


@pytest.mark.parametrize("cls", MESSAGE_CLASSES, ids=lambda cls: cls.__name__)
@_QUICK
@given(data=st.data())
def test_any_message_survives_thrift(cls: type, data: st.DataObject) -> None:
    value = data.draw(values_of(cls))
    assert over_the_wire(value) == value


@pytest.mark.parametrize("cls", MESSAGE_CLASSES, ids=lambda cls: cls.__name__)
@_QUICK
@given(data=st.data())
def test_any_message_survives_json(cls: type, data: st.DataObject) -> None:
    value = data.draw(values_of(cls))
    text = to_json(value)
    assert "\n" not in text
    assert from_json(cls, text) == value


@pytest.mark.parametrize("cls", MESSAGE_CLASSES, ids=lambda cls: cls.__name__)
def test_full_message_survives_both(cls: type) -> None:
    value = sample(cls)
    assert over_the_wire(value) == value
    assert from_json(cls, to_json(value)) == value


def test_absent_optional_fields_take_the_defaults() -> None:
    struct: Any = ttypes
    assert from_thrift(SlotStatus, struct.TSlotStatus(index=3)) == SlotStatus(3)
    beat = struct.TTaskManagerHeartbeat(taskManagerId="tm-1")
    assert from_thrift(TaskManagerHeartbeat, beat) == TaskManagerHeartbeat(TaskManagerId("tm-1"))
    assert from_json(SlotStatus, '{"index": 3, "from_a_newer_version": 1}') == SlotStatus(3)


def test_absent_required_field_is_named() -> None:
    struct: Any = ttypes
    with pytest.raises(RpcProtocolError, match="TFence.epoch is missing"):
        from_thrift(Fence, struct.TFence(leaderId="x"))
    with pytest.raises(RpcProtocolError, match="Fence: Object missing required field `epoch`; check"):
        from_json(Fence, '{"leader_id": "x"}')


def test_unknown_enum_number_and_name_are_named() -> None:
    struct = to_thrift(sample(DriverReport))
    struct.phase = 99
    with pytest.raises(RpcProtocolError, match="DriverPhase has no member 99"):
        from_thrift(DriverReport, struct)
    text = to_json(sample(DriverReport)).replace('"CANCELED"', '"DREAMING"')
    with pytest.raises(RpcProtocolError, match="DriverReport.phase: Invalid enum value 'DREAMING'"):
        from_json(DriverReport, text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "ErrorInfo: Expected `object`, got `array`; check"),
        ('{"code": 1, "message": ""}', "ErrorInfo.code: Expected `str`, got `int`; check"),
        ('{"code": "", "message": null}', "ErrorInfo.message: Expected `str`, got `null`; check"),
    ],
)
def test_bad_json_is_one_clear_error(text: str, complaint: str) -> None:
    with pytest.raises(RpcProtocolError) as caught:
        from_json(ErrorInfo, text)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ('"%%%"', "Invalid base64 encoded string"),
        ("1", "Expected `bytes`, got `int`"),
        ('"ä"', "Invalid base64 encoded string"),
    ],
)
def test_bad_base64_is_named(raw: str, complaint: str) -> None:
    text = to_json(sample(JobSubmission))
    start = text.index('"files":')
    broken = text[:start] + '"files":{"a.py":' + raw + '},"script_argv":[]}'
    with pytest.raises(RpcProtocolError) as caught:
        from_json(JobSubmission, broken)
    assert str(caught.value).startswith(f"JobSubmission.files[...]: {complaint}; check")


def test_bool_is_no_int() -> None:
    with pytest.raises(RpcProtocolError, match="Fence.epoch: Expected `int`, got `bool`"):
        from_json(Fence, '{"leader_id": "x", "epoch": true}')
    with pytest.raises(TypeError, match="Fence.epoch: Expected `int`, got `bool`"):
        to_json(Fence("x", True))


def test_enums_are_written_by_name() -> None:
    """The library writes values; files and Thrift hold names."""
    for module in (messages, checkpoint_messages, yarn):
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, Enum):
                assert all(member.value == member.name for member in cls), cls


class Colour(Enum):
    RED = "RED"


@dataclass(frozen=True)
class Foreign:
    colour: Colour


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(RpcProtocolError, match="no TForeign"):
        to_thrift(Foreign(Colour.RED))
    with pytest.raises(RpcProtocolError, match="int is not a message"):
        to_thrift(1)
    with pytest.raises(RpcProtocolError, match="int is not a message"):
        from_thrift(int, 1)
    with pytest.raises(TypeError, match="dataclass instance"):
        to_json(1)


def test_what_thrift_cannot_carry_is_refused() -> None:
    with pytest.raises(RpcProtocolError, match="TFence cannot be encoded"):
        framing.encode(to_thrift(Fence("x", 2**63)))
    with pytest.raises(RpcProtocolError, match="TFence cannot be encoded"):
        framing.encode(to_thrift(Fence("\udc80", 1)))


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None, database=None)
def test_garbage_is_never_more_than_a_protocol_error(garbage: bytes) -> None:
    for cls in (struct_for(JobSubmission), struct_for(TaskManagerHeartbeat)):
        try:
            framing.decode(cls, garbage, 0)
        except RpcProtocolError:
            pass
    try:
        framing.read_header(garbage)
    except RpcProtocolError:
        pass


def test_state_sets_of_the_idl_are_those_of_core() -> None:
    final = {ttypes.TJobStatus(number).name for number in constants.GLOBALLY_TERMINAL_JOB_STATES}
    assert final == {state.name for state in states.GLOBALLY_TERMINAL}
    ended = {ttypes.TExecutionState(number).name for number in constants.TERMINAL_EXECUTION_STATES}
    assert ended == {state.name for state in states.ExecutionState if state.terminal}


def test_every_struct_of_the_idl_has_a_message() -> None:
    known = {f"T{cls.__name__}" for cls in MESSAGE_CLASSES} | {"TCallContext"}
    structs = {name for name, cls in vars(ttypes).items() if hasattr(cls, "thrift_spec") and name[0] == "T"}
    assert structs == known


def test_generated_code_names_what_it_was_made_with() -> None:
    made = (ROOT / "yarnflow/rpc/_gen/types/ttypes.py").read_text()
    assert "py:enum,slots,package_prefix=yarnflow.rpc._gen." in made


def test_gen_thrift_says_what_to_install(tmp_path: Path) -> None:
    for tool in ("bash", "dirname", "env"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    run = subprocess.run(
        [str(ROOT / "scripts/gen-thrift"), "--check"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE.process_s,
    )
    assert run.returncode != 0
    assert "thrift-compiler" in run.stderr

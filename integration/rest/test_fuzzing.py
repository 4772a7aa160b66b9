"""The REST interface of a real JobManager, fuzzed from its own OpenAPI document: no bug is ever found."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from integration.conftest import commands_in, wait_until
from integration.rest.client import Rest, Served
from tests.patience import PATIENCE
from yarnflow.rest.web import openapi_json

load_all_checks()

#: parameter → what there is of it, so that requests go deeper than "not found"
Known = dict[str, list[str]]
#: would end what is fuzzed, or never end themselves
_SPARED: Final = ("/cluster", "/jobs/{jobid}/events")
_WANTED: Final = [
    checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance
]  # fmt: skip
#: a change is not refused for a fault that it did not make: each time the same requests, few of each path
_SAME: Final = settings(
    max_examples=15, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
#: others each time
_OTHERS: Final = settings(
    _SAME, max_examples=int(os.environ.get("YARNFLOW_TEST_REST_EXAMPLES", "100")), derandomize=False
)


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    """A JobManager with a job that waits for slots; its driver is started, and nothing else."""
    running = os.environ.get("YARNFLOW_TEST_REST")
    if running:  # one that is there, to try a test again and again
        yield Rest(running, os.environ.get("YARNFLOW_TEST_REST_TOKEN", ""))
        return
    directory = tmp_path_factory.mktemp("rest")
    with commands_in(directory) as commands:
        here = f"-Dio.tmp.dirs={directory}"
        ports = ("-Djobmanager.rpc.port=0", "-Drest.bind-port=0")
        commands.start("jobmanager", here, *ports)
        served = wait_until(lambda: Served.below(directory), "the JobManager to serve")
        program = directory / "program.py"
        program.write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\n")
        submitted = commands.run(
            "submit", "--detached", "--target", "remote", "-m", served.address, here, program
        )
        assert submitted.process.returncode == 0, submitted.stderr
        yield served.rest


@pytest.fixture(scope="module")
def known(rest: Rest) -> Known:
    """What there is, by the names of parameters."""
    jobs = [job["id"] for job in rest.get("/jobs")["jobs"]]
    return {
        "jobid": jobs,
        "vertexid": [vertex["id"] for job in jobs for vertex in rest.get(f"/jobs/{job}")["vertices"]],
        "taskmanagerid": [each["id"] for each in rest.get("/taskmanagers")["taskmanagers"]],
        "filename": [log["name"] for log in rest.get("/jobmanager/logs")["logs"]],
        "subtaskindex": ["0"],
        "attempt": ["0"],
    }


OPERATIONS: Final = [
    result.ok()
    for result in schemathesis.openapi.from_dict(json.loads(openapi_json())).get_all_operations()
    if isinstance(result, Ok)
]


def aimed(case: schemathesis.Case[Any], known: Known) -> None:
    """Half of the requests are about what there is."""
    chance = random.Random(json.dumps(case.path_parameters, default=str, sort_keys=True))
    for name in case.path_parameters or {}:
        if known.get(name) and chance.random() < 0.5:
            case.path_parameters[name] = chance.choice(known[name])


@pytest.mark.parametrize(
    "how", [pytest.param(_SAME, id="same"), pytest.param(_OTHERS, id="others", marks=pytest.mark.drill)]
)
@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.path not in _SPARED], ids=lambda o: o.label)
def test_no_bug_is_found(
    operation: schemathesis.APIOperation[Any, Any, Any, Any], how: settings, rest: Rest, known: Known
) -> None:
    @how
    @given(case=operation.as_strategy())
    def ask(case: schemathesis.Case[Any]) -> None:
        aimed(case, known)
        headers = {"Authorization": f"Bearer {rest.token}"}
        response = case.call(base_url=rest.url, headers=headers, timeout=PATIENCE.answer_s)
        assert response.status_code != 500, response.text
        case.validate_response(response, checks=_WANTED)

    ask()


def test_it_serves_all_the_same(rest: Rest, known: Known) -> None:
    """After all the others; it is no later request that finds the damage."""
    assert [job["id"] for job in rest.get("/jobs")["jobs"]] == known["jobid"]

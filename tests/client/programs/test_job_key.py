"""Which jobs have one key."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.client.programs.job_key import JobKey, JobKeyChoice, ProgramIdentity


def identity(path: Path, text: str = "run()", *arguments: str, user: str = "ada") -> ProgramIdentity:
    made = ProgramIdentity.of_file(path, text.encode(), arguments)
    return ProgramIdentity(user, made.location, made.digest)


def key(program: ProgramIdentity, name: str = "main") -> str:
    return JobKeyChoice("", program).next(name).key


def test_programs_of_one_name_have_keys_of_their_own(tmp_path: Path) -> None:
    a, b = tmp_path / "a" / "main.py", tmp_path / "b" / "main.py"
    programs = [identity(a), identity(b), identity(a, user="bob")]
    assert len({key(program) for program in programs}) == 3
    assert key(identity(a)) != key(identity(a), "other")
    assert all(key(program).startswith("main@") for program in programs)


def test_an_edited_program_has_its_key_and_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    first, edited, other = identity(path), identity(path, "run(2)"), identity(path, "run()", "--fast")
    assert len({key(first), key(edited), key(other)}) == 1
    assert len({first.digest, edited.digest, other.digest}) == 3


def test_a_link_leads_to_the_same_program(tmp_path: Path) -> None:
    path, link = tmp_path / "main.py", tmp_path / "link.py"
    link.symlink_to(path)
    assert key(identity(path)) == key(identity(link))


def test_what_is_shipped_with_it_belongs_to_the_program(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    digests = []
    for text in ("a = 1", "a = 2"):
        module.write_text(text)
        digests.append(ProgramIdentity.of_file(tmp_path / "main.py", b"", (), [str(module)]).digest)
    assert digests[0] != digests[1]


def test_arguments_are_not_joined(tmp_path: Path) -> None:
    assert identity(tmp_path, "", "a b").digest != identity(tmp_path, "", "a", "b").digest


def test_jobs_of_one_name_are_told_apart_by_their_order(tmp_path: Path) -> None:
    program = identity(tmp_path / "main.py")
    choice = JobKeyChoice("", program)
    first, other, second = (choice.next(name) for name in ("rows", "sums", "rows"))
    assert second.key == f"{first.key}#2" and other.key not in (first.key, second.key)
    assert (first.earlier, second.earlier) == ("rows", "rows#2")


def test_a_key_that_the_user_chose_is_taken_as_it_is(tmp_path: Path) -> None:
    program = identity(tmp_path / "main.py")
    choice = JobKeyChoice("nightly", program)
    assert choice.next("rows") == JobKey("nightly", digest=program.digest)
    assert choice.next("sums").key == "nightly#2"


@pytest.mark.parametrize("name", ["rows", ""])
def test_without_a_program_there_is_none(name: str) -> None:
    assert JobKeyChoice().next(name) == JobKey()

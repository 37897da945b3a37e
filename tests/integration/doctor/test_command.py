"""`vistobueno doctor` as a process: what it prints, how it ends, and that it changes nothing."""

import asyncio
import json
import os
import sys

import psycopg
import pytest

from bot.doctor.examination import BEYOND_SETTINGS
from tests.integration.doctor.house import KEY, SECRET, House

ORDER = ["python", "version", "configuration", *BEYOND_SETTINGS]
READING = {"auth.test", "conversations.info", "users.info"}


async def doctor(house: House, *words: str, **variables: str) -> tuple[int, str, str]:
    """Its exit code and what it prints, on stdout and on stderr."""
    environment = {"PATH": os.environ["PATH"], **house.variables, **variables}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", "doctor", *words),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_where_everything_is_right_every_check_is_ok(house: House) -> None:
    found = await house.findings()
    assert list(found) == ORDER
    assert [finding for finding in found.values() if finding.status != "ok"] == []


async def test_it_prints_one_aligned_line_for_each_check_and_exits_0(house: House) -> None:
    code, out, err = await doctor(house)
    *lines, counted = out.splitlines()
    assert (code, err, len(lines)) == (0, "", len(ORDER))
    assert counted == f"{len(ORDER)} ok."
    status_width = len(lines[0]) - len(lines[0].split(maxsplit=1)[1])
    assert [line[status_width:].startswith(check) for line, check in zip(lines, ORDER, strict=True)] == [
        True
    ] * len(ORDER)


async def test_a_failure_is_a_list_of_objects_and_exit_1(house: House) -> None:
    code, out, err = await doctor(house, "--json", SLACK_BOT_TOKEN="xoxb-wrong", LOG_LEVEL="")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert [entry["check"] for entry in found] == ORDER
    assert all(list(entry) == ["check", "status", "says", "do"] for entry in found)
    assert [entry["check"] for entry in found if entry["status"] == "failed"] == ["slack"]


async def test_it_only_reads(house: House) -> None:
    url = house.database.url
    url += f"{'&' if '?' in url else '?'}options=-cdefault_transaction_read_only%3Don"
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("DELETE FROM runs")
    found = await house.findings(DATABASE_URL=url)
    assert {finding.status for finding in found.values()} == {"ok"}
    assert {call.method for call in house.sandbox.calls} == READING


async def test_it_prints_no_secret(house: House) -> None:
    secrets = ("xoxb-sesame", KEY, SECRET, "pa55word")
    url = "postgresql://me:pa55word@127.0.0.1:1/shop"
    wrong = {"SLACK_BOT_TOKEN": secrets[0], "DATABASE_URL": url, "LOG_LEVEL": "DEBUG"}
    for words, variables in (((), wrong), (("--json",), {})):
        _, out, err = await doctor(house, *words, **variables)
        assert [secret for secret in secrets if secret in out + err] == []


async def test_a_variable_that_cannot_be_used_is_named_and_the_rest_is_skipped(house: House) -> None:
    found = await house.findings(PORT="many", LOG_LEVEL="LOUD")
    wrong = found["configuration"]
    assert wrong.status == "failed"
    assert wrong.says == "PORT cannot be used; LOG_LEVEL cannot be used"
    assert wrong.do is not None
    assert "write a number from 0 to 65535." in wrong.do
    assert "write one of DEBUG, INFO" in wrong.do
    assert {found[check].status for check in BEYOND_SETTINGS} == {"skipped"}


async def test_with_a_variable_that_cannot_be_used_it_exits_1_and_still_prints_every_line(
    house: House,
) -> None:
    code, out, err = await doctor(house, PORT="many")
    assert (code, err, len(out.splitlines())) == (1, "", len(ORDER) + 1)

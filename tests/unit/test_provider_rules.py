from __future__ import annotations

import pytest

from tests.standins.provider_rules import MAX_BYTES, RULES, Violation, check, check_headers
from tests.standins.rule_cases import CASES, Request, request


@pytest.mark.parametrize(("rule", "wrong", "_"), CASES, ids=[case[0] for case in CASES])
def test_a_request_that_breaks_a_rule_is_answered_with_400_for_that_rule(
    rule: str, wrong: Request, _: Request
) -> None:
    violation = check(wrong)
    assert violation is not None and (violation.rule, violation.status) == (rule, 400)


@pytest.mark.parametrize(("_", "__", "right"), CASES, ids=[case[0] for case in CASES])
def test_the_nearest_request_that_keeps_the_rule_passes(_: str, __: Request, right: Request) -> None:
    assert check(right) is None


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(RULES)


def test_a_request_is_too_large_above_32_megabytes() -> None:
    assert check(request(), MAX_BYTES) is None
    assert check(request(), MAX_BYTES + 1) == Violation("size", "Request exceeds the maximum size", 413)


def test_a_request_must_be_an_object() -> None:
    violation = check([])
    assert violation is not None and violation.rule == "object"


def test_a_request_needs_a_key_and_a_version() -> None:
    key, version = {"x-api-key": "k"}, {"anthropic-version": "2026-10-21"}
    assert check_headers(key | version) is None
    assert (without_key := check_headers(version)) and without_key.status == 401
    assert (without_version := check_headers(key)) and without_version.status == 400

"""What leaves holds no secret, and what is no secret leaves as it is."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.log.log_lines import line_of
from tests.support.strategies import Json, Line, dump, lines
from vinaya_bridge.log import EventLine, Reader, Refused, UnknownVersion
from vinaya_bridge.log.redaction import redact_id, redact_json, redact_text

BAD_ID = "ghp_bbbbbbbbbbbbbbbbbbbb"
HEX = "0123456789abcdef0123456789abcdef01234567"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc==\n-----END RSA PRIVATE KEY-----"

SECRETS = [
    "gho_AAAAAAAAAAAAAAAAAAAA",
    "ghp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "ghs_0123456789abcdefghij",
    "ghu_0123456789abcdefghij",
    "ghr_0123456789abcdefghij",
    "github_pat_11AAAAAAA0123456789_abcdefghijk",
    f"token: {HEX}",
    f"GITHUB_TOKEN={HEX}",
    f"pat={HEX}",
    f"api_key={HEX}",
    f'API_TOKEN: "{HEX}"',
    "Bearer abc.def",
    "bearer abcdefghijklmnop",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-123456789012-abcdefABCDEF",
    "sk_live_aaaaaaaaaaaa",
    "rk_test_aaaaaaaaaaaa",
    "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
    "sk-aaaaaaaaaaaaaaaaaaaaaaaa",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJaaaaaaaaaaaa.bbbbbbbbbbbb.cccccccccccc",
    PEM,
    "-----BEGIN PRIVATE KEY-----\nMIIE",
    "password=correcthorsebatterystaple",
    "client_secret: 'abcdefghijklmnopqrst'",
    "AWS_SECRET_ACCESS_KEY=abcdefghijklmnopqrstuvwxyz",
]
POLICY: dict[str, Json] = {"max_rounds": 1, "reviewers": []}

INNOCENT = [
    HEX,
    f"head {HEX} pushed",
    "task-2026-a-rather-long-branch-name",
    "disk-usage-of-the-whole-machine-is-high",
    "https://example.com/a:b@c",
    "https://example.com:8080/x",
    "the bearer of news",
    "password: short",
    "compat: " + HEX[:39],
    "npm_config_cache",
    "eyJ",
    "ghp_short",
    "",
]


def core_of(secret: str) -> str:
    """The part of a secret that nobody may see."""
    return re.split(r"[\s=]+", secret)[-1].strip("'\"") if "-----" not in secret else "MIIE"


def event(reader: Reader, line: Line) -> EventLine:
    verdict = reader.read(dump(line))
    assert isinstance(verdict, EventLine), verdict
    return verdict


@pytest.mark.parametrize("secret", SECRETS, ids=lambda text: text[:16])
def test_a_secret_is_cut_out_of_the_text_around_it(secret: str) -> None:
    found = redact_text(f"a {secret}\n b")
    assert core_of(secret) not in found
    assert "<redacted>" in found
    assert found.startswith("a ")
    assert found.endswith("\n b") or secret == SECRETS[-4]


def test_the_name_of_a_secret_stays() -> None:
    assert redact_text(f"GITHUB_TOKEN={HEX};") == "GITHUB_TOKEN=<redacted>;"
    assert redact_text('"password": "correcthorsebattery"') == '"password": "<redacted>"'


@pytest.mark.parametrize("text", INNOCENT)
def test_other_text_stays(text: str) -> None:
    assert redact_text(text) == text


def test_of_a_url_only_the_credentials_are_cut() -> None:
    assert redact_text("see https://u:p@example.com/x?y=z.") == "see https://<redacted>@example.com/x?y=z."
    assert redact_text("http://:p@ss@host/") == "http://<redacted>@host/"


@pytest.mark.parametrize("secret", SECRETS, ids=lambda text: text[:16])
def test_a_secret_in_free_text_of_a_line_never_leaves(reader: Reader, secret: str) -> None:
    core = core_of(secret)
    for line in (
        line_of("operation", "completed", target=f"x {secret} y"),
        line_of("handoff", "raised", reason=secret),
        line_of("custom", "recorded", fields={"note": secret, "count": 1, "ok": True}),
        line_of(
            "dev_review_loop", "verdicts_read", findings=[{"id": "F", "severity": "s", "description": secret}]
        ),
        line_of("dev_review_loop", "findings_compared", new=["F1", secret]),
        line_of(
            "dev_review_loop",
            "loop_started",
            policy=POLICY | {"models": {"developer": secret}},
        ),
    ):
        found = event(reader, line)
        assert found.is_redacted
        assert core not in repr(found.record)
        assert "<redacted>" in repr(found.record)
        assert core not in json.dumps(redact_json(line))


@pytest.mark.parametrize(
    "way",
    [
        "\\u0067hp_AAAAAAAAAAAAAAAAAAAA",
        "ghp\\u005fAAAAAAAAAAAAAAAAAAAA",
        "x\\n\\u0067\\u0068p_AAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_an_escape_does_not_hide_a_secret(reader: Reader, line: Line, way: str) -> None:
    raw = dump(line | {"target": "TARGET"}).replace(b"TARGET", way.encode())
    verdict = reader.read(raw)
    assert isinstance(verdict, EventLine)
    assert verdict.record.target in ("<redacted>", "x\n<redacted>")


def test_an_id_that_is_a_secret_leaves_as_its_digest_wherever_it_occurs(reader: Reader) -> None:
    name = f"redacted:{hashlib.sha256(BAD_ID.encode()).hexdigest()}"
    line = line_of("dispatch", "dispatched", effect_id=BAD_ID)
    meta = line["meta"]
    assert isinstance(meta, dict)
    meta |= {
        "run_id": BAD_ID,
        "event_id": BAD_ID,
        "process_id": BAD_ID,
        "lineage": {"run": BAD_ID, "attempt": None, "parent": BAD_ID},
    }
    found = event(reader, line)
    assert (found.identity, found.main_run, found.process, found.record.effect_id) == (name, name, name, name)
    assert found.record.meta.run_id == name
    assert BAD_ID not in repr(found.record)


def test_a_schema_1_identity_is_made_of_the_id_as_it_leaves(reader: Reader) -> None:
    line = line_of("gate", "summary", 1)
    meta = line["meta"]
    assert isinstance(meta, dict)
    meta["run_id"] = BAD_ID
    assert event(reader, line).identity == f"{redact_id(BAD_ID)}:0"


def test_a_secret_names_neither_a_refused_nor_an_unknown_line(reader: Reader, line: Line) -> None:
    meta = line["meta"]
    assert isinstance(meta, dict)
    meta |= {
        "event_id": BAD_ID,
        "run_id": BAD_ID,
        "lineage": {"run": BAD_ID, "attempt": None, "parent": None},
    }
    refused = reader.read(dump(line | {"result": "no"}))
    assert isinstance(refused, Refused)
    assert (refused.identity, refused.run) == (redact_id(BAD_ID), redact_id(BAD_ID))
    meta["schema"] = 4
    unknown = reader.read(dump(line))
    assert isinstance(unknown, UnknownVersion)
    assert unknown.identity == redact_id(BAD_ID)


def test_the_digest_is_that_of_the_redacted_line(reader: Reader) -> None:
    one = event(reader, line_of("operation", "completed", target="ghp_AAAAAAAAAAAAAAAAAAAA"))
    other = event(reader, line_of("operation", "completed", target="<redacted>"))
    assert one.digest == other.digest
    assert not other.is_redacted


def test_members_of_closed_lists_keys_and_numbers_are_left_alone() -> None:
    line = line_of("usage", "observed", units={"input": 1.0, "output": None, "cache": 2})
    assert redact_json(line) == line


TEXTS = st.one_of(st.sampled_from(SECRETS), st.sampled_from(INNOCENT), st.text(max_size=20))


@given(st.lists(TEXTS, max_size=4).map(" ".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(lines(plain=True), st.sampled_from(SECRETS), st.data())
def test_no_string_of_any_line_lets_a_secret_through(line: Line, secret: str, data: st.DataObject) -> None:
    meta: Any = line["meta"]
    field = data.draw(st.sampled_from(["repo", "vinaya", "doctrine", "machine", "ts"]))
    line = line | {"meta": meta | {field: f"<{secret}>"}}
    found = event(Reader(), line)
    assert found.is_redacted
    assert core_of(secret) not in repr(found.record)


def test_a_long_hostile_text_takes_linear_time(reader: Reader) -> None:
    text = (
        ("password=" * 20_000)
        + ("eyJ" * 20_000)
        + ("https://a:" * 20_000)
        + ("-----BEGIN PRIVATE KEY-----" * 5_000)
    )
    assert len(redact_text(text)) < len(text)
    assert isinstance(reader.read(dump(line_of("handoff", "raised", reason=text))), EventLine)

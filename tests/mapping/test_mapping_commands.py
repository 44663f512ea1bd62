"""The commands about mappings, as a person types them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from tests.support.samples import sample
from tests.support.strategies import dump
from vinaya_bridge.cli import cli
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.mapping.coverage import coverage, markdown
from vinaya_bridge.mapping.load import SHIPPED, load_mapping, read_mapping, shipped_mapping
from vinaya_bridge.mapping.reading import read_table
from vinaya_bridge.mapping.render import render


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def deploy(tmp_path: Path, repository: Path) -> Path:
    """The folder that the guide has a new user make: an overlay and a log."""
    guide = (repository / "mappings" / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^   ```toml\n(.*?)^   ```$", guide, re.MULTILINE | re.DOTALL)
    assert block is not None
    folder = tmp_path / "deploy"
    folder.mkdir()
    lines = [line.removeprefix("   ") for line in block[1].splitlines(keepends=True)]
    (folder / "mapping.toml").write_text("".join(lines), encoding="utf-8")
    log = [
        sample("custom", "recorded", name="acme.deploy", fields={"env": "prod", "ok": True}),
        sample("custom", "recorded", name="acme.other", fields={}, seq=1),
    ]
    (folder / "input.ndjson").write_bytes(b"".join(dump(line) + b"\n" for line in log))
    return folder


def test_the_guide_s_example_is_checked_explained_snapshotted_and_tested(deploy: Path) -> None:
    overlay = deploy / "mapping.toml"
    assert run("mapping", "lint", "core", "--mapping-overlay", overlay, "--strict").exit_code == 0
    explained = run("explain", f"{deploy / 'input.ndjson'}:1", "--mapping-overlay", overlay).output
    assert "deploy.finished on the main run: valid" in explained
    assert re.search(r'environment +"prod" +from "\$\.fields\.env"', explained)
    assert run("mapping", "test", deploy).exit_code == 1
    assert run("mapping", "test", deploy, "--update").exit_code == 0
    assert run("mapping", "test", deploy).output.startswith("ok      deploy\n")
    events = (deploy / "expected" / "runs" / "run-a" / "events.jsonl").read_bytes().splitlines()
    types = [orjson.loads(event)["type"] for event in events]
    assert types == ["run.started", "deploy.finished", "vinaya.acme.other"]


def test_a_failing_case_names_the_rule_and_shows_what_cannot_be_seen(deploy: Path) -> None:
    run("mapping", "test", deploy, "--update")
    events = deploy / "expected" / "runs" / "run-a" / "events.jsonl"
    events.write_bytes(
        events.read_bytes().replace(b'"environment":"prod"', '"environment":"pro\u200bd\\r"'.encode())
    )
    failed = run("mapping", "test", deploy)
    assert failed.exit_code == 1
    assert "FAILED  deploy" in failed.output
    assert f"rule {deploy / 'mapping.toml'}:4:14" in failed.output
    assert 'payload.environment: "pro\\u200bd\\r" -> "prod"' in failed.output


def test_a_missing_an_extra_and_a_changed_file_each_fail_a_case(deploy: Path) -> None:
    run("mapping", "test", deploy, "--update")
    expected = deploy / "expected"
    (expected / "counts.json").unlink()
    (expected / "runs" / "other").mkdir()
    (expected / "runs" / "other" / "events.jsonl").write_bytes(b"{}\n")
    events = expected / "runs" / "run-a" / "events.jsonl"
    events.write_bytes(events.read_bytes().replace(b"\n", b"\r\n"))
    output = run("mapping", "test", deploy).output
    assert "counts.json\n        there, and not expected" in output
    assert "runs/other/events.jsonl\n        expected, and not there" in output
    assert "\\r" in output


def test_update_touches_only_the_cases_that_are_named(deploy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "input.ndjson").write_bytes((deploy / "input.ndjson").read_bytes())
    run("mapping", "test", deploy, "--update")
    assert not (other / "expected").exists()


def test_a_run_without_cases_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        run("mapping", "test", tmp_path)
    assert raised.value.code.id == "VB237"


def test_lint_exits_with_two_on_an_error_and_with_strict_on_a_warning(tmp_path: Path) -> None:
    text = shipped_mapping("core").read_text(encoding="utf-8")
    warned, wrong = tmp_path / "warned.toml", tmp_path / "wrong.toml"
    warned.write_text(text + '\n[lookup.spare]\na = "b"\n', encoding="utf-8")
    wrong.write_text(text.replace("@run.parent", "@run.father"), encoding="utf-8")
    assert run("mapping", "lint").exit_code == 0
    assert run("mapping", "lint", warned).exit_code == 0
    assert run("mapping", "lint", warned, "--strict").exit_code == 2
    failed = run("mapping", "lint", wrong, "--json")
    assert failed.exit_code == 2
    rows = [orjson.loads(line) for line in failed.stdout.splitlines()]
    assert {row["code"] for row in rows} == {"VB209"}
    assert all(row["file"] == str(wrong) for row in rows)


def test_an_overlay_that_is_checked_as_a_whole_table_is_told_so(deploy: Path) -> None:
    output = run("mapping", "lint", deploy / "mapping.toml").output
    assert output.count("VB228") == 1
    assert "--mapping-overlay" in output


def test_show_prints_the_table_as_it_applies(deploy: Path) -> None:
    shown = run("mapping", "show", "core", "--mapping-overlay", deploy / "mapping.toml").output
    assert tomllib.loads(shown)["rule"]["custom"]["recorded"]["emit"][0]["type"] == "deploy.finished"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_table_that_is_shown_reads_back_as_the_same_table(name: str) -> None:
    table, _ = read_mapping(name)
    text = render(table)
    again = read_table(text, file="x", name=name)
    assert again.findings == ()
    assert render(again.table) == text
    assert load_mapping(name).digest == load_mapping(name).digest


def test_the_digest_follows_the_rules_and_not_the_comments(tmp_path: Path) -> None:
    text = shipped_mapping("core").read_text(encoding="utf-8")
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    same.write_text("# another comment\n" + text, encoding="utf-8")
    other.write_text(text.replace('paused = "blocked"', 'paused = "capped"'), encoding="utf-8")
    assert load_mapping(same).digest == load_mapping("core").digest
    assert load_mapping(other).digest != load_mapping("core").digest


def test_diff_names_the_rules_and_the_events_that_change(deploy: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.toml"
    text = shipped_mapping("core").read_text(encoding="utf-8")
    changed.write_text(text.replace('payload.name = "$.name"', 'payload.called = "$.name"'), encoding="utf-8")
    assert run("mapping", "diff", "core", "core", deploy / "input.ndjson").exit_code == 0
    found = run("mapping", "diff", "core", changed, deploy / "input.ndjson")
    assert found.exit_code == 1
    assert "custom.recorded: changed" in found.output
    assert '+payload.called = "$.name"' in found.output
    assert "custom.recorded: 2 of 2 lines give other events" in found.output
    data = orjson.loads(run("mapping", "diff", "core", changed, deploy / "input.ndjson", "--json").stdout)
    assert [rule["rule"] for rule in data["rules"]] == ["custom.recorded"]
    assert data["events"][0]["differences"] == [
        'event 0, vinaya.acme.deploy: payload.called: (nothing) -> "acme.deploy"',
        'event 0, vinaya.acme.deploy: payload.name: "acme.deploy" -> (nothing)',
    ]


def test_coverage_has_a_row_for_each_event_that_accounts_for_each_field() -> None:
    rows = coverage(load_mapping("core").table)
    assert [(row.kind, row.event) for row in rows] == list(FAMILIES)
    assert all(bool(row.types) != bool(row.unmapped) for row in rows)
    (checked,) = [row for row in rows if row.name == "gate.checked"]
    assert "$.reason" in checked.carried
    assert dict(checked.dropped)["$.meta.machine"]
    printed = run("mapping", "coverage", "--json").stdout.splitlines()
    assert [orjson.loads(line)["event"] for line in printed] == [row.event for row in rows]
    assert "gate.evaluated, stated" in run("mapping", "coverage").output


def test_the_table_of_the_guide_is_what_coverage_says(repository: Path) -> None:
    guide = (repository / "mappings" / "README.md").read_text(encoding="utf-8")
    assert guide.endswith(markdown(coverage(load_mapping("core").table)))
    assert run("mapping", "coverage", "--markdown").output == markdown(coverage(load_mapping("core").table))


def test_a_mapping_that_does_not_exist_is_named(tmp_path: Path) -> None:
    for name, code in (("croe", "VB236"), (str(tmp_path / "none.toml"), "VB201")):
        with pytest.raises(ConfigurationError) as raised:
            load_mapping(name)
        assert raised.value.code.id == code
        assert raised.value.place == name
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'format = 1 # \xe9"\n')
    with pytest.raises(ConfigurationError) as raised:
        load_mapping(latin)
    assert raised.value.code.id == "VB201"


def test_explain_says_what_a_line_is_that_gives_no_event(tmp_path: Path) -> None:
    log = tmp_path / "log.ndjson"
    lines = [
        b"",
        b'{"meta":{"schema":4}}',
        b'{"meta":{"schema":3}}',
        dump(sample("forge_write", "validated")),
        dump(sample("operation", "completed")) + dump(sample("gate", "summary", seq=1)),
        dump(sample("dispatch", "dispatched", model="m" * 20_000)),
    ]
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    said = [run("explain", f"{log}:{number}").output for number in range(1, len(lines) + 1)]
    assert "blank" in said[0]
    assert "unknown version 4" in said[1]
    assert "refused: VB1" in said[2]
    assert "unmapped" in said[3]
    assert "operation.completed on the main run" in said[4]
    assert "gate.evaluated on the main run" in said[4]
    assert "over a bound" in said[5]
    with pytest.raises(ConfigurationError, match=r"VB311 .*: there is no line 99"):
        run("explain", f"{log}:99")
    assert run("explain", "VB999").exit_code == 2
    assert run("explain", "vb203").output.startswith("VB203  ")


def test_explain_leads_from_an_event_to_its_line(deploy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("convert", deploy / "input.ndjson", "-o", out, "--quiet")
    found = run("explain", out, "run-a:2", deploy)
    assert "event 2 of run run-a" in found.output
    assert "input.ndjson:1  custom.recorded, schema 3, an event" in found.output
    assert "give the logs too" in run("explain", out, "run-a:2").output
    assert re.search(r"implied +True", run("explain", out, "run-a:1", deploy).output)
    with pytest.raises(ConfigurationError, match=r"VB425 .*: the run's events are 1 to 3"):
        run("explain", out, "run-a:9")
    with pytest.raises(ConfigurationError, match="VB403 "):
        run("explain", deploy, "run-a:1")

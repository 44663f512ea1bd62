"""What the page is given and how it is put together: nothing in it can act, and it stays small."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ethogram.cli import cli
from ethogram.envelope import Event
from ethogram.page import build
from ethogram.page.build import OVERHEAD_BYTES, SCRIPTS, STYLES, build_page
from ethogram.page.content import PLAIN_BYTES, content, markup_safe, page_run
from tests.view.pages import Step, events, finished, loop, many, page_of, started, write_lines


def given_to(page: bytes) -> dict[str, Any]:
    """What a page was given, read back out of it as a browser would."""
    found = re.search(rb'<script type="application/json" id="content">(.*?)</script>', page, re.DOTALL)
    assert found
    shown: dict[str, Any] = json.loads(found[1])
    if "deflated" in shown:
        shown = json.loads(zlib.decompress(base64.b64decode(shown["deflated"])))
    return shown


@given(st.text())
def test_no_text_can_end_its_script_element_and_every_text_comes_back(text: str) -> None:
    safe = markup_safe(orjson.dumps(text))
    assert not set(safe) & set(b"<>&")
    assert "\u2028" not in safe.decode()
    assert "\u2029" not in safe.decode()
    assert json.loads(safe) == text


def test_a_page_holds_every_event_with_its_overview() -> None:
    shown = given_to(page_of(loop()))
    runs = {run["runId"]: run for run in shown["runs"]}
    assert {run_id: len(run["rows"]) for run_id, run in runs.items()} == {
        run_id: len(found) for run_id, found in loop().items()
    }
    assert runs["main"]["rows"][10] == [
        11,
        "songs.sung",
        1_772_615_350_000.0,
        "2027-01-01T00:00:00.000Z",
        "2026-03-04T09:09:10.000Z",
        {"verses": 3, "by": "nobody"},
    ]
    assert (runs["main"]["outcome"], runs["main"]["withChildren"]["costUsd"]) == ("completed", 0.5)
    assert "withChildren" not in runs["other"]
    assert shown["cut"] is None


def test_a_long_page_is_compressed_and_stays_under_a_megabyte() -> None:
    page = page_of(many(10_000), max_bytes=1_000_000 - OVERHEAD_BYTES)
    assert len(page) < 600_000
    shown = given_to(page)
    assert len(shown["runs"][0]["rows"]) == 10_000
    assert shown["cut"] is None


def test_texts_are_cut_at_one_length_where_a_page_would_be_too_large() -> None:
    # Texts that nothing compresses: each is another.
    long: list[Step] = [
        (float(n), "agent.text", {"text": "".join(sha256(b"%d %d" % (n, k)).hexdigest() for k in range(60))})
        for n in range(400)
    ]
    runs = {"r": events("r", [(0, "run.started", started("loop", "a")), *long])}
    shown = given_to(page_of(runs, max_bytes=200_000))
    texts = [row[5]["text"] for row in shown["runs"][0]["rows"][1:]]
    assert 16 <= shown["cut"] < 3_840
    assert {len(text) for text in texts} == {shown["cut"]}
    assert all(text.endswith("…") for text in texts)
    assert given_to(page_of(runs))["cut"] is None
    assert len(page_of(runs, max_bytes=1)) < 300_000


def test_the_page_is_under_a_policy_that_allows_its_own_parts_and_nothing_else() -> None:
    page = page_of(loop()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert script
    assert style

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"

    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == hashed(script[1])
    assert rules["style-src"] == hashed(style[1])
    assert rules["connect-src"] == "'none'"
    assert "'self'" in build_page(b"{}", title="t", live=True).decode().split("<style>", maxsplit=1)[0]
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


def test_nothing_of_the_page_is_put_together_from_markup() -> None:
    folder = Path(build.__file__).parent
    for name in SCRIPTS:
        script = (folder / name).read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
            assert word not in script, (name, word)
        assert "</" not in script
    assert {path.name for path in folder.glob("*.js")} == set(SCRIPTS)
    assert {path.name for path in folder.glob("*.css")} == set(STYLES)


def test_a_title_and_a_place_of_the_template_are_texts_like_any_other() -> None:
    runs = {"{{script}}": events("{{script}}", [(0, "x", "{{content}} {{policy}}")])}
    page = page_of(runs, title="</title><script>{{content}}</script>\x00")
    assert b"<title>&lt;/title&gt;&lt;script&gt;{{content}}&lt;/script&gt;\xef\xbf\xbd</title>" in page
    assert given_to(page)["runs"][0]["runId"] == "{{script}}"


def test_a_run_that_cannot_be_read_to_its_end_is_shown_as_far_as_it_goes() -> None:
    end = finished("completed", 1)
    found = page_run("r", [Event("run.finished", "r", 1, "t", end), Event("x", "r", 2, "t", None)])
    shown = json.loads(content([found], made="m"))
    assert shown["runs"][0]["fault"] == "a run has run.finished before run.started"
    assert [row[:3] for row in shown["runs"][0]["rows"]] == [[1, "run.finished", None], [2, "x", None]]


def test_small_content_stands_in_the_page_as_it_is() -> None:
    assert len(content([page_run("r", [])], made="m")) < PLAIN_BYTES
    assert json.loads(content([], made="m")) == {"made": "m", "live": None, "cut": None, "runs": []}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["view", *arguments])


def test_the_command_writes_one_page_of_all_its_places_for_its_owner_alone(tmp_path: Path) -> None:
    one = write_lines(tmp_path / "one.jsonl", loop())
    two = write_lines(tmp_path / "two.jsonl", {"two": events("two", [(0, "x", None)])})
    page = tmp_path / "page.html"
    result = run(str(one), str(two), "-o", str(page))
    assert result.exit_code == 0
    assert result.stderr.startswith(f"{page}: 5 runs, 22 events, ")
    assert {each["runId"] for each in given_to(page.read_bytes())["runs"]} == {*loop(), "two"}
    assert page.stat().st_mode & 0o777 == 0o600
    assert b"<title>one.jsonl, two.jsonl \xc2\xb7 ethogram</title>" in page.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: ["nowhere", "-o", str(folder / "page.html")],
        lambda folder: [str(folder)],
        lambda folder: [str(folder), "-o", str(folder / "none" / "page.html")],
    ],
)
def test_a_page_that_cannot_be_made_is_an_error(tmp_path: Path, change: Callable[[Path], list[str]]) -> None:
    result = run(*change(tmp_path))
    assert result.exit_code != 0
    assert not list(tmp_path.rglob("page.html"))


def test_whole_texts_can_be_asked_for(tmp_path: Path) -> None:
    texts: list[Step] = [
        (float(n), "agent.text", {"text": sha256(b"%d" % n).hexdigest() * 200}) for n in range(20)
    ]
    place = write_lines(tmp_path / "one.jsonl", {"r": events("r", texts)})
    page = tmp_path / "page.html"
    assert run(str(place), "-o", str(page), "--max-bytes", "150000").exit_code == 0
    assert given_to(page.read_bytes())["cut"] is not None or page.stat().st_size <= 150_000
    assert run(str(place), "-o", str(page), "--whole").exit_code == 0
    assert given_to(page.read_bytes())["cut"] is None

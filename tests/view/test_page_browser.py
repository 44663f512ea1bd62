"""The page in a real browser: what a person sees, reaches by keyboard, hears and prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ethogram.envelope import Event
from ethogram.json_text import Json
from tests.view.browser import Browser
from tests.view.conftest import Shown
from tests.view.pages import events, loop, many, started

LABELS = "[...document.querySelectorAll('#rows .row')].sort((a, b) => a.offsetTop - b.offsetTop)"


def labels(page: Browser) -> list[tuple[str, int]]:
    """The rows from the top down: their words and their levels."""
    found: list[list[Any]] = page.run(
        f"{LABELS}.map((row) => [row.querySelector('.words').textContent, +row.ariaLevel])"
    )
    return [(words, level) for words, level in found]


def text(page: Browser, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def quiet(page: Browser) -> bool:
    """Whether the page complained of nothing and asked for nothing."""
    page.run("new Promise((done) => setTimeout(done, 50))")
    assert page.complaints == []
    assert page.requests == []
    return True


def test_each_type_has_a_lane_and_runs_stand_beneath_their_parents(shown: Shown) -> None:
    page = shown(loop())
    assert labels(page) == [
        ("main", 1),
        ("rounds", 2),
        ("landmarks", 2),
        ("decision.recorded", 2),
        ("gate.evaluated", 2),
        ("review.requested", 2),
        ("review.completed", 2),
        ("human.intervened", 2),
        ("loop.paused", 2),
        ("loop.resumed", 2),
        ("songs.sung", 2),
        ("developer · opus", 2),
        ("agent.started", 3),
        ("agent.tool_use", 3),
        ("agent.tool_result", 3),
        ("agent.completed", 3),
        ("helper", 3),
    ]
    assert quiet(page)


def test_rounds_gates_reviews_pauses_and_people_are_visible_at_a_glance(shown: Shown) -> None:
    page = shown(loop())
    facts = page.run("[...document.querySelectorAll('#glance li')].map((each) => each.textContent)")
    assert facts == [
        "20 events in 3 runs",
        "2 rounds",
        "✓ 1 ✕ 1 gates",
        "✓ 1 ✕ 1 reviews",
        "‖ 1 pause",
        "◆ 1 human intervention",
        "1.5k tokens",
        "$0.5000 cost",
    ]
    assert text(page, "#run-outcome") == "completed"
    assert page.run("document.querySelector('.row.rounds').ariaLabel").startswith("Rounds: round 1, ")


def test_the_picture_is_drawn_where_the_events_are(shown: Shown) -> None:
    page = shown(loop())
    page.wait_for("document.querySelectorAll('#rows .row').length > 5")
    inked = """(row) => {
      const canvas = document.getElementById('plot'), y = row.offsetTop + 30 + row.offsetHeight / 2;
      const line = canvas.getContext('2d').getImageData(232, y, canvas.width - 240, 1).data;
      const tones = new Set();
      for (let at = 0; at < line.length; at += 4) tones.add(line.slice(at, at + 3).join());
      return tones.size;
    }"""
    # The picture is drawn in the frame after the rows: waiting fails when a row never has anything drawn in it.
    page.wait_for(f"Math.min(...{LABELS}.map({inked})) >= 3")


def test_a_lane_that_gets_the_focus_shows_its_event_and_arrows_go_on(shown: Shown) -> None:
    page = shown(loop())
    page.run("document.getElementById('open-all').focus()")
    for _ in range(2):
        page.press("Tab")
    page.wait_for("document.activeElement.matches('.row')")
    for _ in range(4):
        page.press("ArrowDown")
    assert page.run("document.activeElement.querySelector('.words').textContent") == "gate.evaluated"
    assert text(page, "#detail-type") == "gate.evaluated"
    assert "typecheck" in text(page, "#detail-body")
    assert "1 of 2 in this lane" in text(page, "#detail-body")
    assert text(page, "#said").startswith("gate.evaluated, 2026-03-04 08:01:40: round 1")
    page.press("ArrowRight")
    assert "2 of 2 in this lane" in text(page, "#detail-body")
    page.press("ArrowLeft")
    assert "1 of 2 in this lane" in text(page, "#detail-body")
    page.press("End")
    assert "2 of 2 in this lane" in text(page, "#detail-body")
    page.press("Escape")
    assert page.run("document.getElementById('detail').hidden")
    assert page.run("document.activeElement.querySelector('.words').textContent") == "gate.evaluated"
    assert quiet(page)


def test_lanes_of_a_run_can_be_closed_and_opened_by_keyboard(shown: Shown) -> None:
    page = shown(loop())
    page.run(f"{LABELS}.find((row) => row.textContent.includes('developer')).focus()")
    page.press("Escape")
    page.press("Enter")
    assert ("agent.tool_use", 3) not in labels(page)
    assert ("helper", 3) in labels(page)
    page.press("Escape")
    page.press("Enter")
    assert ("agent.tool_use", 3) in labels(page)


def test_a_pointer_over_a_mark_tells_what_it_is_and_a_click_shows_it_all(shown: Shown) -> None:
    page = shown(loop())
    # The mark of songs.sung: found by moving along its lane, as a person would.
    box: Json = page.run(
        f"(({{x, y, height}}) => [x, y + height / 2])({LABELS}"
        ".find((row) => row.textContent.startsWith('songs')).getBoundingClientRect())"
    )
    assert isinstance(box, list)
    y = box[1]
    assert isinstance(y, float)
    for x in range(520, 1260, 6):
        page.mouse("mouseMoved", x, y)
        if not page.run("document.getElementById('tip').hidden"):
            break
    assert text(page, "#tip").startswith("songs.sung")
    assert "by nobody" in text(page, "#tip")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, x, y, button="left", clickCount=1)
    assert text(page, "#detail-type") == "songs.sung"
    assert "verses3" in text(page, "#detail-body")


def test_a_search_finds_events_by_any_of_their_text(shown: Shown) -> None:
    page = shown(loop())
    page.press("/")
    page.type("NOBODY")
    assert text(page, "#hits") == "1 here"
    page.press("Enter")
    assert text(page, "#detail-type") == "songs.sung"
    page.run("document.getElementById('search').select()")
    page.type("elsewhere")
    assert text(page, "#hits") == "0 here, 1 in other runs"
    assert "1 found" in text(page, "#roots li")
    page.press("Escape")
    assert text(page, "#hits") == ""


def test_time_can_be_zoomed_panned_and_fitted(shown: Shown) -> None:
    page = shown(loop())
    drawn = "document.getElementById('plot').toDataURL()"
    # A canvas that is read back is drawn by other means from then on, with other rounding.
    for _ in range(3):
        page.run(drawn)
        page.run("document.getElementById('zoom-fit').click()")
        page.run("new Promise((done) => setTimeout(done, 60))")
    first = page.run(drawn)
    page.run("document.getElementById('zoom-in').click()")
    page.run("new Promise((done) => setTimeout(done, 60))")
    near = page.run(drawn)
    assert near != first
    page.mouse("mouseWheel", 800, 400, deltaX=120, deltaY=0)
    page.run("new Promise((done) => setTimeout(done, 60))")
    assert page.run(drawn) != near
    page.run("document.getElementById('zoom-fit').click()")
    page.mouse("mouseMoved", 5, 5)
    page.run("new Promise((done) => setTimeout(done, 60))")
    assert page.run(drawn) == first


def test_the_table_says_all_that_the_picture_does(shown: Shown) -> None:
    page = shown(loop())
    page.run("document.getElementById('skip').click()")
    rows = page.run(
        "[...document.querySelectorAll('#table-rows tr')].map((row) => row.children[3].textContent)"
    )
    assert len(rows) == 20
    assert "songs.sung" in rows
    assert text(page, "#page-at") == "1 to 20 of 20"
    assert "Events of main" in text(page, "#table-caption")
    page.run("document.querySelectorAll('#table-rows button')[1].focus()")
    page.press("Enter")
    assert text(page, "#detail-type") == "decision.recorded"
    assert quiet(page)


def test_a_screen_reader_is_told_of_runs_lanes_and_controls(shown: Shown) -> None:
    page = shown(loop())
    spoken = page.spoken()
    names = {role: {name for each, name in spoken if each == role} for role, _ in spoken}
    assert "songs.sung, 1 event" in names["treeitem"]
    assert any(
        name.startswith("Run main, loop by driver, completed, 1 h 10 min") for name in names["treeitem"]
    )
    assert {"Zoom in", "Zoom out", "Ethogram", "Table"} <= names["button"]
    assert {"As the system", "Light", "Dark"} <= names["radio"]
    assert names["navigation"] == {"Runs"}
    nameless = [
        role for role, name in spoken if role in {"button", "textbox", "searchbox", "radio"} and not name
    ]
    assert nameless == []


def paper(page: Browser) -> str:
    return str(page.run("getComputedStyle(document.getElementById('main')).backgroundColor"))


def test_light_and_dark_follow_the_system_until_one_is_chosen(shown: Shown) -> None:
    page = shown(loop())
    light = paper(page)
    page.colours(dark=True)
    dark = paper(page)
    assert light != dark
    page.run("document.querySelector('#theme input[value=light]').click()")
    assert paper(page) == light
    page.colours(dark=False)
    page.run("document.querySelector('#theme input[value=dark]').click()")
    assert paper(page) == dark
    page.run("document.querySelector('#theme input[value=auto]').click()")
    assert paper(page) == light


def test_a_narrow_page_needs_no_sideways_scrolling(shown: Shown) -> None:
    page = shown(loop(), width=420, height=800)
    assert page.run("document.documentElement.scrollWidth") <= 420
    assert page.run("document.getElementById('list-toggle').offsetWidth") > 0
    page.run("document.getElementById('list-toggle').click()")
    assert page.run("document.getElementById('list').getBoundingClientRect().width") > 200
    page.run("document.querySelectorAll('#roots button')[1].click()")
    assert text(page, "#run-name") == "other"
    assert text(page, "#notice") == "Its parent is not here: gone"


def test_the_picture_prints_whole(shown: Shown) -> None:
    page = shown(loop(), height=400)
    printed = page.pdf()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
    assert quiet(page)


HOSTILE = (
    "</script><script>document.documentElement.dataset.hacked = 1</script>",
    "<!--<script>",
    "<img src=x onerror='document.documentElement.dataset.hacked = 1'>",
    '"><svg onload="document.documentElement.dataset.hacked = 1">',
    "javascript:document.documentElement.dataset.hacked=1",
    "' onfocus='document.documentElement.dataset.hacked = 1' autofocus='",
    "\u202egnihton \u2066 \u2028 \u2029 \ufeff \x00 \x07 \x1b[2J \x7f \x9b",
    "${document.documentElement.dataset.hacked = 1}{{script}}&lt;b&gt;&amp;",
    "constructor",
    "__proto__",
    "toString.started",
    "x" * 5_000,
    "",
)


def hostile_runs() -> dict[str, list[Event]]:
    runs = {}
    for number, words in enumerate(HOSTILE):
        payload: Json = {
            words: words,
            "reason": words,
            "tool": words,
            "outcome": words,
            "list": [words, {words: [words]}],
        }
        steps: list[tuple[float, str, Json]] = [
            (number, "run.started", started(words, words, None if number == 0 else HOSTILE[0], model=words)),
            (number + 1, words, payload),
            (number + 2, f"gate.{words}", payload),
            (number + 3, words, words),
            (number + 4, "run.finished", {"outcome": words, "durationMs": 1, "reason": words}),
        ]
        runs[words] = events(words, steps)
    return runs


def test_a_log_cannot_run_script_in_its_readers_browser(shown: Shown) -> None:
    runs = hostile_runs()
    page = shown(runs)
    assert len(labels(page)) > len(HOSTILE)
    # Every event is shown, in each of the ways in which a text reaches the page.
    page.run("document.getElementById('open-all').click()")
    count = page.run("document.querySelectorAll('#rows .row').length")
    page.run(f"{LABELS}[0].focus()")
    for _ in range(min(count, 60)):
        page.press("ArrowDown")
    page.run("document.querySelectorAll('#detail-body details').forEach((each) => { each.open = true; })")
    page.run("document.getElementById('show-table').click()")
    for index in range(0, 60, 7):
        page.run(f"document.querySelectorAll('#table-rows button')[{index}].click()")
        page.run("document.querySelectorAll('#detail-body details').forEach((each) => { each.open = true; })")
    assert page.run("document.documentElement.dataset.hacked") is None
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.run("document.querySelectorAll('img, svg, iframe, object, embed').length") == 0
    shown_text = page.run("document.body.innerText")
    assert "\u202e" not in shown_text
    assert "\x1b" not in shown_text
    assert HOSTILE[0] in shown_text
    assert quiet(page)


@pytest.mark.parametrize("steps", [[], [(0, "only", None)]])
def test_hardly_anything_is_still_a_page(shown: Shown, steps: list[tuple[float, str, Json]]) -> None:
    page = shown({"r": events("r", steps)} if steps else {})
    assert text(page, "#run-name") == ("r" if steps else "No runs")
    assert quiet(page)


def test_ten_thousand_events_open_at_once_and_zoom_smoothly(shown: Shown) -> None:
    page = shown(many(10_000))
    assert "10,000 events" in text(page, "#glance")
    frames = page.run(
        """(async () => {
          const scroller = document.getElementById('scroller'), frames = [];
          for (let turn = 0; turn < 30; turn++) {
            const before = performance.now();
            scroller.dispatchEvent(new WheelEvent('wheel', {
              deltaY: turn < 20 ? -100 : 0, deltaX: turn < 20 ? 0 : 50, ctrlKey: turn < 20,
              clientX: 700, clientY: 400, cancelable: true, bubbles: true }));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            frames.push(performance.now() - before);
          }
          return frames.sort((a, b) => a - b);
        })()"""
    )
    # A frame is 17 ms; the bound leaves room for a machine that has other work.
    assert frames[len(frames) // 2] < 100
    page.run("document.getElementById('show-table').click()")
    assert text(page, "#page-at") == "1 to 200 of 10,000"
    page.run("document.getElementById('page-after').click()")
    assert text(page, "#page-at") == "201 to 400 of 10,000"
    assert quiet(page)


def test_streams_of_another_producer_are_drawn_without_a_complaint(shown: Shown, shared: Any) -> None:
    from ethogram.envelope import parse_event_text

    golden = shared / "ethogram" / "corpus" / "umwelt-golden"
    for file in sorted(golden.glob("*.jsonl")):
        found = [parse_event_text(line) for line in file.read_bytes().splitlines()]
        page = shown({found[0].run_id: found})
        assert f"{len(found)} events" in text(page, "#glance")
        assert quiet(page)

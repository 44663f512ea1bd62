"""One browser for all tests that need one; where there is none they are skipped, and say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from ethogram.envelope import Event
from tests.view.browser import CHROMIUM, Browser, browser
from tests.view.pages import page_of

Shown = Callable[..., Browser]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome on the PATH")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def shown(chromium: Browser, tmp_path: Path) -> Shown:
    """Opens the page of some runs."""
    numbers = count()

    def show(runs: dict[str, list[Event]], width: int = 1280, height: int = 800) -> Browser:
        file = tmp_path / f"page-{next(numbers)}.html"
        file.write_bytes(page_of(runs))
        chromium.open(file.as_uri(), width=width, height=height)
        return chromium

    return show

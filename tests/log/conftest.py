"""What the tests of the reader share."""

from __future__ import annotations

import pytest

from tests.log.log_lines import line_of
from tests.support.strategies import Line
from vinaya_bridge.log import Reader


@pytest.fixture
def reader() -> Reader:
    """A reader that has read nothing yet."""
    return Reader()


@pytest.fixture
def line() -> Line:
    """A valid line under schema 3."""
    return line_of("operation", "completed")

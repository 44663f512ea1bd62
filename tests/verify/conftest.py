"""Outputs to tamper with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.tampering import Case, made


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A converted log with a loop of two rounds, a dispatch, and a line of each kind that is kept."""
    return made(tmp_path)

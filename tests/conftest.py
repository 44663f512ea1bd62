"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data beside the repository; a test that needs it is skipped where it is absent."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "vinaya" / "lines").is_dir():
        pytest.skip("the reference data (../shared) is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return REPOSITORY

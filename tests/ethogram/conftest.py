"""What the tests of ethogram share."""

from __future__ import annotations

from hypothesis import settings

# Real files are synced here, on whatever disk the machine has: time says nothing about a law.
settings.register_profile("ethogram", deadline=None)
settings.load_profile("ethogram")

"""The root of what this package raises, so that one clause can catch all of it."""

from __future__ import annotations


class EthogramError(Exception):
    """
    The root of the errors that ethogram raises for a caller to act on.

    A message names fields and types and never a value of a payload: a refused value may be a secret.
    """

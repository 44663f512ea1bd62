"""Whether an answer fits its request: the one rule that spans two events."""

from __future__ import annotations

from collections.abc import Mapping

from ethogram.errors import EthogramError


class DecisionError(EthogramError):
    """
    Raised when an answer does not fit the request it is held against.

    Args:
        message: Which rule is broken.

        path: The field of the answer that breaks it.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


def check_answer(request: Mapping[str, object], answer: Mapping[str, object]) -> None:
    """
    Hold a ``decision.answered`` payload against its ``decision.requested`` payload.

    The decision ids must be equal, and the answer must choose an offered option, or the ``onTimeout`` of the
    request when the answer is by timeout. Neither ``requestedRunId`` nor ``reversal`` is looked at, and
    neither payload is validated.

    Args:
        request: The payload that asked.

        answer: The payload that answers.

    Raises:
        DecisionError: They do not fit.
    """
    if answer.get("decisionId") != request.get("decisionId"):
        raise DecisionError("the answer's decisionId is not the request's", "payload.decisionId")
    chosen = answer.get("optionId")
    options = request.get("options")
    offered = options if isinstance(options, list) else []
    if any(isinstance(option, dict) and option.get("id") == chosen for option in offered):
        return
    if answer.get("byTimeout") is True and "onTimeout" in request and request["onTimeout"] == chosen:
        return
    raise DecisionError("the answer's optionId names no option of the request", "payload.optionId")

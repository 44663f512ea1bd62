"""Run ids on the wire, made from ids that a log holds (design, section 4: Names)."""

from __future__ import annotations

RELAY_RUN = "vinaya-bridge"
"""The bridge's own run."""

_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", "~": "%7E"})
_RELAY_NAMESAKE = "%76inaya-bridge"


def escape(source_id: str) -> str:
    """
    Return *source_id* so that it holds neither of the marks that join ids into a run id.

    Args:
        source_id: An id as a log holds it; any text.
    """
    if "%" in source_id or "/" in source_id or "~" in source_id:
        return source_id.translate(_ESCAPES)
    return source_id


def main_run_id(source_id: str) -> str:
    """
    Return the run id of a main run's first sitting.

    Args:
        source_id: ``meta.lineage.run``, else ``meta.run_id``.
    """
    return _RELAY_NAMESAKE if source_id == RELAY_RUN else escape(source_id)


def sitting_run_id(main_run: str, number: int) -> str:
    """
    Return the run id of a main run's sitting.

    Args:
        main_run: The run id of the first sitting.

        number: From 1.
    """
    return main_run if number == 1 else f"{main_run}~{number}"


def dispatch_run_id(main_run: str, effect: str, number: int) -> str:
    """
    Return the run id of a dispatch.

    Args:
        main_run: The run id of the main run's first sitting.

        effect: The escaped ``effect_id``.

        number: From 1: how often a dispatch was opened under this effect.
    """
    run = f"{main_run}/{effect}"
    return run if number == 1 else f"{run}~{number}"


def split_run_id(run_id: str) -> tuple[str, str | None, int]:
    """
    Take a run id apart.

    Returns:
        The main run's id, the escaped effect of a dispatch or None, and the number of the sitting or dispatch.
    """
    body, tilde, number = run_id.rpartition("~")
    if not tilde:
        body, number = run_id, "1"
    main_run, slash, effect = body.partition("/")
    return main_run, effect if slash else None, int(number)

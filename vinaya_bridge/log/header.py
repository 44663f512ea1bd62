"""The header of a line under its three schemas, and the subject: what every line says, whatever it is about."""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from vinaya_bridge.log.rules import (
    ABSENT,
    Absent,
    Count,
    FilledId,
    Id,
    Integer,
    RunId,
    SubjectRole,
    Text,
)

Host = Literal["hook", "ci", "cli", "loop"]
"""Where a line was written."""

Provenance = Literal["parent_attributed", "env_correlated", "self_reported", "unavailable"]
"""How far a line's attribution can be trusted, the most trusted first."""


@frozen(kw_only=True)
class Lineage:
    """
    Where a line stands among others (since schema 2).

    Args:
        run: The run that the process works for: the loop's id inside a loop.

        attempt: The number of the dispatch attempt.

        parent: The event that this one continues; written as null so far.
    """

    run: Id | None
    attempt: Integer | None
    parent: Id | None


@frozen(kw_only=True)
class InputVersions:
    """
    The generations of a review's input (since schema 2).

    Two writers exist: one writes all but the first key, one the first two; both are read.

    Args:
        manifest_version: The generation of the review-input manifest: 2, null or absent.

        objectives_version: The version of the objectives.

        brief_hash: The digest of the brief.

        ruling_ordinal: The number of the newest ruling.

        policy_digest: The digest of the policy.
    """

    manifest_version: Literal[2] | Absent | None = ABSENT
    objectives_version: Text | None
    brief_hash: Text | Absent | None = ABSENT
    ruling_ordinal: Integer | Absent | None = ABSENT
    policy_digest: Text | Absent | None = ABSENT


@frozen(kw_only=True)
class Work:
    """
    The unit of work (since schema 3).

    Args:
        ref: The unit of work: opaque, never parsed.

        repo: The repository, the same as the header's.

        change: The pull request, as text.

        revision: The commit that was checked.
    """

    ref: Text | None
    repo: Text | None
    change: Text | None
    revision: Text | None


@frozen(kw_only=True)
class Flow:
    """
    The way of working (since schema 3).

    Args:
        id: Its name.

        version: Its version.
    """

    id: Text | None
    version: Text | None


@frozen(kw_only=True)
class HeaderV1:
    """
    The header of schema 1. Source: Vinaya Log reference, Header fields.

    Args:
        schema: The number 1.

        ts: When: ISO 8601, UTC, to the millisecond; the writer's claim, any string is read.

        run_id: The run, shared with the processes that it started.

        seq: The writing process's counter, from 0.

        repo: ``owner/name``; null where it could not be resolved.

        vinaya: The version of the CLI that wrote the line.

        doctrine: The version of the doctrine; ``unknown`` where it could not be read.

        host: Where the line was written.

        machine: The sha256 of the host's name.
    """

    schema: Literal[1]
    ts: Text
    run_id: RunId
    seq: Count
    repo: Text | None
    vinaya: Text
    doctrine: Text
    host: Host
    machine: Text


@frozen(kw_only=True)
class HeaderV2:
    """
    The header of schema 2. Source: Vinaya Log reference, Header fields.

    Args:
        schema: The number 2.

        ts: As in schema 1, like every field down to ``machine``.

        run_id: The run.

        seq: The process's counter.

        repo: The repository.

        vinaya: The CLI's version.

        doctrine: The doctrine's version.

        host: Where it was written.

        machine: The digest of the host's name.

        event_id: The event's identity.

        process_id: The writing process; distinct from ``run_id``.

        actor_id: Who claims to have acted; unchecked.

        lineage: Where the line stands among others.

        input_versions: The generations of a review's input.

        provenance: How far the attribution can be trusted.
    """

    schema: Literal[2]
    ts: Text
    run_id: RunId
    seq: Count
    repo: Text | None
    vinaya: Text
    doctrine: Text
    host: Host
    machine: Text
    event_id: FilledId
    process_id: FilledId
    actor_id: Id | None
    lineage: Lineage
    input_versions: InputVersions
    provenance: Provenance


@frozen(kw_only=True)
class HeaderV3:
    """
    The header of schema 3, the one that is written today. Source: Vinaya Log reference, Header fields.

    Args:
        schema: The number 3.

        ts: As in schema 2, like every field down to ``provenance``.

        run_id: The run.

        seq: The process's counter.

        repo: The repository.

        vinaya: The CLI's version.

        doctrine: The doctrine's version.

        host: Where it was written.

        machine: The digest of the host's name.

        event_id: The event's identity.

        process_id: The writing process.

        actor_id: Who claims to have acted.

        lineage: Where the line stands among others.

        input_versions: The generations of a review's input.

        provenance: How far the attribution can be trusted.

        work: The unit of work.

        flow: The way of working.

        runtime: The harness's runtime.

        source: What caused the line.
    """

    schema: Literal[3]
    ts: Text
    run_id: RunId
    seq: Count
    repo: Text | None
    vinaya: Text
    doctrine: Text
    host: Host
    machine: Text
    event_id: FilledId
    process_id: FilledId
    actor_id: Id | None
    lineage: Lineage
    input_versions: InputVersions
    provenance: Provenance
    work: Work
    flow: Flow
    runtime: Text | None
    source: Text | None


Header = HeaderV1 | HeaderV2 | HeaderV3
"""A header of any schema; ``schema`` tells which."""

HEADERS: Final = {1: HeaderV1, 2: HeaderV2, 3: HeaderV3}
"""The header class of each schema number."""


@frozen(kw_only=True)
class Subject:
    """
    What a line is about. Source: Vinaya Log reference, Header fields.

    Args:
        issue: The Issue's number; null where there is none.

        pr: The pull request's number.

        sha: The commit; gate lines only.

        role: Whose work it is.

        round: The round of the loop.

        objectives_version: The sha256 of the objectives.
    """

    issue: Integer | None
    pr: Integer | Absent = ABSENT
    sha: Text | Absent = ABSENT
    role: SubjectRole
    round: Integer | Absent = ABSENT
    objectives_version: Text | Absent = ABSENT

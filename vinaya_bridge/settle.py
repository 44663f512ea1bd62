"""Which of several lines under one identity stays (design, section 3: Identity)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Generic, Protocol, TypeVar
from zlib import adler32, crc32

from attrs import Factory, define

from vinaya_bridge.order import Ordered, precedence


class Identified(Ordered, Protocol):
    """What settling a line depends on."""

    @property
    def digest(self) -> str:
        """Of the line's content."""


T = TypeVar("T", bound=Identified)


@define
class Settled(Generic[T]):
    """
    Lines with their identities settled.

    Args:
        stay: One line an identity.

        duplicates: Lines whose identity and content stay already.

        conflicts: Lines whose identity stays with another content.
    """

    stay: list[T] = Factory(list)
    duplicates: list[T] = Factory(list)
    conflicts: list[T] = Factory(list)


def settle(lines: Iterable[T], staying: Mapping[str, str]) -> Settled[T]:
    """
    Settle which lines stay, are repeats, or conflict.

    What *staying* says stays. Among the others the content that is least by time, process, seq and digest stays; the
    result does not depend on the order of *lines*.

    Args:
        lines: Lines that are new together.

        staying: Digest of the content that is known to stay under an identity.
    """
    settled: Settled[T] = Settled()
    lines = list(lines)
    if not staying and len({line.identity for line in lines}) == len(lines):
        settled.stay = lines
        return settled
    first: dict[str, T] = {}
    others: dict[str, list[T]] = {}
    for line in lines:
        identity = line.identity
        if identity in first:
            others.setdefault(identity, []).append(line)
        else:
            first[identity] = line
    for identity, line in first.items():
        decided = staying.get(identity)
        if decided is None and identity not in others:
            settled.stay.append(line)
            continue
        same_identity = [line, *others.get(identity, ())]
        digest = decided
        if digest is None:
            digest = min(same_identity, key=lambda one: precedence(one, one.digest)).digest
        same_content = [one for one in same_identity if one.digest == digest]
        settled.conflicts.extend(one for one in same_identity if one.digest != digest)
        settled.stay.extend(same_content[:1])
        settled.duplicates.extend(same_content[1:])
    return settled


_BUCKETS = 64


def fingerprints(identities: Iterable[str]) -> list[int]:
    """
    Condense identities to numbers that are the same in every process, in a tenth of what a digest takes.

    Args:
        identities: Any texts.

    Returns:
        Of each a whole number below 2^64; two identities seldom have the same.
    """
    data = [identity.encode() for identity in identities]
    return [high << 32 | low for high, low in zip(map(crc32, data), map(adler32, data), strict=True)]


def run_fingerprint(main_run: str) -> int:
    """
    Condense a run id to a number that nobody can make two run ids share.

    Args:
        main_run: A run id.

    Returns:
        A whole number below 2^64, the same in every process.
    """
    return int.from_bytes(blake2b(main_run.encode(), digest_size=8).digest(), "big")


class Spread:
    """
    Finds identities that occur under more than one main run, at 16 bytes a line.

    Settling happens main run by main run; only these identities have to be settled before. Two identities with one
    fingerprint name an identity too many, never one too few.
    """

    def __init__(self) -> None:
        self._identities = [array("Q") for _ in range(_BUCKETS)]
        self._runs = [array("Q") for _ in range(_BUCKETS)]

    def add(self, identities: Iterable[str], main_run: int) -> None:
        """
        Note some lines of one main run.

        Args:
            identities: Of the lines.

            main_run: The `run_fingerprint` of the main run.
        """
        of_identities, of_runs = self._identities, self._runs
        for mark in fingerprints(identities):
            bucket = (mark >> 32) % _BUCKETS
            of_identities[bucket].append(mark)
            of_runs[bucket].append(main_run)

    def merge(self, other: Spread) -> None:
        """Note the lines of another part of the same call."""
        for bucket in range(_BUCKETS):
            self._identities[bucket].extend(other._identities[bucket])
            self._runs[bucket].extend(other._runs[bucket])

    def suspects(self) -> frozenset[int]:
        """Return the fingerprints of the identities that may occur under several main runs."""
        found: set[int] = set()
        for identities, runs in zip(self._identities, self._runs, strict=True):
            under = dict(zip(identities, runs, strict=True))
            found.update(
                identity for identity, run in zip(identities, runs, strict=True) if under[identity] != run
            )
        return frozenset(found)

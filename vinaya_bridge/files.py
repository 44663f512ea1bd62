"""What a log directory is: streams, rotation slots, queue buckets, compressed files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

from attrs import frozen

from vinaya_bridge.content import (
    Compression,
    NotRegularError,
    open_regular,
    printable,
    reason,
    refuse_irregular,
)
from vinaya_bridge.notices import (
    BAD_COMPRESSION,
    CHANGED,
    CODES,
    CUT_SHORT,
    LEFT_ALONE,
    MISSING,
    NO_SUCH_LINE,
    NOT_A_LOG,
    OUTPUT_IN_INPUT,
    OWN_OUTPUT,
    REMEDIES,
    SPOOL_FAILED,
    TOO_LONG,
    UNREADABLE,
    Notice,
    too_long,
)

__all__ = [
    "BAD_COMPRESSION",
    "CHANGED",
    "CODES",
    "CUT_SHORT",
    "LEFT_ALONE",
    "MISSING",
    "NOT_A_LOG",
    "NO_SUCH_LINE",
    "OUTPUT_IN_INPUT",
    "OWN_OUTPUT",
    "REMEDIES",
    "SPOOL_FAILED",
    "TOO_LONG",
    "UNREADABLE",
    "Bucket",
    "Discovery",
    "Found",
    "LogFile",
    "Notice",
    "StreamNames",
    "count_other_files",
    "discover",
    "identities",
    "is_log_name",
    "parse_name",
    "too_long",
    "walk",
]

_SUFFIXES: Final = {".ndjson" + each.value: each for each in Compression}
_LOG_ENDINGS: Final = tuple(_SUFFIXES)

_NO_STDIN: Final = (
    "standard input is not read here; save it to a file and give its path, or ./- for a file of that name"
)
_KEPT_INDEX: Final = "index.jsonl"
_KEPT_LINES: Final = frozenset({"refused.ndjson", "unknown-version.ndjson", "origin.ndjson"})


class Bucket(Enum):
    """
    The part of a stream that a file holds, by the end of its name; in the order oldest lines first.

    Vinaya files reference, sections 2 and 13. ``REJECTED`` stands apart: its lines are wrappers around a
    log line.
    """

    SLOT_DRAINING = ".1.draining"
    DRAINING = ".draining"
    SLOT = ".1"
    LIVE = ""
    REJECTED = ".rejected"

    @property
    def age(self) -> int:
        """The place in that order, from 0 for the oldest."""
        return _AGES[self]


_AGES: Final = {bucket: age for age, bucket in enumerate(Bucket)}
_MARKED_BUCKETS: Final = tuple(bucket for bucket in Bucket if bucket is not Bucket.LIVE)


@frozen
class LogFile:
    """
    One file of log lines, as it was found.

    Args:
        path: Where to open it.

        name: Its path relative to the argument it was reached through, with ``/``; unambiguous over all
            arguments; for an argument that is a file, its file name.

        stream: ``name`` without the marks of bucket and compression: what rotation keeps together.

        bucket: Which part of the stream it holds.

        compression: How it is stored.

        device: The device number at the time of listing.

        inode: The inode number at the time of listing.

        place: Where it is, absolute, as text for comparing and not for opening; only for files that are followed.
    """

    path: Path
    name: str
    stream: str
    bucket: Bucket
    compression: Compression
    device: int
    inode: int
    place: str = ""

    @property
    def order(self) -> tuple[str, int, str]:
        """The sort key of a listing: by stream, its oldest bucket first, then by name."""
        return self.stream, self.bucket.age, self.name


@frozen
class Discovery:
    """
    What the inputs hold.

    Args:
        files: Every log file once, sorted by stream, its oldest bucket first.

        notices: What was named and left alone, in the order in which it was met.
    """

    files: list[LogFile]
    notices: list[Notice]


@frozen
class Found:
    """
    A regular file that a search came across.

    Args:
        path: Where to open it.

        relative: Its path relative to the argument, with ``/``.

        status: What ``lstat`` says of it.
    """

    path: str
    relative: str
    status: os.stat_result


class StreamNames:
    """
    Gives every file a name that no other argument's file has, and every stream one name for all its files.

    The first argument in which a stream occurs gives it its plain name; the same stream of another argument
    is put under that argument's own base name, and under ``base~2``, ``base~3``, … where that is taken too.

    Args:
        arguments: The inputs in the order given, as text; a file's argument is an index into it.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._bases = [printable(Path(each).absolute().name) for each in arguments]
        self._owners: dict[str, tuple[int, str]] = {}
        self._prefixes: dict[tuple[int, str], str] = {}

    def log_file(self, found: Found, argument: int) -> LogFile:
        """
        Describe a file that was found through an argument.

        Args:
            found: The file.

            argument: The index of the argument that it was reached through.

        Returns:
            The file with its name, stream, bucket and compression.
        """
        stem, bucket, compression = parse_name(found.relative)
        prefix = self._prefix(argument, stem)
        return LogFile(
            path=Path(found.path),
            name=prefix + found.relative,
            stream=prefix + stem,
            bucket=bucket,
            compression=compression,
            device=found.status.st_dev,
            inode=found.status.st_ino,
        )

    def _prefix(self, argument: int, stem: str) -> str:
        owner = (argument, stem)
        if owner in self._prefixes:
            return self._prefixes[owner]
        base = self._bases[argument]
        prefix, number = "", 1
        while self._owners.setdefault(prefix + stem, owner) != owner:
            prefix = f"{base}/" if number == 1 else f"{base}~{number}/"
            number += 1
        self._prefixes[owner] = prefix
        return prefix


def paths_of(inputs: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    """
    Return inputs as a list: one path given alone is one input, not a list of letters.

    Args:
        inputs: A path, or several.
    """
    return [inputs] if isinstance(inputs, str | Path) else inputs


def discover(inputs: str | Path | Sequence[str | Path], *, exclude: Path | None = None) -> Discovery:
    """
    Find the log files in files and directories.

    A directory is searched at any depth for names that end in ``.ndjson``, ``.ndjson.gz`` or
    ``.ndjson.zst``; other files in it are left alone, and so is a directory that is the ``kept`` of an
    output. A file is taken whatever its name. An argument that
    is a link is followed, since a person named it; a link below a directory is not. A file that is reached
    twice (overlapping arguments, hard links) is taken once, through the first argument. The order depends
    on names, not on the file system.

    Args:
        inputs: Files and directories, or one. ``-`` has no meaning here: pass what `spool_stdin` returns.

        exclude: A directory that is not searched, such as the output.

    Returns:
        The files, and a notice for each thing under a log's name that is no readable regular file, for each
        directory that cannot be listed or is kept by an output, and for each argument that does not exist.
    """
    arguments = [os.fspath(each) for each in paths_of(inputs)]
    names = StreamNames(arguments)
    seen = set() if exclude is None else identities([exclude])
    files: list[LogFile] = []
    notices: list[Notice] = []
    for index, argument in enumerate(arguments):
        for found in walk(argument, seen):
            if isinstance(found, Notice):
                notices.append(found)
                continue
            file = names.log_file(found, index)
            try:
                os.close(open_regular(file.path)[0])
            except NotRegularError as error:
                notices.append(Notice(file.name, NOT_A_LOG, str(error)))
            except OSError as error:
                notices.append(Notice(file.name, UNREADABLE, reason(error)))
            else:
                files.append(file)
    return Discovery(sorted(files, key=lambda file: file.order), notices)


def walk(argument: str, seen: set[tuple[int, int]]) -> Iterator[Found | Notice]:
    """
    Search one argument for log files, without opening one; the rule is that of `discover`.

    Args:
        argument: A file or directory.

        seen: Device and inode of all that was met before. It is passed over, and what is met is added.

    Yields:
        Each regular file under a log's name, and a notice for each thing that is passed over.
    """
    try:
        status = os.stat(argument)  # noqa: PTH116 - Path("") would be the current directory
    except (FileNotFoundError, ValueError):
        message = _NO_STDIN if argument == "-" else "does not exist"
        yield Notice(printable(argument), MISSING, message)
        return
    except OSError as error:
        yield Notice(printable(argument), UNREADABLE, reason(error))
        return
    if _met(status, seen):
        return
    path = Path(argument)
    if stat.S_ISDIR(status.st_mode):
        yield from _walk_directory(path, seen)
        return
    try:
        refuse_irregular(status.st_mode)
    except NotRegularError as error:
        yield Notice(printable(argument), NOT_A_LOG, str(error))
    else:
        path = path.resolve()
        yield Found(os.fspath(path), printable(path.name), status)


def _walk_directory(root: Path, seen: set[tuple[int, int]]) -> Iterator[Found | Notice]:
    # A list of what is still to be searched: recursion would end at the interpreter's depth.
    waiting: list[tuple[str, str]] = [(os.fspath(root), "")]
    while waiting:
        directory, relative = waiting.pop()
        try:
            with os.scandir(directory) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield Notice(relative.rstrip("/") or printable(os.fspath(root)), UNREADABLE, reason(error))
            continue
        if _is_kept({entry.name for entry in entries}):
            message = "kept lines of an output of this tool; not read"
            yield Notice(relative.rstrip("/") or printable(os.fspath(root)), OWN_OUTPUT, message)
            continue
        below: list[tuple[str, str]] = []
        for entry in entries:
            name = relative + printable(entry.name)
            is_named = is_log = is_log_name(entry.name)
            try:
                # Follows links: one to a directory may lead to logs, so it is named.
                is_named = is_log or entry.is_dir()
                if not is_named:
                    continue
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since it was listed: the same as never there
            except OSError as error:
                if is_named:
                    yield Notice(name, UNREADABLE, reason(error))
                continue
            if _met(status, seen):
                continue
            if not is_log and stat.S_ISDIR(status.st_mode):
                below.append((entry.path, name + "/"))
                continue
            try:
                refuse_irregular(status.st_mode)
            except NotRegularError as error:
                yield Notice(name, NOT_A_LOG, str(error))
            else:
                yield Found(entry.path, name, status)
        waiting.extend(reversed(below))


def _is_kept(names: set[str]) -> bool:
    """Tell by the names in a directory whether it is the ``kept`` of an output."""
    return _KEPT_INDEX in names and not names.isdisjoint(_KEPT_LINES)


def count_other_files(inputs: Sequence[str | Path]) -> int:
    """
    Count the files that a search passes over because their names are not those of logs.

    Args:
        inputs: As given to `discover`; what cannot be listed counts as empty.

    Returns:
        How many; a file that is reached twice counts twice.
    """
    return sum(
        not is_log_name(name) for each in inputs for _, _, names in os.walk(os.fspath(each)) for name in names
    )


def _met(status: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return True
    seen.add(identity)
    return False


def identities(paths: Iterable[str | Path]) -> set[tuple[int, int]]:
    """
    Look up what paths name, whatever way they are spelled.

    Args:
        paths: Files and directories; links are followed, what does not exist is left out.

    Returns:
        Device and inode of each.
    """
    found = set()
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            continue
        found.add((status.st_dev, status.st_ino))
    return found


def is_log_name(name: str) -> bool:
    """
    Tell whether a file in a directory is taken for a log; by suffix, never by a number pattern.

    Vinaya files reference, hazard 33.

    Args:
        name: A file name.

    Returns:
        Whether it ends as a log's name does.
    """
    return name.endswith(_LOG_ENDINGS)


def parse_name(name: str) -> tuple[str, Bucket, Compression]:
    """
    Split a log's name into its stream and the marks behind it.

    Vinaya files reference, section 2.

    Args:
        name: A file name or relative path. One without a log's suffix is a live file of its own stream.

    Returns:
        The stream, the bucket and the compression.
    """
    suffix = next((each for each in _LOG_ENDINGS if name.endswith(each)), None)
    if suffix is None:
        last = Path(name).suffix
        return name, Bucket.LIVE, next((each for each in Compression if each.value == last), Compression.NONE)
    stem, compression = name.removesuffix(suffix), _SUFFIXES[suffix]
    for bucket in _MARKED_BUCKETS:
        stream = stem.removesuffix(bucket.value)
        if stream != stem and stream and not stream.endswith("/"):
            return stream, bucket, compression
    return stem, Bucket.LIVE, compression

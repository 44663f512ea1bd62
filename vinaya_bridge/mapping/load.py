"""Finding, reading, checking and compiling a mapping: what the commands and the library start from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from msgspec import Struct

from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.log.line import EventLine
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.compile import Drafter, compile_rule
from vinaya_bridge.mapping.emit import Emit, OverBound
from vinaya_bridge.mapping.findings import Finding, Place, Severity
from vinaya_bridge.mapping.lint import lint
from vinaya_bridge.mapping.reading import read_table
from vinaya_bridge.mapping.render import render
from vinaya_bridge.mapping.table import Table

SHIPPED = ("core", "generic")
"""The mappings that come with the package, by name."""


class CompiledMapping:
    """
    A mapping that has passed its checks, ready to be applied to lines.

    A rule is compiled when its event is first met; nothing else in it changes.

    Args:
        table: The rules.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.name = table.name
        self.digest = hashlib.sha256(render(table).encode()).hexdigest()
        self._by_class: dict[type, Drafter] = {}
        self._by_name: dict[tuple[str, str, int], Drafter] = {}

    def drafts(self, line: EventLine) -> list[Emit] | OverBound:
        """
        Make the events of a line.

        Args:
            line: A line that is valid under its schema.

        Returns:
            The events in order, none for an unmapped one; or the first bound that an event would break.
        """
        return self.drafter(line)(line)

    def drafter(self, line: EventLine) -> Drafter:
        """
        Find what makes the events of a line, and of all lines that are read into the same class.

        Args:
            line: A line that is valid under its schema.

        Returns:
            The function.
        """
        record_class = line.record.__class__
        drafter = self._by_class.get(record_class)
        if drafter is None:
            drafter = self._compiled(line.kind, line.event, line.schema)
            # The reader's structs are of one class an event and schema; the public classes are of one an event.
            if issubclass(record_class, Struct):
                self._by_class[record_class] = drafter
        return drafter

    def unmapped(self, kind: str, event: str) -> str | None:
        """
        Say why an event gives nothing.

        Args:
            kind: A family of the Log.

            event: An event in it.

        Returns:
            The reason; None where the event is mapped.
        """
        rule = self.table.rules.get((kind, event))
        return "no rule maps it" if rule is None else rule.unmapped

    def _compiled(self, kind: str, event: str, schema: int) -> Drafter:
        key = (kind, event, schema)
        if key not in self._by_name:
            rule = self.table.rules.get((kind, event))
            self._by_name[key] = _nothing if rule is None else compile_rule(rule, schema)
        return self._by_name[key]


def _nothing(line: EventLine) -> list[Emit]:
    del line
    return []


def load_mapping(mapping: str | Path, overlays: Sequence[str | Path] = ()) -> CompiledMapping:
    """
    Load a mapping, check it against both vocabularies, and make it ready.

    Args:
        mapping: ``core``, ``generic``, or the path of a TOML file.

        overlays: Files whose rules, lookups and drops replace those of the mapping; a later one wins.

    Returns:
        The mapping.

    Raises:
        ConfigurationError: A file cannot be read, or the mapping could emit a wrong event. All errors are named.
    """
    table, findings = read_mapping(mapping, overlays)
    errors = [
        finding for finding in (*findings, *lint(table, findings)) if finding.severity is Severity.ERROR
    ]
    if errors:
        raise _configuration_error(errors)
    return CompiledMapping(table)


def mapping_from_text(name: str, text: str) -> CompiledMapping:
    """
    Make a mapping ready that was checked before: for a process to which another one sends it.

    Args:
        name: Of the mapping.

        text: What `vinaya_bridge.mapping.render.render` wrote of its table.

    Returns:
        The mapping, with the digest that it had.
    """
    return CompiledMapping(read_table(text, file=name, name=name).table)


def read_mapping(
    mapping: str | Path, overlays: Sequence[str | Path] = ()
) -> tuple[Table, tuple[Finding, ...]]:
    """
    Read a mapping and its overlays without checking what they say.

    Args:
        mapping: As `load_mapping` takes it.

        overlays: As `load_mapping` takes them.

    Returns:
        The merged table, and what in the files is not of the language.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    file, text = _text_of(mapping)
    base = read_table(text, file=file, name=_name_of(mapping))
    table, findings = base.table, list(base.findings)
    for overlay in overlays:
        file, text = _text_of(overlay)
        over = read_table(text, file=file, name=table.name, base_lookups=table.lookups)
        findings.extend(over.findings)
        table = table.with_overlays([over.table])
    return table, tuple(findings)


def shipped_mapping(name: str) -> Traversable:
    """
    Find a mapping that comes with the package, in an installed wheel or in a source tree.

    Args:
        name: One of `SHIPPED`.

    Returns:
        The file.
    """
    packaged = resources.files("vinaya_bridge") / "mappings" / f"{name}.toml"
    if packaged.is_file():
        return packaged
    # A source tree keeps the tables beside the package, where people look for them.
    return Path(__file__).resolve().parents[2] / "mappings" / f"{name}.toml"


def _text_of(mapping: str | Path) -> tuple[str, str]:
    """The name that findings show for a mapping's file, and its text."""
    if isinstance(mapping, str) and mapping in SHIPPED:
        return f"mappings/{mapping}.toml", shipped_mapping(mapping).read_text(encoding="utf-8")
    path = Path(mapping)
    try:
        return str(mapping), path.read_bytes().decode()
    except UnicodeDecodeError:
        message = "the file is not UTF-8 text"
        raise ConfigurationError(
            codes.UNREADABLE_TABLE, message, place=str(mapping), remedy="save it as UTF-8"
        ) from None
    except OSError as error:
        is_a_name = isinstance(mapping, str) and not path.suffix and len(path.parts) == 1
        code = codes.NO_SUCH_MAPPING if is_a_name else codes.UNREADABLE_TABLE
        message = f"no mapping is called `{mapping}`" if is_a_name else f"{error.strerror or 'unreadable'}"
        remedy = "give `core`, `generic`, or the path of a TOML file"
        raise ConfigurationError(code, message, place=str(mapping), remedy=remedy) from None


def _name_of(mapping: str | Path) -> str:
    return mapping if isinstance(mapping, str) and mapping in SHIPPED else Path(mapping).stem


def _configuration_error(errors: list[Finding]) -> ConfigurationError:
    first = min(errors, key=_in_file_order)
    others = [f"\n{error}" for error in sorted(errors, key=_in_file_order) if error is not first]
    message = first.message + (f"\n(and {len(others)} more)" if others else "")
    remedy = first.remedy + "".join(others)
    return ConfigurationError(first.code, message, place=str(first.place), remedy=remedy)


def _in_file_order(finding: Finding) -> Place:
    return finding.place

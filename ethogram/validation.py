"""
Whether a producer should have sent a payload: bounds, closed unions and the protocol's few policies.

Source: the ethogram specification, "Sink guide: refusing a validation error", and the order of checks that
the SDKs share.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import asdict, frozen

from ethogram.canonical import CanonicalError, canonical_payload
from ethogram.errors import EthogramError
from ethogram.json_text import ParseError, check_number, numbers_fit
from ethogram.payload import check_payload
from ethogram.vocabulary import (
    CONTROL_REQUESTED,
    DECISION_REQUESTED,
    EVENT_TYPES,
    MAX_PAYLOAD_BYTES,
    MAX_TEXT_SCALARS,
    Field,
    FieldKind,
)


@frozen
class OverBound:
    """
    A string is longer than its bound.

    Args:
        path: Where: ``payload.dossier.question``.

        count: Its length in Unicode scalar values.

        max: The bound, in the same unit.
    """

    path: str
    count: int
    max: int
    kind: Literal["OverBound"] = "OverBound"


@frozen
class PayloadTooLarge:
    """
    The payload's canonical form is longer than its bound.

    Args:
        bytes: Its length in bytes.

        max: The bound, in bytes.
    """

    bytes: int
    max: int
    kind: Literal["PayloadTooLarge"] = "PayloadTooLarge"


@frozen
class UnknownMember:
    """
    A closed union holds something that is not of its set.

    Args:
        path: Where.

        value: The string as it was sent. The protocol has it here; no message repeats it.
    """

    path: str
    value: str
    kind: Literal["UnknownMember"] = "UnknownMember"


@frozen
class MissingField:
    """
    A required field is absent.

    Args:
        path: Where it should be.
    """

    path: str
    kind: Literal["MissingField"] = "MissingField"


@frozen
class Policy:
    """
    A stated rule is broken by a payload that could be represented.

    Args:
        path: Where.

        message: Which rule.
    """

    path: str
    message: str
    kind: Literal["Policy"] = "Policy"


@frozen
class Malformed:
    """
    A value cannot be represented: a wrong type, an unsafe integer, no JSON.

    Args:
        path: Where.

        message: What was required.
    """

    path: str
    message: str
    kind: Literal["Malformed"] = "Malformed"


ValidationDetails: TypeAlias = OverBound | PayloadTooLarge | UnknownMember | MissingField | Policy | Malformed
"""The six kinds of fault, told apart by class or by ``kind``."""


class ValidationError(EthogramError):
    """
    Raised when a payload breaks the protocol's rules for producers.

    Args:
        details: What is wrong, as fields: nobody needs to read the message.
    """

    def __init__(self, details: ValidationDetails) -> None:
        super().__init__(_message(details))
        self.details = details

    @property
    def kind(self) -> str:
        """Which of the six kinds it is: ``OverBound``, ``Policy`` and so on."""
        return self.details.kind

    @property
    def path(self) -> str:
        """Where the fault is, on the wire; ``payload`` for one that is too large."""
        return "payload" if isinstance(self.details, PayloadTooLarge) else self.details.path


def serialise_validation_error(error: ValidationError) -> bytes:
    """
    Write a fault's kind and fields in canonical JSON, as every SDK does.

    Args:
        error: The fault.

    Returns:
        UTF-8; the keys are sorted.
    """
    return canonical_payload(asdict(error.details))


def validate(type_name: str, payload: object) -> None:
    """
    Refuse a payload that a producer should not have sent.

    Only the first fault counts, in this order: any string over 16,384 scalars; over 131,072 bytes; and for a
    known type unsafe integers, shape, closed unions, policy, the bounds of single fields.

    Args:
        type_name: The event's type. An unknown one has only the two universal bounds.

        payload: The decoded payload.

    Raises:
        ValidationError: With the fault as `ValidationError.details`.
    """
    validated_payload(type_name, payload)


def validated_payload(type_name: str, payload: object) -> bytes:
    """
    Validate a payload and write it: what makes a `ethogram.envelope.CanonicalDraft` honest.

    Args:
        type_name: The event's type.

        payload: The decoded payload.

    Returns:
        Its canonical form, which validation measures anyway.

    Raises:
        ValidationError: As `validate` raises it.
    """
    try:
        text = canonical_payload(payload)
    except CanonicalError as fault:
        raise ValidationError(Malformed("payload", f"payload cannot be written: {fault}")) from None
    # A string is never longer than the bytes of the whole: a short payload needs no walk.
    if len(text) > MAX_TEXT_SCALARS:
        _check_strings(payload)
    if len(text) > MAX_PAYLOAD_BYTES:
        raise ValidationError(PayloadTooLarge(len(text), MAX_PAYLOAD_BYTES))
    known = EVENT_TYPES.get(type_name)
    if known is not None:
        try:
            if not numbers_fit(payload):
                _check_numbers(payload)
            check_payload(type_name, payload)
        except ParseError as fault:
            raise ValidationError(_parse_fault(fault)) from None
        assert isinstance(payload, dict)  # noqa: S101  check_payload has just refused everything else
        _check_members(known.payload, payload, "payload")
        _check_policy(type_name, payload)
        _check_bounds(known.payload, payload, "payload")
    return text


def _parse_fault(fault: ParseError) -> ValidationDetails:
    return MissingField(fault.path) if fault.missing else Malformed(fault.path, fault.message)


def _check_strings(payload: object) -> None:
    stack: list[tuple[object, str]] = [(payload, "payload")]
    while stack:
        item, path = stack.pop()
        if isinstance(item, str):
            if len(item) > MAX_TEXT_SCALARS:
                raise ValidationError(OverBound(path, len(item), MAX_TEXT_SCALARS))
        else:
            stack.extend(_inside(item, path))


def _check_numbers(payload: object) -> None:
    stack: list[tuple[object, str]] = [(payload, "payload")]
    while stack:
        item, path = stack.pop()
        if isinstance(item, int | float) and not isinstance(item, bool):
            check_number(item, path)
        else:
            stack.extend(_inside(item, path))


def _inside(item: object, path: str) -> list[tuple[object, str]]:
    """What is directly inside an object or array, with paths, last first: a stack pops the first."""
    if isinstance(item, list):
        return [(item[index], f"{path}[{index}]") for index in range(len(item) - 1, -1, -1)]
    if isinstance(item, dict):
        return [(inner, f"{path}.{key}") for key, inner in reversed(item.items())]
    return []


def _check_members(expected: Field, value: dict[str, object], path: str) -> None:
    for field in expected.fields:
        if field.kind is FieldKind.UNION:
            member = value.get(field.name)
            if isinstance(member, str) and member not in field.members:
                raise ValidationError(UnknownMember(f"{path}.{field.name}", member))


def _check_policy(type_name: str, payload: dict[str, object]) -> None:
    if type_name == CONTROL_REQUESTED:
        if payload["kind"] == "steer" and not payload.get("text"):
            raise _policy("payload.text", "a steer must say something: text may not be absent or empty")
    elif type_name == DECISION_REQUESTED and "onTimeout" in payload:
        _check_on_timeout(payload)


def _check_on_timeout(payload: dict[str, object]) -> None:
    path = "payload.onTimeout"
    if payload["kind"] != "permission":
        raise _policy(path, "onTimeout is allowed only for a decision of kind permission")
    if payload["onTimeout"] != "deny":
        raise _policy(path, "onTimeout of a permission can only be deny")
    options = payload["options"]
    ids = [option.get("id") for option in options] if isinstance(options, list) else []
    if "deny" not in ids:
        raise _policy(path, "onTimeout must name the id of one of the options")


def _policy(path: str, message: str) -> ValidationError:
    return ValidationError(Policy(path, message))


def _check_bounds(field: Field, value: object, path: str) -> None:
    if isinstance(value, str):
        if field.max_scalars is not None and len(value) > field.max_scalars:
            raise ValidationError(OverBound(path, len(value), field.max_scalars))
    elif isinstance(value, dict):
        for inner in field.fields:
            if inner.name in value:
                _check_bounds(inner, value[inner.name], f"{path}.{inner.name}")
    elif isinstance(value, list) and field.item is not None:
        for index, item in enumerate(value):
            _check_bounds(field.item, item, f"{path}[{index}]")


def _message(details: ValidationDetails) -> str:
    match details:
        case OverBound(path=path, count=count, max=bound):
            return f"{path} has {count} Unicode scalar values; at most {bound} are allowed"
        case PayloadTooLarge(bytes=size, max=bound):
            return f"payload has {size} bytes; at most {bound} are allowed"
        case UnknownMember(path=path):
            return f"{path} is not a member of its closed set"
        case MissingField(path=path):
            return f"{path} is required and is not there"
        case Policy(message=message) | Malformed(message=message):
            return message

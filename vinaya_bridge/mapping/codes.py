"""What can be wrong with a mapping, each with its page; the mapping checker and the loader use these."""

from __future__ import annotations

from vinaya_bridge.errors import Code

UNREADABLE_TABLE = Code(
    "VB201",
    "the mapping file cannot be read",
    "The file does not exist, may not be read, or is not UTF-8 text. Check the path. A mapping is given as "
    "a name (`core`, `generic`) or as the path of a TOML file.",
)
NOT_TOML = Code(
    "VB202",
    "the mapping file is not TOML",
    "The text breaks a rule of TOML 1.0, so nothing in it can be trusted. The place is where the parser "
    "gave up; the fault is there or shortly before.",
)
OTHER_FORMAT = Code(
    "VB203",
    "the table is of another format version",
    "A mapping states `format = 1` at its top. A table without it, or with another number, was written for "
    "another version of this language and may mean something else by the same words.",
)
UNKNOWN_KEY = Code(
    "VB204",
    "a key that the mapping language does not have",
    "Only the keys of the language are taken, so that a misspelt one is never quietly without effect.",
)
WRONG_SHAPE = Code(
    "VB205",
    "a value of the wrong shape",
    "The key is known, its value is not of the kind that it takes: text, a number, a list, a table, or one "
    "of the forms `lookup`, `excerpt`, `template`, `round`, `count`, `literal`.",
)
MISSING_KEY = Code(
    "VB206",
    "a key that is needed is not there",
    "A rule states its `generic` families and either `emit` or `unmapped`. An emit states `run`, `type` and "
    "its `payload`.",
)
UNKNOWN_EVENT = Code(
    "VB207",
    "an event that the Log does not have",
    "A rule stands under `rule.KIND.EVENT`, and the Log has 32 such pairs. `vinaya-bridge mapping coverage` "
    "lists them.",
)
UNKNOWN_RUN = Code(
    "VB208",
    "a run that the engine does not have",
    "An emit goes to `main`, the run of the line, or to `dispatch`, the run of one role's turn. Only a line "
    "of the dispatch family has a dispatch run.",
)
UNKNOWN_ENGINE_VALUE = Code(
    "VB209",
    "an engine value that does not exist here",
    "The engine knows `@run.elapsed_ms` (the last alternative of run.finished.durationMs, and nowhere else) "
    "and `@run.parent` (run.started.parentRunId). Conditions may ask `@line.starts_run`, `@line.ends_run` "
    "and `@agent.started`.",
)
UNKNOWN_FAMILY = Code(
    "VB210",
    "a generic family or basis that does not exist",
    "`generic` names families of the process contract, each with the basis `stated` (the Log's reference "
    "says so) or `inferred` (it does not, and this is a reading of it).",
)
TWO_RULES = Code(
    "VB211",
    "two rules for one event, or one key given twice",
    "Which of the two applies would depend on their order. Give each event one rule; a rule may emit "
    "several events.",
)
NO_SUCH_PATH = Code(
    "VB212",
    "a path that this event does not have",
    "A path names a field of the line as the Log's reference does, from `$`. No line of this event has this "
    "one, under any header schema, so the rule could only ever leave its field out.",
)
SOME_SCHEMAS_ONLY = Code(
    "VB213",
    "a path that only some header schemas have",
    "Older lines do not have this field, so the payload field is left out for them. Give an alternative, or "
    "write the path as a list of one to say that leaving it out is meant.",
)
THROUGH_ABSENT = Code(
    "VB214",
    "a path through an object that may be null or absent",
    "The field is left out where the object is not there, and nobody learns why. State the reason under "
    "`unknown`, copy the whole object, or write the path as a list of one to say that leaving it out is "
    "meant.",
)
WRONG_TYPE = Code(
    "VB215",
    "a value that the target field cannot hold",
    "The protocol says which kind of value each field of its own types holds: text, true or false, a "
    "number, a count (a whole number from 0), one of a closed set, an object or a list. Another kind would "
    "be refused by every sink.",
)
NEEDS_WHOLE_NUMBER = Code(
    "VB216",
    "a figure that needs the form `round` or `count`",
    "The target holds whole numbers. The source may be a fraction, negative, or too large for a reader to "
    "hold exactly. `{ round = ... }` makes a duration whole; `{ count = ..., text = ... }` takes a count as "
    "it is and carries any other figure as text.",
)
LOOKUP_INCOMPLETE = Code(
    "VB217",
    "a lookup that does not cover every member",
    "A lookup is closed: each member that can reach it has an entry. A line with the missing member would "
    "lose the field.",
)
LOOKUP_UNKNOWN_MEMBER = Code(
    "VB218",
    "a lookup entry for a member that does not exist, or cannot reach it",
    "The entry never applies: the Log has no such member, or the emit's `when` excludes it. It is misspelt "
    "or left over.",
)
LOOKUP_NOT_CLOSED = Code(
    "VB219",
    "a lookup over a field that is not a closed set",
    "Only a field with a fixed list of members, or true and false, can be looked up: nothing else can be "
    "covered in full.",
)
NOT_A_MEMBER = Code(
    "VB220",
    "a value outside the target's closed set",
    "The protocol closes this field over a fixed list. A sink refuses any other word, and a reader would "
    "not know it.",
)
MAY_BE_ABSENT = Code(
    "VB221",
    "a required field that may be absent on some line",
    "The protocol requires this field. On some line that the Log allows, every source given here is null or "
    "absent. End the list with a literal, or choose another source.",
)
POLICY = Code(
    "VB222",
    "a rule of the protocol's own vocabulary would be broken",
    "`decision.requested` takes `onTimeout` only for a permission, only as `deny`, and only when `deny` is "
    "among its options. `control.requested` with kind `steer` needs text that is not empty.",
)
NEEDS_EXCERPT = Code(
    "VB223",
    "free text where the target is bounded",
    "The protocol bounds narration at 4,096 characters and any text at 16,384. Longer text would make the "
    "whole line refused. `{ excerpt = ... }` keeps the beginning and says that it was cut.",
)
TEMPLATE_TOO_LONG = Code(
    "VB224",
    "a template that can exceed its target's bound",
    "The longest text that its sources allow does not fit. Give the template a `max`, or use fewer or "
    "bounded sources.",
)
TYPE_SHAPE = Code(
    "VB225",
    "a type that is not `domain.past_tense`",
    "A type is lower-case words joined by dots and says what happened: `gate.evaluated`. Its last word is a "
    "past tense, or the name of a generic family of the Log.",
)
TYPE_RESERVED = Code(
    "VB226",
    "a type inside a domain that belongs to the protocol",
    "`run.*`, `agent.*`, `control.*` and `capture.*` belong to the protocol; so do `decision.requested` and "
    "`decision.answered`. A word of ours there could become the protocol's with another meaning.",
)
TYPE_FROM_LINE = Code(
    "VB227",
    "a type that a line could choose freely",
    "A type may hold a path only behind the prefix `vinaya.`, since a declared name can spell a type of the "
    "protocol (`agent.text`) whose payload does not fit it.",
)
NOT_COVERED = Code(
    "VB228",
    "an event that no rule maps",
    "Each of the 32 events has a rule. One that should give nothing says so with `unmapped` and a reason, "
    "so that it is counted and nobody wonders.",
)
FIELD_LOST = Code(
    "VB229",
    "a field that no rule reads and no `drop` names",
    "It would be lost in silence. Carry it in a payload, or name it under `drop` with the reason.",
)
NEVER_APPLIES = Code(
    "VB230",
    "a rule, an emit or an alternative that can never apply",
    "Its condition compares with a value that the field never has, or something before it always answers "
    "first.",
)
FAMILY_MISMATCH = Code(
    "VB231",
    "a generic family that is missing or marked wrongly",
    "The families that the Log's reference states for an event are all named, with the basis `stated`; "
    "every other one is `inferred`.",
)
BAD_CONDITION = Code(
    "VB232",
    "a condition that cannot be decided",
    "`when` compares a path of one plain value with a literal or a list of literals of its kind, or asks "
    "one of the engine's three questions with true or false. An emit may ask the engine one question only.",
)
DROPPED_AND_READ = Code(
    "VB233",
    "a field that the same rule reads and drops",
    "The `drop` is left over or the field is carried by mistake: the table says two things about it.",
)
RESERVED_FIELD = Code(
    "VB234",
    "a payload field that the engine writes",
    "Every payload gets the object `vinaya` (where the event came from), and `estimated` where the engine "
    "computed a duration. A rule cannot write them, nor two sources one field.",
)
UNUSED_LOOKUP = Code(
    "VB235",
    "a named lookup that no rule uses",
    "It has no effect. Remove it, or use it where it was meant.",
)
NO_SUCH_MAPPING = Code(
    "VB236",
    "no mapping of that name",
    "The mappings that come with the package are `core` and `generic`. Anything else is taken as the path "
    "of a file.",
)
NO_CASES = Code(
    "VB237",
    "no mapping cases found",
    "A case is a folder with at least one file `input*.ndjson`. A test run that finds none has tested "
    "nothing.",
)

CODES: tuple[Code, ...] = (
    UNREADABLE_TABLE,
    NOT_TOML,
    OTHER_FORMAT,
    UNKNOWN_KEY,
    WRONG_SHAPE,
    MISSING_KEY,
    UNKNOWN_EVENT,
    UNKNOWN_RUN,
    UNKNOWN_ENGINE_VALUE,
    UNKNOWN_FAMILY,
    TWO_RULES,
    NO_SUCH_PATH,
    SOME_SCHEMAS_ONLY,
    THROUGH_ABSENT,
    WRONG_TYPE,
    NEEDS_WHOLE_NUMBER,
    LOOKUP_INCOMPLETE,
    LOOKUP_UNKNOWN_MEMBER,
    LOOKUP_NOT_CLOSED,
    NOT_A_MEMBER,
    MAY_BE_ABSENT,
    POLICY,
    NEEDS_EXCERPT,
    TEMPLATE_TOO_LONG,
    TYPE_SHAPE,
    TYPE_RESERVED,
    TYPE_FROM_LINE,
    NOT_COVERED,
    FIELD_LOST,
    NEVER_APPLIES,
    FAMILY_MISMATCH,
    BAD_CONDITION,
    DROPPED_AND_READ,
    RESERVED_FIELD,
    UNUSED_LOOKUP,
    NO_SUCH_MAPPING,
    NO_CASES,
)
"""Every code of this area, in order."""

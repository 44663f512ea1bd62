"""One loop of the benchmark corpus, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from random import Random

MILLISECONDS_A_DAY = 86_400_000
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
VERSIONS = {1: ("0.24.1", "0.30.1"), 2: ("0.32.4", "0.34.0", "0.38.0"), 3: ("0.41.2", "0.42.0")}
"""CLI versions by header schema; those below 0.33.0 are of low trust."""

_MODELS = ("opus-4.1-20260801", "sonnet-4.5-20260929", "gpt-5-codex", "gemini-2.5-pro")
_PHASES = ("dispatch_developer", "publish", "dispatch_reviewers", "read_gate", "pause")
_TARGETS = (
    "check",
    "task run --only unit,types,format --since origin/main -- src/lamp src/switch tests/lamp tests/switch",
    "pr open --draft --title 'Bound the wait of the retry' --base main --head task/bounded-retry",
)
_FINDING = (
    "The retry waits for a time that the caller cannot bound — a slow answer holds the lock for every other "
    "worker. Take the deadline as an argument, pass it on, and test the path in which it has passed."
)


class _Clock:
    """The time of one loop, in milliseconds since 1970; it only goes forward."""

    __slots__ = ("_day", "_day_text", "ms")

    def __init__(self, ms: int) -> None:
        self.ms = ms
        self._day = -1
        self._day_text = ""

    def stamp(self, after_ms: int) -> str:
        self.ms += after_ms
        day, rest = divmod(self.ms, MILLISECONDS_A_DAY)
        if day != self._day:
            self._day, self._day_text = day, date.fromordinal(EPOCH_ORDINAL + day).isoformat()
        seconds, millisecond = divmod(rest, 1000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        return f"{self._day_text}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"


@dataclass(frozen=True, slots=True)
class _Story:
    """What all lines of one loop have in common."""

    random: Random
    clock: _Clock
    schema: int
    version: str
    issue: int
    name: str

    @property
    def loop(self) -> str:
        """How the body of every dev_review_loop line begins."""
        return f'"kind":"dev_review_loop","payload":{{}},"loop_id":"{self.name}","event":'


class _Process:
    """One sink: a header that stays, a `seq` that counts from 0."""

    __slots__ = ("_clock", "_head", "_random", "_rest", "_role", "_schema", "_tail", "seq")

    def __init__(self, story: _Story, *, run: str, host: str, role: str) -> None:
        schema, issue, random = story.schema, story.issue, story.random
        process = f"{random.getrandbits(128):032x}"
        machine = f"{issue % 7 * 7919 + 11:064x}"
        actor = "null" if role == "unattributed" else f'"{role}"'
        self._random, self._clock, self._schema, self.seq = random, story.clock, schema, 0
        self._head = f'{{"meta":{{"schema":{schema},"ts":"'
        self._rest = (
            f',"repo":"acme/lantern","vinaya":"{story.version}","doctrine":"aeg-root@{machine[-40:]}",'
            f'"host":"{host}","machine":"{machine}"'
        )
        objectives = f'"objectives_version":"{random.getrandbits(256):064x}"'
        brief = f'"brief_hash":"{random.getrandbits(256):064x}"'
        parts = f'{objectives},{brief},"ruling_ordinal":1,"policy_digest":null'
        if schema == 3:
            parts = f'"manifest_version":2,{objectives}'
        self._tail = (
            f'","process_id":"{process}","actor_id":{actor},"lineage":{{"run":"{story.name}","attempt":null,"parent":null}},'
            f'"input_versions":{{{parts}}},"provenance":"env_correlated"'
        )
        if schema == 3:
            self._tail += (
                f',"work":{{"ref":"{issue}","repo":"acme/lantern","change":"{issue + 4000}",'
                f'"revision":"{random.getrandbits(160):040x}"}},'
                '"flow":{"id":"vinaya","version":null},"runtime":null,"source":null'
            )
        self._head += f'%s","run_id":"{run}","seq":'
        self._role = f'}},"subject":{{"issue":{issue},"pr":{issue + 4000},"role":"{role}",{objectives}'

    def line(self, after_ms: int, body: str, round_number: int = 0) -> str:
        """The next line: `body` is everything from ``"kind"`` on, without the closing brace."""
        head = self._head.replace("%s", self._clock.stamp(after_ms), 1)
        seq = self.seq
        self.seq = seq + 1
        subject = f'{self._role},"round":{round_number}}}' if round_number else f"{self._role}}}"
        if self._schema == 1:
            return f"{head}{seq}{self._rest}{subject},{body}}}\n"
        bits = f"{self._random.getrandbits(128):032x}"
        identity = f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"
        return f'{head}{seq}{self._rest},"event_id":"{identity}{self._tail}{subject},{body}}}\n'


def loop_lines(random: Random, number: int, start_ms: int, *, work: int = 1) -> Iterator[str]:
    """
    Make the lines of one loop, from its start to its last end; every third one pauses and is resumed.

    Args:
        random: The source of every choice.

        number: Which loop it is; it decides the schema and the task.

        start_ms: When it starts, in milliseconds since 1970-01-01.

        work: How many times over each dispatched role does what it does: runs are so many times longer.

    Yields:
        Lines with their newline, by time.
    """
    schema = (3, 3, 2, 3, 1, 3, 2, 3)[number % 8]
    version = random.choice(VERSIONS[schema])
    issue, name = 1000 + number, f"loop-{1000 + number}-{random.getrandbits(32):08x}"
    run = _uuid(random)

    story = _Story(random, _Clock(start_ms), schema, version, issue, name)
    driver, loop = _Process(story, run=run, host="loop", role="unattributed"), story.loop
    rounds = random.randint(1, 3)
    models = (
        f'"developer":"{random.choice(_MODELS)}","code-reviewer":"{_MODELS[1]}","security":"{_MODELS[2]}"'
    )
    yield driver.line(
        0,
        f'{loop}"loop_started","task":{issue},"policy":{{"max_rounds":5,'
        f'"reviewers":["code-reviewer","security"],"models":{{{models}}}}}',
    )
    base = _sha(random)
    for turn in range(1, rounds + 1):
        head = _sha(random)
        yield driver.line(300, f'{loop}"round_started","round":{turn},"base_head":"{base}"', turn)
        yield from _turn(story, driver, "developer", turn, work)
        # Under schema 1 a child that shared the run would share its identities too.
        child = _Process(story, run=_uuid(random) if schema == 1 else run, host="cli", role="developer")
        for _ in range(work):
            yield from _child(story, child, turn, head)
        green = "true" if turn == rounds else random.choice(("true", "false"))
        confidence = (
            f',"confidence_value":{random.randrange(101)},"confidence_reason":"All paths have a test."'
        )
        yield driver.line(
            900,
            f'{loop}"gate_result_read","round":{turn},"head":"{head}","green":{green}'
            + (confidence if turn > 1 and green == "true" else ""),
            turn,
        )
        yield from _turn(story, driver, "code-reviewer", turn, work)
        yield from _turn(story, driver, "security", turn, work)
        blockers = 0 if turn == rounds else 1
        yield driver.line(700, _verdicts(loop, turn, head, blockers), turn)
        if turn > 1:
            yield driver.line(
                90,
                f'{loop}"findings_compared","round":{turn},"open":[],"resolved":["F{turn - 1}"],'
                f'"new":["F{turn}"],"recurring":[]',
                turn,
            )
        if turn == rounds and number % 3 == 0:
            yield from _pause(story, driver, turn)
            driver = _Process(story, run=_uuid(random), host="loop", role="unattributed")
            yield driver.line(2_400_000, f'{loop}"resumed","round":{turn},"by":"principal"', turn)
            yield driver.line(
                50,
                '"kind":"handoff","payload":{},"event":"resolved","class":"product","reason":"escalation",'
                '"resolution":"Keep the old answer for one release.","resolved_by":"principal"',
                turn,
            )
        outcome = "green" if turn == rounds else "changes_requested"
        yield driver.line(
            200,
            f'{loop}"round_ended","round":{turn},"base_head":"{base}","head":"{head}",'
            f'"files_changed":{turn + 3},"insertions":{turn * 71},"deletions":{turn * 9},'
            f'"wall_ms":{turn * 403_117},"outcome":"{outcome}"',
            turn,
        )
        base = head
    yield from _close(story, driver, rounds, base, cancelled=number % 11 == 5)


def _uuid(random: Random) -> str:
    bits = f"{random.getrandbits(128):032x}"
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"


def _sha(random: Random) -> str:
    return f"{random.getrandbits(160):040x}"


def _turn(story: _Story, driver: _Process, role: str, turn: int, work: int) -> Iterator[str]:
    """A dispatch from its launch to its outcome."""
    random, loop, issue = story.random, story.loop, story.issue
    model = random.choice(_MODELS)
    effect = f"eff-{random.getrandbits(64):016x}"
    shared = f'"target_role":"{role}","model":"{model}","round":{turn},"effect_id":"{effect}"'
    prompt = f"{random.getrandbits(256):064x}"
    yield driver.line(
        1500,
        f'"kind":"dispatch","payload":{{}},{shared},"event":"dispatched","prompt_hash":"{prompt}"',
        turn,
    )
    for _ in range(work - 1 + random.randint(1, 3)):
        yield driver.line(
            290_000,
            f'{loop}"driver_heartbeat","task":{issue},"pr":{issue + 4000},"round":{turn},'
            f'"phase":"{random.choice(_PHASES)}"',
            turn,
        )
    tokens_in, tokens_out, cache = (
        random.randrange(100, 60_000),
        random.randrange(50, 9_000),
        random.randrange(900_000),
    )
    wall = random.randrange(9_000, 900_000)
    known = f'{{"input":{tokens_in},"output":{tokens_out}}}'
    if model.startswith("gemini"):
        known = "null"
        units, why = '{"input":null,"output":null,"cache":null}', '"gemini reports no token counts"'
    else:
        units, why = f'{{"input":{tokens_in},"output":{tokens_out},"cache":{cache}}}', "null"
    yield driver.line(
        40_000,
        f'"kind":"usage","duration_ms":{wall},"payload":{{}},"event":"observed","model":"{model}","source":"claude",'
        f'"semantics":"cumulative","units":{units},"unknown_reason":{why}',
        turn,
    )
    failed = random.random() < 0.06
    outcome = "infrastructure_failed" if failed else "completed"
    yield driver.line(
        12,
        f'"kind":"role_attempt","payload":{{}},"event":"attempted","actor":"{role}","attempt":1,'
        f'"effect_id":"{effect}","model":"{model}","outcome":"{outcome}","usage":{known}',
        turn,
    )
    if failed:
        limit = ',"usage_limit":{"agent":"claude","reset_at":null}' if random.random() < 0.3 else ""
        reason = (
            "usage_limit" if limit else random.choice(("timeout", "crash", "refused", "unattributed_write"))
        )
        yield driver.line(
            9,
            f'"kind":"dispatch","duration_ms":{wall},"payload":{{}},{shared},"event":"dispatch_failed",'
            f'"reason":"{reason}"{limit},"usage":{known}',
            turn,
        )
        yield driver.line(
            30,
            f'{loop}"infrastructure_retry","round":{turn},"failure_kind":"developer_connection",'
            '"attempts":2,"outcome":"recovered"',
            turn,
        )
        return
    yield driver.line(
        9,
        f'"kind":"dispatch","duration_ms":{wall},"payload":{{}},{shared},"event":"outcome_received",'
        f'"outcome":{{"type":"completed"}},"usage":{known}',
        turn,
    )


def _child(story: _Story, child: _Process, turn: int, head: str) -> Iterator[str]:
    """What a dispatched developer's own commands write."""
    random, schema = story.random, story.schema
    for target in _TARGETS:
        yield child.line(
            4_000,
            f'"kind":"operation","duration_ms":{random.randrange(40, 90_000)},"payload":{{}},'
            f'"event":"completed","operation":"cli_command","target":"{target}","result":"ok","error_class":"0"',
            turn,
        )
    failed = '"unit-tests"' if random.random() < 0.4 else ""
    if failed:
        yield child.line(
            800,
            '"kind":"gate","duration_ms":30004.5,"payload":{},"event":"checked","check":"unit-tests",'
            f'"check_version":"3","policy_version":null,"input_fingerprint":"{head}","outcome":"fail",'
            '"reason":"errors:2"',
            turn,
        )
    failures = len(failed) and 1
    yield child.line(
        5,
        f'"kind":"gate","duration_ms":61231,"payload":{{}},"event":"summary","ran":9,"passed":{9 - failures},'
        f'"failed":{failures},"skipped":1,"failed_checks":[{failed}]',
        turn,
    )
    effect = f'"effect_id":"fx-{random.getrandbits(48):012x}","target":{{"kind":"pr.comment","ref":"pr/12"}}'
    yield child.line(
        60,
        f'"kind":"effect","payload":{{}},"event":"verified",{effect},"outcome":"success"',
        turn,
    )
    if schema == 3:
        yield child.line(
            70,
            '"kind":"custom","payload":{},"event":"recorded","name":"deploy.finished",'
            '"fields":{"env":"staging — blue","took_s":12.5,"ok":true,"image":"registry.example/lantern:2026.05.27-3",'
            f'"note":"{_FINDING}","next":"{_FINDING}"}}',
            turn,
        )
        return
    yield child.line(80, f'"kind":"effect","payload":{{}},"event":"attempted",{effect}', turn)
    yield child.line(
        90, f'"kind":"effect","payload":{{}},"event":"observed",{effect},"outcome":"uncertain"', turn
    )
    if schema == 1:
        write = '"kind":"forge_write","payload":{},"op":"pr.comment","target":{"pr":12}'
        yield child.line(95, f'{write},"event":"validated"', turn)
        yield child.line(95, f'{write},"event":"written","comment_ids":["901"]', turn)
        yield child.line(96, f'{write},"event":"refused","reason":"no such label"', turn)


def _verdicts(loop: str, turn: int, head: str, blockers: int) -> str:
    finding = (
        f'{{"id":"F{turn}","severity":"high","location":"src/lamp/switch.ts:{turn * 41}",'
        f'"description":"{_FINDING}","state":"open","policy_treatment":"blocking","confidence":0.9}}'
    )
    outcome = "changes_requested" if blockers else "approve"
    return (
        f'{loop}"verdicts_read","round":{turn},"head":"{head}",'
        f'"all_approve":{"false" if blockers else "true"},"blockers":{blockers},'
        f'"findings":[{finding if blockers else ""}],"reviewers":['
        f'{{"role":"code-reviewer","outcome":"{outcome}","blockers":{blockers}}},'
        '{"role":"security","outcome":"approve","blockers":0}]'
    )


def _pause(story: _Story, driver: _Process, turn: int) -> Iterable[str]:
    loop, issue = story.loop, story.issue
    detail = "two commits are on the branch and on no remote; they are kept as they are"
    return (
        driver.line(
            60,
            f'{loop}"unpushed_work_resume","round":{turn},"branch":"task/{issue}","detail":"{detail}"',
            turn,
        ),
        driver.line(70, f'{loop}"stop_condition_met","round":{turn},"condition":"escalated"', turn),
        driver.line(
            80,
            f'{loop}"paused","round":{turn},"reason":"escalation","reason_code":"escalation"',
            turn,
        ),
        driver.line(
            20,
            '"kind":"handoff","payload":{},"event":"raised","class":"product","reason":"escalation",'
            '"requested_decision":"Keep the old answer for one more release, or remove it now?"',
            turn,
        ),
        driver.line(
            40,
            f'{loop}"driver_exited","task":{issue},"reason":"paused","last_decision":"pause","exit_code":0',
            turn,
        ),
    )


def _close(story: _Story, driver: _Process, rounds: int, head: str, *, cancelled: bool) -> Iterator[str]:
    """The end of the loop's last driver."""
    loop, issue = story.loop, story.issue
    if cancelled:
        yield driver.line(500, f'{loop}"cancelled","round":{rounds},"by":"principal"', rounds)
    else:
        yield driver.line(80, f'{loop}"stop_condition_met","round":{rounds},"condition":"green"', rounds)
    result = "stopped" if cancelled else "merged_ready"
    yield driver.line(
        60,
        f'{loop}"journal_finalized","rounds":{rounds},"total_wall_ms":{rounds * 803_117},'
        f'"time_to_green_ms":null,"files_changed_total":{rounds * 3},"final_head":"{head}",'
        f'"result":"{result}"',
        rounds,
    )
    yield driver.line(
        200,
        f'{loop}"driver_exited","task":{issue},"reason":"{"signal" if cancelled else "finished"}",'
        '"last_decision":"publish","exit_code":0',
        rounds,
    )

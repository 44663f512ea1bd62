"""What a tail does with the lines that give no events: count, keep, tell."""

from __future__ import annotations

from vinaya_bridge.accounts import Accounts
from vinaya_bridge.asides import Aside
from vinaya_bridge.entry import Act
from vinaya_bridge.growing import FollowedLine
from vinaya_bridge.holes import Arrival
from vinaya_bridge.kept import SETTLED, KeptStore, identity_mark
from vinaya_bridge.ledger import Term
from vinaya_bridge.lines import record_of
from vinaya_bridge.naming import dispatch_run_id
from vinaya_bridge.relay import REFUSED_TYPE, Refusal, line_digest, note
from vinaya_bridge.tail_poll import Batch

_CAUSES = {Term.CONFLICT: "duplicate", Term.LATE: "finished"}


class AsideKeeper:
    """
    Counts, keeps and tells what gives no events.

    Args:
        kept: Where lines are kept.

        accounts: Where they are counted.

        whole_lines: Whether lines that are left out are kept too.
    """

    def __init__(self, kept: KeptStore, accounts: Accounts, *, whole_lines: bool) -> None:
        self._kept = kept
        self._accounts = accounts
        self._whole_lines = whole_lines

    def set_aside(self, aside: Aside, line: FollowedLine, batch: Batch) -> None:
        """
        Take a line, or a piece of one, that is no event line.

        Args:
            aside: What it is.

            line: The line.

            batch: What the poll is about to make durable.
        """
        self._accounts.count(aside.term)
        if aside.refusal is not None:
            note(batch.refusals, aside.refusal)
            batch.refused.append((line.name, line.number, f"{aside.code or aside.term}: {aside.reason}"))
        if aside.refusal is not None or (self._whole_lines and aside.term is Term.PENDING):
            self._kept.add(
                aside.raw,
                file=line.name,
                line=line.number,
                offset=aside.place.offset,
                why=aside.term,
                code=aside.code,
                path=aside.path,
                reason=aside.reason,
            )

    def leave_out(self, arrival: Arrival) -> None:
        """Take an event line that no rule maps, or one of the producer's self-test."""
        term = Term.SELF_TEST if arrival.entry.act == Act.SELF_TEST else Term.UNMAPPED
        self._accounts.count(term)
        if self._whole_lines:
            self.keep(arrival, term)
        if term is Term.UNMAPPED:
            self._accounts.ledger.unmapped[arrival.entry.name] += 1

    def refuse(self, arrival: Arrival, term: Term, batch: Batch) -> None:
        """
        Take an event line that came too late, or under an identity that is taken.

        Args:
            arrival: The line.

            term: ``conflict`` or ``late``.

            batch: What the poll is about to make durable.
        """
        entry = arrival.entry
        self._accounts.count(term)
        self.keep(arrival, term)
        run = dispatch_run_id(entry.main_run, entry.effect, 1) if entry.effect else entry.main_run
        refusal = Refusal(
            REFUSED_TYPE,
            _CAUSES[term],
            line_digest(record_of(arrival.file, arrival.raw)),
            run,
            source_type=entry.name,
            code=SETTLED[term][0],
            seq=entry.seq,
        )
        note(batch.refusals, refusal)
        batch.refused.append((arrival.file, arrival.line, f"{term}: {entry.name}"))

    def was_late(self, arrival: Arrival) -> bool:
        """Whether a line came too late before: it stays late."""
        late = self._kept.late
        return bool(late) and identity_mark(arrival.identity) in late

    def keep(self, arrival: Arrival, why: str) -> None:
        """
        Keep an event line.

        Args:
            arrival: The line.

            why: See `vinaya_bridge.kept.KeptRow`.
        """
        entry = arrival.entry
        code, reason = SETTLED.get(why, (None, None))
        self._kept.add(
            arrival.raw,
            file=arrival.file,
            line=arrival.line,
            offset=entry.place.offset,
            why=why,
            code=code,
            reason=reason,
            identity=entry.identity if why == Term.LATE else None,
        )

"""Find in a session what is worth keeping, by its events alone (S1-14 to S1-19, S3-20, S2-24).

One pass, no language model. Kept are what people say about how work is done, what they say against
something the agent did, errors together with what helped, and decisions with their reason. Where a
finding is in doubt it is dropped: that nothing comes out of a session is the normal case.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.expressions import lazy_compile
from memory_kb.learning.episodic.sayings import RETRACTION
from memory_kb.learning.episodic.toolcalls import CHECKS, read_call, read_command
from memory_kb.learning.intake import Offer
from memory_kb.learning.observation.chains import find_blamed, find_culprit, output_of, read_chain
from memory_kb.learning.observation.commandlines import Command, command_of, parse_line
from memory_kb.learning.observation.corrections import Did
from memory_kb.learning.observation.drafts import Finding, from_correction, from_decision, from_fix, make_draft
from memory_kb.learning.observation.failures import REFUSED, is_failure, read_failure
from memory_kb.learning.observation.fixes import Fix, FixWatch, is_kept, with_cause
from memory_kb.learning.observation.occasions import Words, is_pointing, last_words, occasion_of
from memory_kb.learning.observation.remarks import read_remarks
from memory_kb.learning.observation.statements import find_cause, find_decisions, said_by_agent, said_by_person
from memory_kb.learning.speech import doubts
from memory_kb.learning.speech.capture import make_offer
from memory_kb.learning.speech.ownwords import read_own_text
from memory_kb.learning.speech.retractions import Doubt, Retractions, Taken
from memory_kb.learning.speech.wording import headline
from memory_kb.model import Location
from memory_kb.notes.events import Event
from memory_kb.notes.injected import in_own_words, is_own_call, strip
from memory_kb.notes.splice import Value
from memory_kb.retrieval.similarity import stemmed_set
from memory_kb.text import shorten

#: The most that one session teaches; calls that wait for their result; deeds between two messages.
MOST = 30
_PENDING, _DEEDS = 200, 40
_TASK_CHARS = 200
#: A longer message is no word about what just failed.
_HINT_CHARS = 400
#: Shorter and longer sentences of an agent are no context for what answers them.
#: How an answer begins that lets a decision stand.
_APPROVAL = lazy_compile(
    r"(?:sounds|looks|good|fine|ok(?:ay)?|nice|yes|yep|great|thanks|perfect|agreed|right)\b", re.IGNORECASE
)
# A message that only objects; what follows it says to what.
_OBJECTION = lazy_compile(
    r"(?:(?:no+|nope|stop|wait|hey|whoa|hold on|hang on|wrong|what|undo|not that|don't)[\s,.!?…]*){1,4}", re.IGNORECASE
)
_ADDED_CHARS = 4_000


class _Call(NamedTuple):
    """A tool call that waits for its result."""

    seq: int
    commands: tuple[Command, ...]
    files: tuple[str, ...]
    added: str
    line: str
    is_own: bool


def find_learnings(events: Iterable[Event], place: Location, *, phase: str = "unknown") -> Iterator[Offer]:
    """Yield what a session teaches, as offers for the intake.

    What the person takes back later comes again with its doubt: of two offers with one key the last counts.

    Args:
        events: the events of one session, in their order; they are read once.
        place: the scope that the session worked in.
        phase: the stage of the work, for the entries.

    Example:
        >>> events = [
        ...     Event(seq=1, session="s", type="tool_call", tool="Bash", call_id="a", args={"command": "npm install"}),
        ...     Event(seq=2, session="s", type="tool_result", call_id="a", ok=False, content="npm error code EUNSUPPORTEDPROTOCOL"),
        ...     Event(seq=3, session="s", type="tool_call", tool="Bash", call_id="b", args={"command": "pnpm install"}),
        ...     Event(seq=4, session="s", type="tool_result", call_id="b", ok=True, content="Done"),
        ... ]
        >>> [(offer.key, offer.draft.title) for offer in find_learnings(events, Location())]
        [('s/corrective/1', '`npm install` fails here, `pnpm install` works')]
        >>> list(find_learnings(events[2:], Location()))
        []
    """
    session = Learner(place, phase)
    for event in events:
        yield from session.take(event)
    yield from session.end()


class Learner:
    """What is known of a session so far, and no more of it than is needed."""

    def __init__(self, place: Location, phase: str = "unknown") -> None:
        self._place = place
        self._phase = phase
        self._id: str | None = None
        self._task: str | None = None
        self._cwd: str | None = None
        self._pending: dict[str, _Call] = {}
        self._did: deque[Did] = deque(maxlen=_DEEDS)
        self._watch = FixWatch()
        self._ready: list[Fix] = []
        self._decided: list[Finding] = []
        self._chosen: list[Finding] = []
        self._said: set[tuple[str, str]] = set()
        self._objection = ""
        self._unanswered = ""
        self._agent_said = Words()
        self._last_message = ""
        self._has_looked = False
        self._retractions = Retractions()
        #: What the person said that is kept, letter for letter, by the keys of its entries.
        self.heard: dict[str, str] = {}
        self._stated: dict[str, Offer] = {}

    def take(self, event: Event) -> Iterator[Offer]:
        """Take in an event; yield what is certain now."""
        self._id = event.session or self._id
        if event.event == "start" and event.args and isinstance(event.args.get("cwd"), str):
            self._cwd = event.args["cwd"]
        if event.injected == "whole":
            self._pending.pop(event.call_id or "", None)
        elif event.type == "message" and event.content:
            if event.role == "user":
                yield from self._hear_person(event)
            elif event.role == "assistant":
                yield from self._hear_agent(event)
        elif event.type == "tool_call":
            self._take_call(event)
        elif event.type == "tool_result":
            self._take_result(event)

    def end(self) -> Iterator[Offer]:
        """Yield what is certain once nothing more comes."""
        yield from self._settle()
        yield from self._accept()
        for finding in self._chosen[:MOST]:
            yield from self._offer(finding)
        for fix in self._watch.unfixed():
            yield from self._offer(from_fix(fix))

    def _hear_person(self, event: Event) -> Iterator[Offer]:
        text = strip(event.content or "")
        text = "" if doubts.UNWRITTEN.search(text) else text
        is_opening = self._task is None and bool(text.strip())
        if is_opening:
            self._task = _first_words(in_own_words(text))
        yield from self._settle()
        yield from self._take_back(self._retractions.hear(text))
        did = tuple(self._did) or ((Did("looked"),) if self._has_looked else ())
        self._has_looked = False
        self._unanswered = "" if is_opening else text
        remarks = read_remarks(text, did, self._objection, answered=None if is_opening else self._last_message)
        self._last_message = text
        found = remarks.correction
        for mark, capture in remarks.captures:
            context = occasion_of(capture, self._agent_said, did)
            if not context and is_pointing(capture):
                continue
            offer = make_offer(event, capture, _moment(event), self._place, self._id)
            yield from self._state(self._offer_capture(offer, mark, event.seq, context), capture.text, text)
        said = said_by_person(text)
        if found and found.scope == "observations" and not (said and _APPROVAL.match(said[0])):
            self._decided.clear()
        self._drop_if_denied(said)
        self._watch.interrupted(event.seq)
        self._watch.hinted(text if len(text) <= _HINT_CHARS else "")
        cause = find_cause(said)
        if cause:
            self._watch.explained(event.seq, cause)
        if found:
            key = make_offer(event, remarks.main, _moment(event), self._place, self._id).key if remarks.main else None
            offers = self._offer(from_correction(found, event.seq, did), key)
            yield from self._state(offers, found.signal, text)
        yield from self._accept()
        if RETRACTION.search(text):
            self._reconsider(text)
        for decision in find_decisions(said, is_person=True):
            if not any(capture.text in decision.sentence for _, capture in remarks.captures):
                self._chosen.append(from_decision(decision, event.seq, "the user", self._task))
        is_objection = bool(self._did) and bool(_OBJECTION.fullmatch(text.strip()))
        self._objection = text.strip() if is_objection else ""
        if not is_objection:
            self._did.clear()
            self._agent_said = Words()

    def _drop_if_denied(self, said: tuple[str, ...]) -> None:
        """Forget the agent's decisions where the person answers no."""
        if said and said[0].lower().startswith(
            (
                "no",
                "nope",
                "don't",
                "do not",
                "stop",
                "wait",
                "wrong",
                "revert",
                "undo",
                "why ",
                "that's not",
                "actually",
            )
        ):
            self._decided.clear()

    def _reconsider(self, text: str) -> None:
        """Forget what the person decided before, as far as it shares a word with what they say now; else the last."""
        words = stemmed_set(text)
        about = [one for one in self._chosen if not words.isdisjoint(stemmed_set(one.title))] or self._chosen[-1:]
        self._chosen = [one for one in self._chosen if one not in about]

    def _state(self, offers: Iterable[Offer], said: str, message: str) -> Iterator[Offer]:
        """Yield what a message states, and keep in mind that it may be taken back."""
        for offer in offers:
            yield offer
            self._stated[offer.key] = offer
            self.heard[offer.key] = said
            yield from self._take_back(self._retractions.state(offer.key, said, message))

    def _take_back(self, taken: Iterable[Taken]) -> Iterator[Offer]:
        for key, doubt, instead in taken:
            offer = self._stated.pop(key)
            self._said -= {("", offer.draft.text), ("", self.heard.pop(key, ""))}
            yield replace(offer, doubt=doubt)
            if instead and offer.draft.text != instead:
                yield from self._state(self._put_right(offer, doubt, instead), instead, instead)

    def _put_right(self, offer: Offer, doubt: Doubt, text: str) -> Iterator[Offer]:
        """Yield a statement as it stands once a part of it was put right."""
        if offer.draft.source != "extracted":
            draft = replace(offer.draft, text=text, title=headline(text.rstrip(".! ")))
            yield replace(
                offer, draft=draft, key=f"{offer.key}/instead", doubt="doubtful" if doubt == "doubtful" else None
            )

    def _hear_agent(self, event: Event) -> Iterator[Offer]:
        self._last_message = strip(event.content or "")
        self._retractions.answer(self._last_message)
        said = said_by_agent(self._last_message)
        cause = find_cause(said)
        if self._ready:
            self._ready = [with_cause(fix, cause) for fix in self._ready]
            yield from self._settle()
        if cause:
            self._watch.explained(event.seq, cause)
        self._agent_said = last_words(said, event.seq) or self._agent_said
        answered, self._unanswered = self._unanswered, ""
        for decision in find_decisions(said, is_person=False, answered=answered):
            self._decided.append(from_decision(decision, event.seq, "the agent", self._task))

    def _take_call(self, event: Event) -> None:
        args = event.args or {}
        is_own = is_own_call(event.tool, args)
        line = command_of(args) or ""
        call = read_call(event.tool, args, self._cwd)
        files = call.targets if call.kind == "edit" else ()
        commands = () if is_own or files else parse_line(line)
        key = event.call_id or "last"
        self._pending.pop(key, None)
        self._pending[key] = _Call(event.seq, commands, files, _added(args) if files else "", line, is_own)
        if len(self._pending) > _PENDING:
            self._pending.pop(next(iter(self._pending)))

    def _take_result(self, event: Event) -> None:
        call = self._pending.pop(event.call_id or "last", None)
        if call is None or call.is_own:
            return
        text = event.content or event.error or ""
        if event.ok is False and REFUSED.search(text[:500]):
            self._note_deed(call, is_refused=True)
            self._watch.refused()
            return
        self._note_deed(call)
        self._retractions.do(" ".join((*call.files, call.added, call.line)))
        self._has_looked = True
        if call.files:
            if event.ok is not False:
                for file in call.files[:5]:
                    self._watch.edited(call.seq, file, call.added)
        elif call.commands:
            if event.ok is False and self._did and self._did[-1].seq == call.seq:
                self._did[-1] = self._did[-1]._replace(has_failed=True)
            self._note_outcome(call, event, text)

    def _note_deed(self, call: _Call, *, is_refused: bool = False) -> None:
        for file in call.files[:5]:
            self._did.append(Did("edited", file, call.seq, is_refused))
        if call.commands and (is_refused or read_command(call.line).kind != "look"):
            done = next(
                (one for one in reversed(call.commands) if read_command(one.shown).kind != "look"), call.commands[-1]
            )
            self._did.append(Did("ran", shorten(done.shown, 80), call.seq, is_refused))

    def _note_outcome(self, call: _Call, event: Event, text: str) -> None:
        links = read_chain(call.line)
        last = call.commands[-1]
        is_check = read_command(last.shown).kind in (*CHECKS, "install")
        if is_failure(event.ok, text, is_check=is_check and (last.is_piped or event.ok is None)):
            blamed = find_culprit(links, text)
            culprit = next((command for command in call.commands if command.place == blamed), None)
            if culprit is None:
                return
            failure = read_failure(output_of(links, blamed, text), call.seq)
            if failure and read_command(culprit.shown).kind == "lint" and failure.sort == "other":
                failure = failure._replace(sort="change")
            if failure:
                self._watch.failed(
                    culprit, failure, call.seq, tuple(one for one in call.commands if one.place < blamed)
                )
            return
        blamed_at = find_blamed(links, text)
        ran = [
            one
            for one in call.commands
            if links[one.place].joiner != "||" and (one is last or one.place not in blamed_at)
        ]
        for number, command in enumerate(ran):
            self._ready += self._watch.worked(command, call.seq, tuple(ran[:number]), tuple(ran[number + 1 :]))

    def _settle(self) -> Iterator[Offer]:
        """Yield the fixes of which nothing more will be said."""
        ready, self._ready = self._ready, []
        for fix in ready:
            if is_kept(fix):
                yield from self._offer(from_fix(fix))

    def _accept(self) -> Iterator[Offer]:
        """Yield the agent's decisions that nobody spoke against."""
        decided, self._decided = self._decided, []
        for finding in decided:
            yield from self._offer(finding)

    def _offer(self, finding: Finding | None, key: str | None = None) -> Iterator[Offer]:
        if finding is None or (finding.kind, finding.title) in self._said or len(self._said) >= MOST:
            return
        draft = make_draft(finding, self._phase, self._task)
        if draft is None:
            return
        self._said.add((finding.kind, finding.title))
        place = self._place._replace(learning_type="proxy") if finding.is_proxy else self._place
        made = key or f"{self._id or _digest(draft.text)}/{finding.scope}/{finding.seqs[0]}{finding.mark}"
        yield Offer(draft, place, made, finding.reason, self._id)

    def _offer_capture(self, offer: Offer, mark: str, seq: int, context: str = "") -> Iterator[Offer]:
        text = offer.draft.text
        if len(self._said) >= MOST or ("", text) in self._said:
            return
        self._said.add(("", text))
        more: list[tuple[str, Value]] = [("phase", self._phase), ("extraction_scope", "observations")]
        more += [("session_task", self._task)] if self._task and not find_secret(self._task) else []
        more += [("source_events", [str(seq)])] if seq else []
        draft = replace(offer.draft, text=f"{text}{context}", fields=(*offer.draft.fields, *more))
        yield replace(offer, draft=draft, key=f"{offer.key}{mark}")


def _moment(event: Event) -> datetime:
    try:
        return datetime.fromisoformat(event.ts)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def _digest(text: str) -> str:
    """Return what stands for a session that has no name."""
    from hashlib import blake2b

    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _first_words(text: str) -> str | None:
    own = read_own_text(text[:20_000])
    plain = "".join(sign if kept != "\x00" else " " for sign, kept in zip(own.text, own.masked, strict=True))
    return shorten(plain, _TASK_CHARS) or shorten(own.text, _TASK_CHARS) or None


def _added(args: Mapping[str, Any]) -> str:
    """Return the lines that an edit puts into a file."""
    old, new = args.get("old_string"), args.get("new_string", args.get("content"))
    if isinstance(new, str):
        before = set((old if isinstance(old, str) else "").splitlines())
        return "\n".join(line for line in new[:_ADDED_CHARS].splitlines() if line not in before)
    texts = [text for text in args.values() if isinstance(text, str) and "*** " in text]
    return "\n".join(line[1:] for text in texts for line in text[:_ADDED_CHARS].splitlines() if line.startswith("+"))

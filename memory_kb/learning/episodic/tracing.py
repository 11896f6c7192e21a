"""The parts of a trace while it is made: the action log, and what was said and touched."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memory_kb.learning.episodic.answers import Answer
from memory_kb.learning.episodic.toolcalls import Call
from memory_kb.retrieval.similarity import stemmed_set
from memory_kb.text import shorten

#: Lines of an action log, at its beginning and at its end.
HEAD, TAIL = 40, 20
_LISTED, _FILES = 12, 30
_TELLING = 3
_COMMIT = re.compile(r"^\[(?:\S+ )+?(?:\(root-commit\) )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_REQUEST = re.compile(r"https?://\S+?/(?:pull|merge_requests)/\d+")


class Step(NamedTuple):
    """One line of the action log, for `times` actions one after another; `place` is where the first of them began among the events."""

    t: float
    action: str
    result: str
    times: int = 1
    targets: tuple[str, ...] = ()
    place: int = 0


class Journal:
    """The action log: its head, its tail, and how much is missing between them."""

    def __init__(self) -> None:
        self._head: list[Step] = []
        self._tail: deque[Step] = deque()
        self.missing = 0

    def note(self, t: float, call: Call, answer: Answer, place: int = 0) -> None:
        """Note a call and how it went; one that was answered late, or never, stands where it began."""
        fault = answer.fault
        told = f"{fault.type}: {fault.message}".rstrip(": ") if fault else ""
        failed = "refused" if fault and fault.sort == "refused" else f"fail: {told}"
        result = (
            shorten(failed, 160)
            if fault
            else f"ok: {answer.counted}"
            if answer.ok and answer.counted
            else "ok"
            if answer.ok
            else ""
        )
        looks = call.kind == "look" and not fault
        self._add(
            Step(
                t,
                "look at" if looks else call.told,
                result,
                1,
                call.targets[:1] or (call.shown,) if looks else (),
                place,
            )
        )

    def say(self, t: float, words: str, place: int = 0) -> None:
        """Note what the person said in between."""
        self._add(Step(t, f"user: “{words}”", "", place=place))

    def _add(self, step: Step) -> None:
        line = self._tail or self._head
        last = line[-1] if line else None
        if last and step.place < last.place:
            self._put_back(step)
        elif last and (last.action, last.result) == (step.action, step.result):
            targets = tuple(dict.fromkeys((*last.targets, *step.targets)))[:4]
            line[-1] = last._replace(times=last.times + 1, targets=targets)
        elif not self._tail and len(self._head) < HEAD:
            self._head.append(step)
        else:
            self._tail.append(step)
            if len(self._tail) > TAIL:
                self.missing += self._tail.popleft().times

    def _put_back(self, step: Step) -> None:
        """Put a line where it belongs by its place; what no longer fits into the head goes on in the tail, or is missing."""
        if self._tail and self._tail[0].place <= step.place:
            number = next(number for number, one in reversed(tuple(enumerate(self._tail))) if one.place <= step.place)
            self._tail.insert(number + 1, step)
        elif self.missing and self._head[-1].place <= step.place:
            self.missing += step.times
            return
        else:
            number = next(
                (number for number, one in reversed(tuple(enumerate(self._head))) if one.place <= step.place), -1
            )
            self._head.insert(number + 1, step)
            if len(self._head) > HEAD:
                self._spill(self._head.pop())
        if len(self._tail) > TAIL:
            self.missing += self._tail.popleft().times

    def _spill(self, step: Step) -> None:
        if self.missing:
            self.missing += step.times
        else:
            self._tail.appendleft(step)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The lines that are kept."""
        return (*self._head, *self._tail)

    @property
    def head(self) -> int:
        """How many lines stand before what is missing."""
        return len(self._head)


class Words:
    """What was said and touched, each once, no more than is told."""

    def __init__(self) -> None:
        self._lists: dict[str, dict[str, None]] = {}
        self._causes: list[str] = []
        self._proposed: list[str] = []
        self.concluded: tuple[str, ...] = ()
        self.stuck: tuple[str, ...] = ()
        self.changed: dict[str, None] = {}
        self.seen: dict[str, None] = {}
        self.made: dict[str, None] = {}
        self.links: dict[str, None] = {}

    def add(self, name: str, *texts: str) -> None:
        """Add what was said to a list; of very much, the first and the newest stay."""
        kept = self._lists.setdefault(name, {})
        for text in texts:
            kept[text] = None
            if len(kept) > _LISTED:
                del kept[list(kept)[_LISTED // 2]]

    def propose(self, *decisions: str) -> None:
        """Add what the agent decided; the person's next message may overturn it."""
        new = [text for text in decisions if text not in self.listed("decisions")]
        self._proposed += new
        self.add("decisions", *new)

    @property
    def has_proposed(self) -> bool:
        """Whether the agent decided something since the person last spoke."""
        return bool(self._proposed)

    def retract(self, correction: str) -> None:
        """Take back what the agent decided since the person last spoke, as far as it is corrected.

        A correction is about the decisions that it shares a word with; one that says little is
        about the last.
        """
        words = stemmed_set(correction)
        about = (
            self._proposed[-1:]
            if len(words) < _TELLING
            else [text for text in self._proposed if not words.isdisjoint(stemmed_set(text))]
        )
        for text in about:
            self._lists["decisions"].pop(text, None)
        self.concluded = ()

    def reconsider(self, said: str) -> None:
        """Take back what the person decided before, as far as it shares a word with what they say now; else the last."""
        words = stemmed_set(said)
        own = [text for text in self.listed("decisions") if text.endswith("(user)")]
        for text in [text for text in own if not words.isdisjoint(stemmed_set(text) - {"user"})] or own[-1:]:
            self._lists["decisions"].pop(text, None)

    def drop(self, text: str) -> None:
        """Take out what the person said and takes back."""
        for listed in self._lists.values():
            listed.pop(text, None)

    def stand(self) -> None:
        """Let stand what was decided: the person has spoken since."""
        self._proposed = []

    def listed(self, name: str) -> tuple[str, ...]:
        """Return what was said, in its order."""
        return tuple(self._lists.get(name, ()))

    def suspect(self, causes: Iterable[str], *, is_calm: bool) -> None:
        """Note what the agent holds for the cause; it is believed when things go well after it.

        Said when all is well again (`is_calm`), it is believed at once.
        """
        for cause in causes:
            if is_calm:
                self.add("causes", cause)
            else:
                self._causes = [cause]

    @property
    def last_cause(self) -> str | None:
        """What was last held for the cause and neither confirmed nor given up."""
        return self._causes[-1] if self._causes else None

    def confirm(self) -> None:
        """Believe the last cause that was named: what had failed went well after it."""
        self.add("causes", *self._causes)
        self._causes = []

    def conclude(self, done: tuple[str, ...], stuck: tuple[str, ...]) -> None:
        """Take what the agent says it has done or could not do; only its last such message counts."""
        if done or stuck:
            self.concluded, self.stuck = done[:6], stuck[:3]

    def touch(self, call: Call) -> None:
        """Note the files of a call."""
        if call.kind == "edit":
            for file in call.targets:
                if file in call.made and file not in self.seen and file not in self.changed:
                    _remember(self.made, file)
                _remember(self.changed, file)
        elif call.kind == "look":
            for file in call.targets:
                if re.search(r"\.\w{1,5}$", file) and not re.search(r"[*\s|()\\]", file):
                    _remember(self.seen, file)

    def find_links(self, call: Call, content: str) -> None:
        """Note the requests to merge that a call opened."""
        if re.match(r"gh pr create|glab mr|git push", call.shown):
            for link in _REQUEST.findall(content[-4_000:]):
                _remember(self.links, link)

    @staticmethod
    def commits_in(content: str) -> Iterator[tuple[str, str]]:
        """Yield hash and subject of the commits that a tool tells of."""
        for commit, subject in _COMMIT.findall(content[:8_000]):
            yield commit, shorten(subject, 120)


def _remember(kept: dict[str, None], word: str) -> None:
    if len(kept) < _FILES:
        kept[word] = None

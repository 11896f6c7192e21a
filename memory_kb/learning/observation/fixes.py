"""Commands that failed and then worked, and what lay between: what is worth knowing next time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import Command, word_set
from memory_kb.learning.observation.failures import Failure, is_unreached, names_program
from memory_kb.learning.observation.forms import (
    FETCHED,
    KNOWN,
    TELLING,
    acts,
    bare,
    covers,
    edits,
    form_of,
    handed_on,
    is_only_set,
    is_other_form,
    looks,
    teaches,
    without_path,
    words_of,
)
from memory_kb.learning.observation.objections import forbids, has_acted, is_makeshift, objects
from memory_kb.learning.observation.options import (
    WAITING,
    added_options,
    flags_beside,
    is_advised,
    is_green_only,
    names_absent,
    speaks_of,
)
from memory_kb.learning.observation.remedies import (
    CONFIGURATION,
    HELP,
    ONLY_HELP,
    Attempt,
    Fix,
    Step,
    by_sort,
    find_step,
    gist,
    is_led,
    is_named,
    is_telling,
    is_undone,
    means_of,
    names_setting,
    tells_form,
    words_for,
)
from memory_kb.learning.observation.statements import is_general

__all__ = ["Fix", "FixWatch", "is_kept", "with_cause"]

#: How much of a session is kept in mind: families of commands, failures of each, steps, causes.
_FAMILIES, _FAILURES, _STEPS, _CAUSES, _PASSED = 60, 8, 60, 30, 500
#: So often the same must have failed before a failure that nobody fixed is kept.
_UNFIXED = 3
# Options that only ask or only try.
_ASKING_FLAGS = word_set("--help -h --version -V --dry-run --list --collect-only --list-tests --what-if")
_STABLE = frozenset({"wrong version", "not allowed", "wrong package manager", "wrong platform", "wrong module system"})
_FIRST = lazy_compile(r"\b(?:first|before|beforehand)\b", re.IGNORECASE)


@dataclass(slots=True)
class FixWatch:
    """Watch commands fail and work again.

    What is found is held back until the person has spoken, who may object to it.
    """

    _open: dict[str, deque[Attempt]] = field(default_factory=dict)
    _steps: deque[Step] = field(default_factory=lambda: deque(maxlen=_STEPS))
    _causes: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_CAUSES))
    _passed: dict[str, None] = field(default_factory=dict)
    _last: Attempt | None = None
    _hint: str = ""
    _deed: int = 0
    _said: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_STEPS))
    _fresh: list[Fix] = field(default_factory=list)
    _held: list[Fix] = field(default_factory=list)

    def edited(self, seq: int, file: str, added: str) -> None:
        """Take in that a file was changed."""
        self._last, self._deed = None, seq
        self._steps.append(Step(seq, file, added))

    def explained(self, seq: int, cause: str) -> None:
        """Take in what the agent says an error comes from."""
        self._causes.append((seq, cause))
        self._fresh = [with_cause(fix, cause) for fix in self._fresh]

    def refused(self) -> None:
        """Take in that the person refused a call: what they say is about that."""
        self._last = None

    def interrupted(self, seq: int) -> None:
        """Take in that a person spoke: what works next may be of their doing."""
        self._steps.append(Step(seq, is_said=True))

    def hinted(self, said: str) -> None:
        """Take in what the person says, which may be a hint right after a failure, or a word against what was done."""
        self._hint = said if self._last else ""
        self._said.append((self._steps[-1].seq if self._steps else 0, said))
        is_against = objects(said) or is_makeshift(said)
        self._held, self._fresh = (
            [*self._held, *(fix for fix in self._fresh if not is_against or fix.seqs[-1] < self._deed)],
            [],
        )

    def failed(self, command: Command, failure: Failure, seq: int, before: tuple[Command, ...] = ()) -> None:
        """Take in that a command failed, after others that went well on the same line."""
        for one in before:
            self._note_step(one, seq)
        self._last, self._hint = Attempt(command, failure, seq, before), ""
        if not (teaches(command) or failure.sort == "missing program" or any(map(teaches, before))):
            return
        attempts = self._open.pop(command.family, None) or deque(maxlen=_FAILURES)
        attempts.append(self._last)
        self._open[command.family] = attempts
        if len(self._open) > _FAMILIES:
            self._open.pop(next(iter(self._open)))

    def worked(
        self, command: Command, seq: int, before: tuple[Command, ...] = (), after: tuple[Command, ...] = ()
    ) -> Iterator[Fix]:
        """Take in that a command worked, among others on the same line; yield what was learned before and not spoken against."""
        self._held, self._fresh = (
            [fix for fix in found if not is_undone(fix, command)] for found in (self._held, self._fresh)
        )
        yield from self._release()
        self._fresh += self._learn(command, seq, before, after)

    def _release(self) -> list[Fix]:
        """Return what is held that nobody forbids."""
        held, self._held = self._held, []
        return [fix for fix in held if not any(forbids(said, words_for(fix)) for _, said in self._said)]

    def _learn(
        self, command: Command, seq: int, before: tuple[Command, ...], after: tuple[Command, ...]
    ) -> Iterator[Fix]:
        """Yield what it teaches that a command worked."""
        command = self._as_handed_on(command)
        if command.is_excused:
            return
        asking = command.flags & _ASKING_FLAGS
        if asking and not any(asking <= one.command.flags for one in self._open.get(command.family, ())):
            return
        if (
            looks(command)
            and not any(looks(one.command) for one in self._open.get(command.family, ()))
            and not self._hint
        ):
            self._last, self._hint = None, ""
            self._note_step(command, seq)
            return
        attempts = self._open.pop(command.family, None)
        later = set(map(form_of, after)) - {form_of(command)}
        left = deque((one for one in attempts or () if form_of(one.command) in later), maxlen=_FAILURES)
        if left:
            self._open[command.family] = left
        if attempts:
            yield from self._settle(tuple(one for one in attempts if one not in left), command, seq, before)
        elif self._is_hinted(command) and self._last:
            self._open.pop(self._last.command.family, None)
            yield Fix("form", (self._last,), command, seqs=(self._last.seq, seq))
        self._last, self._hint = None, ""
        self._note_step(command, seq)

    def _as_handed_on(self, command: Command) -> Command:
        """Return a command as one whose program was not found, where it is that one with words in front of it."""
        missing = (
            one
            for attempts in self._open.values()
            for one in attempts
            if names_program(one.failure, one.command.program)
        )
        found = (handed_on(command, one.command) for one in missing)
        return next((one for one in found if one), command)

    def _note_step(self, command: Command, seq: int) -> None:
        self._passed[form_of(command)] = None
        if len(self._passed) > _PASSED:
            self._passed.pop(next(iter(self._passed)))
        self._steps.append(Step(seq, command=command))
        self._deed = seq if acts(command) else self._deed

    def _is_hinted(self, command: Command) -> bool:
        """Tell whether the person named this command right after another one had failed for its set-up."""
        last = self._last
        if last is None or not (last.failure.is_about_setup or last.failure.sort == "other") or not teaches(command):
            return False
        words = command.words[:2] if len(command.program) < TELLING else command.words[:1]
        if (
            len(" ".join(words)) < TELLING
            or " ".join(words) not in self._hint
            or last.command.program == command.program
        ):
            return False
        return bool(words_of(last.command) & words_of(command)) and not _FIRST.search(self._hint)

    def _settle(
        self, attempts: tuple[Attempt, ...], command: Command, seq: int, before: tuple[Command, ...]
    ) -> Iterator[Fix]:
        named = self._find_named(attempts, seq)
        yield from _prepared(named, command, seq)
        left = [one for one in attempts if one not in dict(named)]
        changed = {one: fix for one in left if (fix := self._find_changed(one, command, before, seq))}
        yield from list({(fix.worked, fix.attempts[0].failure.pattern): fix for fix in changed.values()}.values())
        left = [one for one in left if one not in changed and is_telling(one)]
        replaced = [one for one in left if self._tells_value(one, command, seq)]
        if replaced:
            yield Fix("form", tuple(replaced), command, seqs=(*(one.seq for one in replaced), seq))
        left = [one for one in left if one not in replaced]
        others = tuple(
            one for one in left if is_other_form(one.command, command) and form_of(one.command) not in self._passed
        )
        yield from self._find_forms(others, attempts, command, seq)
        same = [one for one in left if one not in others and one.failure.sort not in ("change", "passing")]
        for pattern in dict.fromkeys(one.failure.pattern for one in same):
            equal = [one for one in same if one.failure.pattern == pattern]
            exact = [one for one in equal if form_of(one.command) == form_of(command)]
            last = next((one for one in reversed(exact or equal) if covers(command, one.command)), equal[-1])
            fix = self._explain(last._replace(seq=equal[-1].seq), command, seq)
            if fix:
                yield fix

    def _find_forms(
        self, others: tuple[Attempt, ...], attempts: tuple[Attempt, ...], worked: Command, seq: int
    ) -> Iterator[Fix]:
        """Yield what had to be written otherwise: one fix for all that one form was the answer to."""
        plain = {one.failure.sort for one in attempts if form_of(one.command) == form_of(worked)} - {
            "change",
            "passing",
        }
        cures: dict[object, list[tuple[Attempt, Command]]] = {}
        for alike in by_sort(others):
            for one in (one for one in alike if not self._is_moot(one, seq)):
                step = find_step(one, attempts, worked)
                is_past = step is not None and (self._is_led(one, step) or self._tells_step(one, step))
                is_told = one.failure.sort not in plain and not (plain and is_only_set(one.command, worked))
                cure = (
                    step.command
                    if step and is_past
                    else worked
                    if is_told and self._tells_form(one, alike, worked, seq)
                    else None
                )
                if cure:
                    cures.setdefault(gist(one.command, cure), []).append((one, cure))
        for group in cures.values():
            told = tuple(sorted((one for one, _ in group), key=lambda one: one.seq))
            past = next((cure for one, cure in group if one is told[0] and form_of(cure) != form_of(worked)), None)
            helped = None if past else self._find_help(told[-1], worked, seq)
            steps, more = ((helped,), (helped.seq,)) if helped else ((), ())
            yield Fix("form", told, worked, steps, seqs=(*(one.seq for one in told), *more, seq), past=past)

    def _is_moot(self, one: Attempt, seq: int) -> bool:
        """Tell whether a person said after a failure that they did something about it, or that what comes is for now."""
        return any(one.seq < when <= seq and (has_acted(said) or is_makeshift(said)) for when, said in self._said)

    def _is_led(self, one: Attempt, step: Attempt) -> bool:
        """Tell whether a command got past a failure with what stands in front of it, and with nothing that was done between."""
        is_other = one.failure.sort == "other" and self._has_acted(one, step.seq, with_said=False)
        return is_led(one, step.command) and not is_other and not self._has_edited(one, step.seq)

    def _tells_step(self, one: Attempt, step: Attempt) -> bool:
        """Tell whether a form on the way to what worked got past a failure."""
        more = flags_beside(step.command, one.command)
        is_meant = speaks_of(one.failure.message, more) or self._is_told(one, step.command, step.seq)
        return bool(more) and is_meant and self._tells_form(one, (one,), step.command, step.seq)

    def _tells_form(self, one: Attempt, others: tuple[Attempt, ...], worked: Command, seq: int) -> bool:
        """Tell whether the form of a command was what made it fail, which no form does that only makes it come out green."""
        is_advised_setting = not set(one.failure.advice).isdisjoint(set(worked.settings) - set(one.command.settings))
        if is_green_only(worked, one.command) and not is_advised_setting:
            return False
        if self._has_edited(one, seq) and (one.failure.sort == "other" or names_setting(one, worked)):
            return False
        if names_setting(one, worked):
            return True
        if one.failure.sort != "passing" and self._is_told(one, worked, seq):
            return True
        return is_advised_setting or tells_form(one, others, worked) or self._tells_option(one, others, worked, seq)

    def _is_told(self, attempt: Attempt, worked: Command, seq: int) -> bool:
        """Tell whether the person named the one thing that is different, and nothing was changed."""
        said = [text for when, text in self._said if attempt.seq < when <= seq]
        means = means_of(attempt.command, worked)
        given = [option.value for option in added_options(worked, attempt.command)]
        is_named_by = len(means) == 1 and any(
            word in text for word in (*means, *given) if len(word) >= TELLING for text in said
        )
        return is_named_by and covers(worked, attempt.command) and not self._has_edited(attempt, seq)

    def _find_named(self, attempts: tuple[Attempt, ...], seq: int) -> list[tuple[Attempt, Step]]:
        """Return the failures whose message names what was run after the last one like them, with that."""
        last = {one.failure.pattern: one.seq for one in attempts}
        found = []
        for one in attempts:
            start = max((step.seq for step in self._steps if CONFIGURATION.search(step.file)), default=0)
            since = (
                step for step in self._steps if max(start, last[one.failure.pattern]) < step.seq <= seq and step.command
            )
            helped = next(
                (step for step in since if step.command and is_named(step.command, one.command, one.failure)), None
            )
            if helped:
                found.append((one, helped))
        return found

    def _find_changed(self, attempt: Attempt, command: Command, before: tuple[Command, ...], seq: int) -> Fix | None:
        """Return the one command before the same one on its line that was written otherwise this time."""
        pairs = [(old, new) for old in attempt.before for new in before if old.family == new.family]
        telling = [(old, new) for old, new in pairs if is_other_form(old, new) and not is_green_only(new, old)]
        if (
            len(telling) != 1
            or attempt.failure.sort in ("change", "passing")
            or is_other_form(attempt.command, command)
        ):
            return None
        if not attempt.failure.is_about_setup and self._has_acted(attempt, seq):
            return None
        old, new = telling[0]
        if not (flags_beside(new, old) or set(new.settings) - set(old.settings)) or not teaches(new):
            return None
        shown = " && ".join(one.shown for one in (*attempt.before, attempt.command))
        return Fix("form", (attempt._replace(command=old._replace(shown=shown)),), new, seqs=(attempt.seq, seq))

    def _tells_option(self, attempt: Attempt, others: tuple[Attempt, ...], worked: Command, seq: int) -> bool:
        """Tell whether the same command went well with an option more or with another one, and nothing was changed before."""
        failed = attempt.command
        more, less = flags_beside(worked, failed), flags_beside(failed, worked)
        is_same = failed.settings == worked.settings and failed.runners == worked.runners
        is_longer = is_same and (
            set(failed.words) <= set(worked.words) or (len(less) == 1 and failed.operands == worked.operands)
        )
        is_reached = is_unreached([one.failure for one in others]) and not any(map(WAITING.search, more))
        is_sure = is_advised(attempt.failure.advice, worked, failed) or is_reached
        is_over = attempt.failure.sort == "change" or (attempt.failure.sort == "passing" and not is_sure)
        if is_over or len(more) != 1 or not is_longer or is_green_only(worked, failed):
            return False
        return not self._has_acted(attempt, seq)

    def _tells_value(self, attempt: Attempt, worked: Command, seq: int) -> bool:
        """Tell whether the same command went well with something else for what there was not, and nothing was changed before."""
        if attempt.failure.sort in ("change", "passing") or not names_absent(
            attempt.failure.message, attempt.command, worked
        ):
            return False
        return not self._has_acted(attempt, seq)

    def _has_acted(self, attempt: Attempt, seq: int, *, with_said: bool = True) -> bool:
        """Tell whether after a failure anything was changed or said, or run that was not run before it."""
        known = {one.family for one in attempt.before}
        since = self._since(attempt, seq)
        return any(
            (one.is_said and with_said)
            or one.file
            or (one.command and acts(one.command) and one.command.family not in known)
            for one in since
        )

    def _has_edited(self, attempt: Attempt, seq: int) -> bool:
        """Tell whether a file was changed after a failure."""
        return any(one.file or (one.command and edits(one.command)) for one in self._since(attempt, seq))

    def _since(self, attempt: Attempt, seq: int) -> list[Step]:
        """Return what was done after a failure, and where a person spoke."""
        return [one for one in self._steps if attempt.seq < one.seq <= seq]

    def _explain(self, attempt: Attempt, command: Command, seq: int) -> Fix | None:
        """Return what between a failure and the success made the difference, if that can be told."""
        helped = self._find_help(attempt, command, seq)
        if helped:
            return Fix("before", (attempt,), without_path(command), (helped,), seqs=(attempt.seq, helped.seq, seq))
        if attempt.failure.sort in ("change", "passing"):
            return None
        edits = tuple(one for one in self._steps if one.file and attempt.seq < one.seq < seq)
        if not edits or not covers(command, attempt.command):
            return None
        cause = next((text for when, text in reversed(self._causes) if attempt.seq < when < seq), None)
        return Fix("edit", (attempt,), command, edits[-2:], cause, (attempt.seq, *(one.seq for one in edits[-2:]), seq))

    def _find_help(self, attempt: Attempt, worked: Command, seq: int) -> Step | None:
        """Return the command after a failure that such a failure calls for."""
        helps = HELP.get(attempt.failure.sort, ())
        start = max((one.seq for one in self._steps if CONFIGURATION.search(one.file)), default=0)
        steps = (
            one
            for one in self._since(attempt, seq)
            if one.seq > start and one.command and not FETCHED.search(one.command.shown)
        )
        called = (one for one in steps if one.command and any(help_.search(bare(one.command)) for help_ in helps))
        return next(called, None) or (self._find_only(attempt, seq) if covers(worked, attempt.command) else None)

    def _find_only(self, attempt: Attempt, seq: int) -> Step | None:
        """Return the one command that was run after a failure, right before the same went well."""
        known = {one.family for one in attempt.before}
        between = [
            one
            for one in self._since(attempt, seq)
            if one.command is None or (acts(one.command) and one.command.family not in known)
        ]
        shape = ONLY_HELP.get(attempt.failure.sort)
        if len({(one.seq, one.command and one.command.family) for one in between}) != 1 or shape is None:
            return None
        command = between[-1].command
        if command is None or command.family == attempt.command.family or KNOWN.match(bare(command)):
            return None
        is_install = command.family.rpartition(" ")[2] in ("install", "add", "sync", "ci")
        if not shape.search(bare(command)) or is_install:
            return None
        whole = " && ".join(one.command.shown for one in between if one.command)
        return between[-1]._replace(command=command._replace(shown=whole))

    def unfixed(self) -> Iterator[Fix]:
        """Yield, at the end, what is still held, and what failed again and again for a reason that will still be there."""
        self._held += self._fresh
        yield from filter(is_kept, self._release())
        for attempts in self._open.values():
            last = attempts[-1]
            same = tuple(one for one in attempts if one.failure.pattern == last.failure.pattern)
            if len(same) >= _UNFIXED and last.failure.sort in _STABLE:
                yield Fix("none", same, seqs=tuple(one.seq for one in same))


def is_kept(fix: Fix) -> bool:
    """Tell whether a fix is worth knowing, once all that was said of it is known.

    A change that helped teaches something only if somebody said why, or if it set up the tools.
    """
    if fix.way != "edit":
        return True
    failure = fix.attempts[0].failure
    if fix.cause is not None and (failure.is_about_setup or is_general(fix.cause)):
        return True
    return failure.is_about_setup and all(CONFIGURATION.search(one.file) for one in fix.steps)


def with_cause(fix: Fix, cause: str | None) -> Fix:
    """Return the fix with the cause that was told after it, if none was told before."""
    return replace(fix, cause=cause) if fix.way == "edit" and fix.cause is None else fix


def _prepared(named: list[tuple[Attempt, Step]], command: Command, seq: int) -> Iterator[Fix]:
    """Yield for each command that was named what had failed without it."""
    groups: dict[str, list[tuple[Attempt, Step]]] = {}
    for one, step in named:
        groups.setdefault(form_of(step.command) if step.command else "", []).append((one, step))
    for group in groups.values():
        attempts, step = tuple(one for one, _ in group), group[0][1]
        yield Fix(
            "before", attempts, without_path(command), (step,), seqs=(*(one.seq for one in attempts), step.seq, seq)
        )

"""What went wrong in a task and what made it go away, and how its checks ended."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from memory_kb.learning.episodic.answers import Answer, Fault
from memory_kb.learning.episodic.toolcalls import CHECKS, Call, bare_command
from memory_kb.learning.observation.failures import read_failure
from memory_kb.learning.observation.remedies import CONFIGURATION
from memory_kb.retrieval.similarity import word_set
from memory_kb.text import jaccard

_MISHAPS, _CHANGES = 40, 6
#: From here on two lines for the shell are the same one, mended.
_SAME_LINE = 0.6
_NO_PROGRAM = ("missing program", "missing script", "missing package")
_ADDRESS = re.compile(r"://|^localhost\b|\w:\d{2,5}\b")
_NO_NAME = ("missing script", "missing program")
#: What a project calls the script that runs it.
_SERVING = ("dev", "start", "serve", "develop", "watch", "preview")
#: So many letters two names share that one of them may be the other, cut or written in full.
_ALIKE = 3
_UNKNOWN = re.compile(
    r"\b(?:not found|missing|no such|unknown|unrecogni[sz]ed|invalid|no [\w ]{1,30} (?:named|called)|"
    r"(?:does not|doesn't) (?:exist|contain|have)|not a valid|unexpected|did you mean|not defined)\b",
    re.IGNORECASE,
)
_ASKING = frozenset({"--help", "-h", "--version", "-V", "--dry-run", "--list"})
_MANAGERS = {"js": ("npm", "yarn", "pnpm", "bun"), "python": ("pip", "pip3", "uv", "poetry", "pdm")}


@dataclass
class Mishap:
    """An error, and what made it go away."""

    fault: Fault
    shown: str
    count: int = 1
    resolution: str | None = None
    cause: str | None = None
    is_moot: bool = False

    @property
    def is_left(self) -> bool:
        """Whether nobody needed it again: it does not exist, or what it was to prepare went well without it."""
        if self.resolution is None and self.is_moot:
            return True
        return self.resolution is None and self.count == 1 and _why_not_run(self.fault) in _NO_NAME


@dataclass
class _Open:
    """An error since it came; `is_past` once the same call fails with something else.

    What was run before it came again (`tried`) is told only where nothing else was.
    """

    call: Call
    mishap: Mishap
    changes: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    more: int = 0
    cause: str | None = None
    is_past: bool = False


class Mishaps:
    """The errors of a task, each with the later call of the same sort on the same target that went well."""

    def __init__(self) -> None:
        self._all: OrderedDict[tuple[str, str], Mishap] = OrderedDict()
        self._open: dict[tuple[str, tuple[str, ...]], list[_Open]] = {}
        self.more = self.resolved = 0

    def note(self, call: Call, fault: Fault) -> None:
        """Note that a call failed; a run that fails in another way has got past what it failed with before."""
        if fault.sort != "work":
            return
        for part in call.also:
            self.change(part)
        mishap = self._all.get(fault.key)
        if mishap:
            mishap.count += 1
            mishap.resolution = mishap.cause = None
            mishap.is_moot = False
        elif len(self._all) < _MISHAPS:
            mishap = self._all[fault.key] = Mishap(fault, call.shown)
        else:
            self.more += 1
            return
        place = (call.family, call.targets)
        still = next((one for one in self._open.get(place, []) if one.mishap is mishap), None) or _Open(call, mishap)
        others = [one for one in self._open.get(place, []) if one is not still]
        still.is_past = False
        still.tried += [words for words in still.changes if words.startswith("ran ")]
        still.changes = [words for words in still.changes if words not in still.tried]
        for one in others:
            one.is_past = True
        if len(self._open) < _MISHAPS or place in self._open:
            self._open[place] = [*others, still][-8:]

    def change(self, call: Call) -> None:
        """Note what was changed or run since, for every error that is open."""
        for words in _told(call):
            for one in self._pressing():
                if words in one.changes:
                    continue
                if len(one.changes) < _CHANGES:
                    one.changes.append(words)
                else:
                    one.more += 1

    def _pressing(self) -> Iterator[_Open]:
        return (one for group in self._open.values() for one in group if not one.is_past)

    def suspect(self, cause: str) -> None:
        """Note what the agent holds for the cause of what is wrong now."""
        for one in self._pressing():
            one.cause = cause

    def resolve(self, call: Call) -> bool:
        """Take a call that went well as the end of the errors it covers; tell whether there were any."""
        done = [
            place
            for place, group in self._open.items()
            if any(covers(call, one.call, one.mishap.fault) for one in group)
        ]
        for place in done:
            group = self._open.pop(place)
            for one in group:
                one.mishap.resolution = _resolution(_latest(one, group, call), call)
                one.mishap.cause = one.cause
                self.resolved += 1
        self._leave(call)
        return bool(done)

    def _leave(self, call: Call) -> None:
        """Give up what failed where something was to be made ready for a call that went well without it."""
        families = {part.family for part in call.parts if part.kind != "look"}
        for place in [
            place for place, group in self._open.items() if any(families.intersection(one.call.then) for one in group)
        ]:
            for one in self._open.pop(place):
                one.mishap.is_moot = True

    def close(self) -> tuple[Mishap, ...]:
        """Return the errors in the order in which they first came.

        What the same call failed with no more, after something was done, has that for its
        resolution though it failed with something else.
        """
        for one in (one for group in self._open.values() for one in group):
            if one.is_past and (one.changes or one.tried):
                one.mishap.resolution = f"{_done(one)}; then `{_plain(one.call)}` failed with something else"
                one.mishap.cause = one.cause
        return tuple(self._all.values())

    @property
    def has_open_work(self) -> bool:
        """Whether anything that failed has not gone well since."""
        return bool(self._open)


def _told(call: Call) -> tuple[str, ...]:
    """Return in words what a call changed or ran, part for part."""
    parts = (*call.also, call._replace(also=()))
    changed = tuple(f"changed {', '.join(one.targets[:3])}" for one in parts if one.kind == "edit" and one.targets)
    return changed + tuple(f"ran `{_plain(one)}`" for one in parts if one.kind in ("install", "run", "build", "deploy"))


def _plain(call: Call) -> str:
    return call.shown.replace("`", "")


def covers(call: Call, failed: Call, fault: Fault | None) -> bool:
    """Tell whether a call that went well did what another had failed to do.

    Example:
        >>> one, folder, everything = (Call("test", "pytest", targets, str(targets)) for targets in (("tests/a.py",), ("tests",), ()))
        >>> covers(folder, one, None), covers(everything, folder, None), covers(one, everything, None)
        (True, True, False)
        >>> covers(one, everything, Fault("KeyError", "'id'", ("tests/a.py",)))
        True
    """
    return any(_covers(one, failed, fault) for one in (call, *call.also))


def _covers(call: Call, failed: Call, fault: Fault | None) -> bool:
    if _ASKING.intersection(call.shown.split()) - set(failed.shown.split()):
        return False
    differing = _differing(call, failed)
    if differing and len(differing) == 1 and _is_put_right(*differing[0], fault):
        return True
    if call.family != failed.family:
        if fault is not None and _is_other_script(call, failed, fault):
            return True
        never_ran = (
            fault is not None
            and call.kind == failed.kind
            and call.kind in ("test", "build")
            and _why_not_run(fault) in _NO_PROGRAM
        )
        return never_ran or (call.kind == failed.kind == "install" and _packages(call) == _packages(failed))
    if (
        fault is not None
        and call.kind == failed.kind
        and call.kind in ("test", "build")
        and _why_not_run(fault) in _NO_PROGRAM
    ):
        return True
    if (
        call.shown == failed.shown
        or call.kind == "lint"
        or call.kind == failed.kind == "install"
        or call.family.startswith("git ")
    ):
        return True
    if call.kind not in CHECKS and _has_more_options(call, failed):
        return True
    if (
        call.kind not in CHECKS
        and differing is not None
        and len(differing) <= 1
        and not any(_ADDRESS.search(one) for one, _ in differing)
    ):
        return not differing
    if call.kind not in CHECKS:
        return jaccard(word_set(call.shown), word_set(failed.shown)) >= _SAME_LINE
    if not call.targets:
        return True
    wanted = (fault.places if fault else ()) or failed.targets
    return bool(wanted) and all(any(_is_within(one, target) for target in call.targets) for one in wanted)


def _differing(call: Call, failed: Call) -> list[tuple[str, str]] | None:
    """Return the words in which two lines of as many words differ, or None where they have not as many."""
    words, before = bare_command(call.shown).split(), bare_command(failed.shown).split()
    if len(words) != len(before) or words[0] != before[0]:
        return None
    return [(one, other) for one, other in zip(words, before, strict=True) if one != other]


def _has_more_options(call: Call, failed: Call) -> bool:
    """Tell whether a line is another one with options that it had not, and nothing left out."""
    words, before = (bare_command(one.shown).split() for one in (call, failed))
    rest = iter(words)
    more = set(words) - set(before)
    is_longer = len(words) > len(before) and all(word in rest for word in before)
    return is_longer and any(word.startswith("-") for word in more)


def _is_put_right(word: str, before: str, fault: Fault | None) -> bool:
    """Tell whether a word stands where another one was that the error does not know, or that it names and is nearly the same."""
    if fault is None:
        return False
    name = before.rpartition("/")[2]
    is_named = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", fault.message) is not None
    if not _UNKNOWN.search(fault.message):
        return is_named and word.casefold() == before.casefold()
    is_longer = min(len(word), len(before)) >= _ALIKE and (word.startswith(before) or before.startswith(word))
    return is_longer or is_named


def _is_other_script(call: Call, failed: Call, fault: Fault) -> bool:
    """Tell whether a script that serves the project ran, where one of another name is missing."""
    families = (call.family.split(), failed.family.split())
    are_serving = all(family[0] in _MANAGERS["js"] and family[-1] in _SERVING for family in families)
    return are_serving and _why_not_run(fault) in _NO_NAME


def did_not_run(fault: Fault) -> bool:
    """Tell whether a check failed before it checked anything: a program, package or service was missing."""
    return _why_not_run(fault) is not None


def _why_not_run(fault: Fault) -> str | None:
    found = read_failure(f"{fault.type}: {fault.message}")
    return found.sort if found and found.is_about_setup else None


def _packages(call: Call) -> str:
    return next((word for word, names in _MANAGERS.items() if call.family.split()[0] in names), call.family)


def _is_within(place: str, target: str) -> bool:
    target = target.partition("::")[0].rstrip("/")
    return place.partition("::")[0] == target or place.startswith(f"{target}/")


def _latest(one: _Open, group: list[_Open], call: Call) -> _Open:
    """Return the error that stood in the way last where what went well had itself failed with it."""
    shown = {part.shown for part in call.parts}
    if one.call.shown in shown:
        return one
    return next((other for other in reversed(group) if other.call.shown in shown and not other.is_past), one)


def _resolution(one: _Open, call: Call) -> str:
    again = next((part for part in (call, *call.also) if _covers(part, one.call, one.mishap.fault)), call)
    told = f"`{_plain(again)}` went through"
    done = _done(one, again, call)
    if done:
        return f"{done}; then {told}"
    if again.shown != one.call.shown:
        return f"{told} instead"
    return f"{told} later" if one.is_past else f"{told} when it was run again, nothing was changed"


def _done(one: _Open, again: Call | None = None, whole: Call | None = None) -> str:
    """Return in words what was changed and run since an error, but for the call that went well."""
    own = _told(again._replace(also=())) if again else ()
    had = {words for part in one.call.also for words in _told(part)}
    first = whole.parts[: whole.parts.index(again._replace(also=()))] if again and whole and not one.is_past else ()
    since = list(dict.fromkeys((*one.changes, *(words for part in first for words in _told(part) if words not in had))))
    if not any(words not in own for words in since):
        since = one.tried
    changed = [
        file
        for change in since
        if change.startswith("changed ")
        for file in change.removeprefix("changed ").split(", ")
    ]
    files = ", ".join(file for file in changed if _may_help(file, one))
    runs = [change for change in since if change.startswith("ran ") and change not in own]
    parts = ([f"changed {', '.join(dict.fromkeys(files.split(', ')))}"] if files else []) + runs
    return "; ".join([*parts, f"and {one.more} more"] if one.more else parts)


def _may_help(file: str, one: _Open) -> bool:
    """Tell whether the change of a file may have done something about an error; about one of the set-up only settings do."""
    told = f"{one.mishap.fault.message} {one.call.shown}"
    return (
        not did_not_run(one.mishap.fault) or CONFIGURATION.search(file) is not None or file.rpartition("/")[2] in told
    )


class Check(NamedTuple):
    """The last result of a test run, build, lint run or deployment; `told` says it in words."""

    kind: str
    is_ok: bool
    told: str = ""


class Checks:
    """The last result of every check that no later one covers."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, tuple[str, ...]], tuple[Call, Check, Fault | None]] = OrderedDict()
        self._failed: set[str] = set()

    def note(self, call: Call, answer: Answer) -> None:
        """Note how a check went; other calls are none."""
        for one in call.also if answer.ok else ():
            self.note(one, Answer(ok=True))
        fault = answer.fault
        if call.kind not in CHECKS or answer.ok is None or (fault and (fault.sort != "work" or did_not_run(fault))):
            return
        self._last.pop((call.family, call.targets), None)
        if answer.ok:
            for place, (before, _, known) in list(self._last.items()):
                if covers(call, before, known):
                    del self._last[place]
        word = "passes" if call.kind in ("test", "lint") else "went through"
        again = ", after it had failed" if call.family in self._failed else ""
        told = f"`{_plain(call)}` {word}{f' ({answer.counted})' if answer.counted else ''}{again}"
        self._last[call.family, call.targets] = (
            call,
            Check(call.kind, bool(answer.ok), told if answer.ok else ""),
            fault,
        )
        if not answer.ok:
            self._failed.add(call.family)
        if len(self._last) > 40:
            self._last.popitem(last=False)

    @property
    def last(self) -> tuple[Check, ...]:
        """The results, the newest last."""
        return tuple(check for _, check, _ in self._last.values())

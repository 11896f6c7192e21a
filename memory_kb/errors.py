"""The errors of memory-kb: one sentence each, with a hint and an exit code."""

from __future__ import annotations

from collections.abc import Sequence


class MemoryKBError(Exception):
    """The root of everything memory-kb raises on purpose.

    Attributes:
        exit_code: what the command line ends with.
        code: a stable word for scripts.
        hint: what to do next, or None.
    """

    exit_code = 1
    code = "error"

    def __init_subclass__(cls, exit_code: int | None = None, code: str | None = None) -> None:
        cls.exit_code, cls.code = exit_code or cls.exit_code, code or cls.code

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(MemoryKBError, exit_code=2, code="usage"):
    """A call that contradicts itself or leaves out what it needs."""


class SecretRefused(UsageError, code="secret"):
    """A text to store that looks like a credential."""

    def __init__(self, what: str, place: str = "the text") -> None:
        super().__init__(
            f"not stored: {place} contains what looks like {what}",
            "memories are committed and shown to agents; say where the secret is kept instead, or on a terminal say --allow-secret if it is none",
        )


class AmbiguousId(UsageError, code="ambiguous"):
    """A shortened id that fits several entries."""

    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        super().__init__(
            f"{prefix!r} fits {len(candidates)} entries: {', '.join(candidates[:5])}",
            "give more characters, or the path with the line",
        )
        self.candidates = tuple(candidates)


class UnknownRun(UsageError, code="unknown-run"):
    """A name of a run that none has, or several; or a session whose end wrote nothing."""

    def __init__(self, wanted: str, count: int, *, is_occasion: bool = False) -> None:
        sentence = f"the end of {wanted!r} wrote nothing" if is_occasion else f"no run {wanted!r}"
        if count:
            sentence = f"{wanted!r} is the beginning of {count} names"
        super().__init__(sentence, "`memory-kb undo --list` shows all runs")


class VaultNotFound(MemoryKBError, exit_code=3, code="no-vault"):
    """No vault here, or none where the caller pointed."""


class NoRepository(VaultNotFound, code="no-repository"):
    """A folder in no git repository, or no git to ask."""


class InvalidSettings(MemoryKBError, exit_code=3, code="config"):
    """A configuration file or variable that cannot be used."""


class UnreadableInput(MemoryKBError, exit_code=4, code="unreadable"):
    """A file the caller named that cannot be read."""


class UnknownEntry(UnreadableInput, code="unknown-entry"):
    """No entry has this id or is at this place; `what` says what was looked for, such as `handoff` or `ledger of`."""

    def __init__(self, wanted: str, what: str = "entry") -> None:
        hint = "`memory-kb list` shows what there is; an entry is named by its id or the beginning of it, its title or its file"
        if what != "entry":
            hint = f"`memory-kb {what.split(maxsplit=1)[0]} list` shows what there is"
        super().__init__(f"no {what} {wanted!r}", hint)


class ProviderFailed(MemoryKBError, exit_code=5, code="provider"):
    """An embedding or language model that did not answer as it should.

    The message names the provider and says what it said, on one line and without any key.

    Attributes:
        is_passing: whether the same call may succeed later, as after a time-out or a full quota.
    """

    def __init__(self, message: str, hint: str | None = None, *, is_passing: bool = False) -> None:
        super().__init__(message, hint)
        self.is_passing = is_passing


def explain_failure(error: MemoryKBError) -> str:
    """Return an error with its hint."""
    return f"{error}{f' ({error.hint})' if error.hint else ''}"


def explain_refusal(error: OSError) -> str:
    """Return what the system refuses, without Python's words for it."""
    name = error.filename.decode("utf-8", "backslashreplace") if isinstance(error.filename, bytes) else error.filename
    reason = error.strerror or type(error).__name__
    return reason if name is None else f"{name}: {reason}"


class SpendLimitReached(ProviderFailed, code="spend"):
    """The day's budget for a language model is spent."""


class ChangedOnDisk(MemoryKBError, exit_code=6, code="changed-on-disk"):
    """A file that is no longer what the change was made for."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was changed by somebody else meanwhile; nothing was written", "run the command again")


class CannotSplice(MemoryKBError, exit_code=6, code="cannot-edit"):
    """An entry that cannot change without touching bytes not its own."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not changed: {what}", "edit the file by hand")
        self.what = what


class Forgotten(MemoryKBError, exit_code=6, code="forgotten"):
    """A text to store that was deliberately forgotten before."""

    def __init__(self, entry_id: str, path: str) -> None:
        super().__init__(
            f"not stored: the same text was forgotten before ({path}, id {entry_id})", "pass --force to store it anyway"
        )


class GitFailed(MemoryKBError, exit_code=6, code="git"):
    """A git command that refused, or a repository in the middle of something."""


class VaultBusy(MemoryKBError, exit_code=6, code="busy"):
    """A lock that another process holds for longer than we wait."""

    def __init__(self, lock: str, seconds: float) -> None:
        super().__init__(
            f"another memory-kb process has held {lock} for {seconds:.0f} s",
            "wait for it to finish, or end it, and try again",
        )

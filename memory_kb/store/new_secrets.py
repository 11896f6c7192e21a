"""Refuse credentials in any text that is about to be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.credentials import Finding, locate_secrets
from memory_kb.store.plan import Change
from memory_kb.store.render_changes import Composition, Step
from memory_kb.text import decode


class NewSecret(NamedTuple):
    """A credential that a change would bring into the vault."""

    change: Change
    finding: Finding


def find_new_secrets(made: Composition) -> tuple[NewSecret, ...]:
    """Return the credentials in the bytes and the paths that a composition writes, one a change.

    What one of its files already holds is not new: moving or shortening a note is no way to refuse it.
    """
    found = []
    before: list[str] | None = None
    for step in made.steps:
        for finding, value in _secrets_of(step):
            if before is None:
                before = [decode(file.before) for file in made.files if file.before]
            if not any(value in text for text in before):
                found.append(NewSecret(step.change, finding))
                break
    return tuple(found)


def _secrets_of(step: Step) -> Iterator[tuple[Finding, str]]:
    paths = (step.change.path, step.change.to or "")
    for text in (*paths, *(decode(splice.after) for splice in step.splices)):
        for finding in locate_secrets(text):
            yield finding, text[finding.start : finding.end]

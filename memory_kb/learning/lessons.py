"""Tell when two learnings are the same lesson, though the error was quoted from two runs, or it was said on two occasions."""

from __future__ import annotations

import re

from memory_kb.learning.observation.failures import generalise

_LABELLED = re.compile(r"^\*\*(?P<label>[\w ]+):\*\* (?P<words>.*)$", re.MULTILINE)
#: How it begins, under the label `Context`, on which occasion something was said.
OCCASION = "said when the agent "
_OCCASION = re.compile(rf"^\*\*Context:\*\* {OCCASION}.*\n?", re.MULTILINE)
_QUOTED = re.compile(r"(?<= fails with `)[^`\n]+(?=`)")


def without_occasion(text: str) -> str:
    """Return a text without the line that tells on which occasion it was said.

    Example:
        >>> without_occasion("only two cards are ours\\n**Context:** said when the agent had run `make train`.")
        'only two cards are ours\\n'
    """
    return _OCCASION.sub("", text) if OCCASION in text else text


def comparable(text: str) -> str:
    """Return a text as it is held against others: without the occasion, and of an error without what differs from one run to the next.

    Where it says what prevents the error, it does not matter which call of the command failed and
    which went well.

    Example:
        >>> one = "**Error Pattern:** `pytest -k a` fails with `no answer on port 5433`\\n**Prevention:** Run `make up` before `pytest`."
        >>> comparable(one) == comparable(one.replace("-k a", "-k b").replace("5433", "5434"))
        True
        >>> comparable("Use port 5433.")
        'Use port 5433.'
    """
    text = without_occasion(text)
    labels = dict(_LABELLED.findall(text))
    messages = [generalise(message) for message in _QUOTED.findall(labels.get("Error Pattern", ""))]
    if not messages:
        return text
    if "Prevention" in labels:
        return "\n".join((*messages, labels["Prevention"]))
    return _QUOTED.sub(lambda found: generalise(found[0]), text)

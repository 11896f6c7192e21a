"""What is told of an entry where a cursor rests on it."""

from __future__ import annotations

from memory_kb.notes.fieldlist import FIELDS
from memory_kb.text import shorten
from memory_kb.verbs.authoring import Standing

_MOST_TEXT = 400
_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>"})


def tell_standing(standing: Standing, links: tuple[int, int], *, with_text: bool) -> str:
    """Return how an entry stands, as Markdown.

    Args:
        standing: the entry.
        links: how many links lead out of it and to it.
        with_text: whether to show how its text begins, where the cursor is not on itself.
    """
    times = f"{1 + standing.reinforcement_count} (reinforced {standing.reinforcement_count}×); scope × {standing.scope_weight:g}"
    age = "undated" if standing.age_days is None else f"{standing.age_days:.0f} days old"
    lines = [
        f"**{standing.title.translate(_SIGNS)}**",
        f"{standing.kind} · {standing.scope} · {standing.status} · `{standing.id}`",
        f"prominence {standing.prominence:.4g} = importance {standing.importance:g} × decay {standing.decay:.4g} ({age}) × {times}",
        _use(standing),
        f"links: {links[0]} out, {links[1]} in",
    ]
    lines += [f"claims: {_CLAIMS.get(standing.claims, standing.claims)}"] if standing.claims else []
    lines += [f"tags: {', '.join(standing.tags).translate(_SIGNS)}"] if standing.tags else []
    told = "  \n".join(lines)
    return (
        f"{told}\n\n---\n\n{shorten(standing.text, _MOST_TEXT).translate(_SIGNS)}"
        if with_text and standing.text.strip()
        else told
    )


_CLAIMS = {
    "fresh": "fresh, what it cites is as it was recorded",
    "moved": "moved, what it cites stands elsewhere now",
    "drifted": "**drifted**, what it cites changed",
    "gone": "**gone**, what it cites is not there any more",
    "over": "**over**, its last day has passed",
}


def _use(standing: Standing) -> str:
    if not standing.shown:
        return "never shown yet"
    marks = ", ".join(f"{count} {word}" for word, count in standing.outcomes)
    last = f", last on {standing.last_shown[:10]}" if standing.last_shown else ""
    return f"shown {standing.shown}×{last}; outcomes: {marks or 'none yet'}"


def tell_field(name: str) -> str | None:
    """Return what a field means, as Markdown; None for one that is nobody's.

    Example:
        >>> tell_field("domain")
        '**domain**: Whether it is about one task or for the whole team.\\n\\nOne of: task, team'
    """
    field = FIELDS.get(name)
    if field is None:
        return None
    words = (
        f"\n\n{'One of' if field.form == 'choice' else 'For example'}: {', '.join(field.choices)}"
        if field.choices
        else ""
    )
    return f"**{name}**: {field.about}{words}"

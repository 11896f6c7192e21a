"""The pages of the review queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from memory_kb.errors import ChangedOnDisk, UsageError
from memory_kb.text import encode, hash_of
from memory_kb.web.entries import read_wanted
from memory_kb.web.render import LinkBase, render_note
from memory_kb.web.site import LONGEST_FORM, PAGE_SIZE, PageRequest, see_other

if TYPE_CHECKING:
    from starlette.responses import Response

    from memory_kb.reports import RunReport

#: The most days that one is left out of the queue.
_MOST_DAYS = 365


def show_review(request: PageRequest) -> Response:
    """What waits for a judgment."""
    asked, items = request.query, request.kept("review", lambda kb: kb.review.list())
    first = (asked.page - 1) * PAGE_SIZE
    shown = items[first : first + PAGE_SIZE]
    texts = [Markup(render_note(item.text, LinkBase(item.path))) for item in shown]  # noqa: S704 - the renderer escapes
    pages = -(-len(items) // PAGE_SIZE)
    return request.page("review.html", asked=asked, items=shown, total=len(items), texts=texts, pages=pages)


def show_item(request: PageRequest) -> Response:
    """One that waits, with its text and what each judgment would write."""
    wanted, review = read_wanted(request.fields), request.kb.review
    view = review.show(wanted.name(request.kb))
    rejection = review.reject(wanted.name(request.kb), dry_run=True).diff
    text = view.text.partition("\n---\n")[2] if view.text.startswith("---") else view.text
    body = Markup(render_note(text, LinkBase(view.item.path)))  # noqa: S704 - the renderer escapes
    return request.page(
        "reviewitem.html", view=view, item=view.item, body=body, rejection=rejection, wanted=wanted,
        text=text.strip("\n"), was=hash_of(encode(view.text)), at=f"{view.item.path}:{view.item.line}",
    )  # fmt: skip


def judge(request: PageRequest) -> Response:
    """Approve, reject, edit or snooze one that waits."""
    judgment = request.param("judgment")
    run = _judge(request, judgment, read_wanted(request.fields).name(request.kb))
    said = "conflict" if run.conflicts else judgment if run.changes else "same"
    return see_other(f"/review?said={said}{f'&run={run.run}' if run.run else ''}")


def _judge(request: PageRequest, judgment: str, entry: str) -> RunReport:
    review = request.kb.review
    if judgment == "approve":
        return review.approve(entry)
    if judgment == "reject":
        return review.reject(entry, reason=request.param("reason", 1_000).strip() or None)
    if judgment == "edit":
        try:
            return review.edit(entry, request.param("text", LONGEST_FORM), was=request.param("was"))
        except ChangedOnDisk:
            raise UsageError("somebody changed it in the meantime", "load the page again") from None
    if judgment == "snooze":
        days = request.param("days")
        if not (days.isdecimal() and 0 < int(days) <= _MOST_DAYS):
            raise UsageError(f"{days!r} is no number of days", f"it may be 1 to {_MOST_DAYS}")
        return review.snooze(entry, days=int(days))
    raise UsageError("a judgment is to approve, reject, edit or snooze")

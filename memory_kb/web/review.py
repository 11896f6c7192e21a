"""The pages of the review queue."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from markupsafe import Markup

from memory_kb.errors import UsageError
from memory_kb.kb import KnowledgeBase
from memory_kb.learning.review import ReviewView
from memory_kb.web.entries import read_wanted
from memory_kb.web.render import LinkBase, render
from memory_kb.web.site import LONGEST_FORM, PAGE_SIZE, Site, param, read_query, see_other

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from memory_kb.reports import RunReport

#: The most days that one is left out of the queue.
_MOST_DAYS = 365


async def show_review(site: Site, request: Request) -> Response:
    """What waits for a judgment."""
    asked = read_query(request.query_params)
    items = await site.keep("review", lambda kb: kb.review.list())
    first = (asked.page - 1) * PAGE_SIZE
    shown = items[first : first + PAGE_SIZE]
    texts = [Markup(render(item.text, LinkBase(item.path))) for item in shown]  # noqa: S704 - the renderer escapes
    return site.page(
        request, "review.html", asked=asked, items=shown, total=len(items), texts=texts,
        pages=-(-len(items) // PAGE_SIZE), said=param(request.query_params, "said"), run=param(request.query_params, "run"),
    )  # fmt: skip


async def show_item(site: Site, request: Request) -> Response:
    """One that waits, with its text and what each judgment would write."""
    wanted = read_wanted(request.query_params)

    def look(kb: KnowledgeBase) -> tuple[ReviewView, str]:
        view = kb.review.show(wanted.name(kb))
        return view, kb.review.reject(wanted.name(kb), dry_run=True).diff

    view, rejection = await site.study(look)
    text = view.text.partition("\n---\n")[2] if view.text.startswith("---") else view.text
    body = Markup(render(text, LinkBase(view.item.path)))  # noqa: S704 - the renderer escapes
    return site.page(
        request, "reviewitem.html", view=view, item=view.item, body=body, rejection=rejection, wanted=wanted,
        text=text.strip("\n"), was=_digest(view), at=f"{view.item.path}:{view.item.line}",
    )  # fmt: skip


def _digest(view: ReviewView) -> str:
    return hashlib.sha256(view.text.encode("utf-8", "replace")).hexdigest()


async def judge(site: Site, request: Request) -> Response:
    """Approve, reject, edit or snooze one that waits."""
    fields = await site.form(request)
    wanted, judgment, reason = read_wanted(fields), param(fields, "judgment"), param(fields, "reason", 1_000).strip()
    if judgment == "approve":
        run = await site.write(lambda kb: kb.review.approve(wanted.name(kb)))
    elif judgment == "reject":
        run = await site.write(lambda kb: kb.review.reject(wanted.name(kb), reason=reason or None))
    elif judgment == "edit":
        text, was = param(fields, "text", LONGEST_FORM), param(fields, "was")

        def edit(kb: KnowledgeBase) -> RunReport:
            if _digest(kb.review.show(wanted.name(kb))) != was:
                raise UsageError("somebody changed it in the meantime", "load the page again")
            return kb.review.edit(wanted.name(kb), text)

        run = await site.write(edit)
    elif judgment == "snooze":
        days = param(fields, "days")
        if not (days.isdecimal() and 0 < int(days) <= _MOST_DAYS):
            raise UsageError(f"{days!r} is no number of days", f"it may be 1 to {_MOST_DAYS}")
        run = await site.write(lambda kb: kb.review.snooze(wanted.name(kb), days=int(days)))
    else:
        raise UsageError("a judgment is to approve, reject, edit or snooze")
    said = "conflict" if run.conflicts else judgment if run.changes else "same"
    return see_other(f"/review?said={said}{f'&run={run.run}' if run.run else ''}")

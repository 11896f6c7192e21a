"""Code that is not kept has to be made before what needs it."""

from __future__ import annotations

import pytest
from chaining import learned

NO_TYPES = "Error: Cannot find module '/srv/shop/.kit/tsconfig.json'\n Tests  no tests"
TESTS = "npm run test:unit -- cart"


@pytest.mark.parametrize(
    "made", ["npx kitty prepare", "pnpm --filter shared build", "npm run build:types", "make codegen"]
)
def test_what_makes_code_is_kept_where_it_alone_helped_against_a_missing_module(made: str) -> None:
    (offer,) = learned(("-", TESTS, NO_TYPES), ("+", made), ("+", TESTS))
    assert offer.draft.title == f"Run `{made}` before `npm run test:unit`"


@pytest.mark.parametrize(
    "steps",
    [
        [("+", "npm update")],
        [("+", "docker compose build")],
        [("+", "npx kitty prepare"), ("E", "src/a.ts")],
        [("+", "npx kitty prepare"), ("+", "make assets")],
        [("+", "npx kitty serve")],
    ],
    ids=["packages", "an image", "an edit as well", "more was run", "it makes nothing"],
)
def test_what_may_not_have_helped_against_a_missing_module_is_not_kept(steps: list[tuple[str, ...]]) -> None:
    titles = [offer.draft.title or "" for offer in learned(("-", TESTS, NO_TYPES), *steps, ("+", TESTS))]
    assert not any(title.startswith("Run ") for title in titles), titles

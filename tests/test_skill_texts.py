"""The text of a skill: read leniently, written exactly, and brought up to date around what people wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.errors import CannotSplice
from memory_kb.skills.skill_text import SkillText, parse_skill, render_skill, update_body

PARTS = ("prerequisites", "steps", "errors", "exit_criteria", "template")

EXACT = """# Skill: Ship it

Every Monday.

## Prerequisites

- Green build

## Steps

1. Tag {version}.
2. Push:
   both remotes.

## Common Errors & Fixes

- tag exists: bump the version

## Exit Criteria

- The page shows {version}

## Template

````
```sh
make release
```
````"""
SHIP = SkillText(
    "Ship it",
    "Every Monday.",
    ("Green build",),
    ("Tag {version}.", "Push:\nboth remotes."),
    ("tag exists: bump the version",),
    ("The page shows {version}",),
    "```sh\nmake release\n```",
)


def test_the_exact_form() -> None:
    assert render_skill(SHIP) == EXACT
    assert parse_skill(EXACT) == SHIP


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("## Steps\n\n1. One.\n1. Two.\n", ("One.", "Two.")),
        ("## STEPS:\n* One.\n+ Two.\n", ("One.", "Two.")),
        ("## Steps\r\n\r\n1) One\r\n2) Two\r\n", ("One", "Two")),
        ("## Steps\nFirst do this.\n\nThen\nthat.\n", ("First do this.", "Then that.")),
        ("## Steps\n1. One\n   - inner\n   - inner too\n2. Two\n", ("One\n- inner\n- inner too", "Two")),
        ("## Steps\n1. ```sh\n   ## no heading\n   ```\n2. Two\n", ("```sh\n## no heading\n```", "Two")),
        ("## Steps\n1. ```left open\n## Exit Criteria\n- done\n", ("```left open",)),
        ("```\n## Steps\n1. No\n```\n## Steps ##\n1. Yes\n", ("Yes",)),
        ("## Steps\n1. lazy\ncontinuation\n\nprose behind\n", ("lazy\ncontinuation",)),
        ("## Steps\n", ()),
        ("Just prose.", None),
        ("", None),
    ],
)
def test_lenient_reading(body: str, steps: tuple[str, ...] | None) -> None:
    assert parse_skill(body).steps == steps


lines = (
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20)
    .map(str.strip)
    .filter(bool)
)
shapes = st.sampled_from(
    [
        "# Head",
        "## Steps",
        "- dash",
        "1. one",
        "```",
        "~~~sh",
        "---",
        "a: b",
        "## Exit Criteria",
        "    deep",
        "`` x",
        "#",
    ]
)
items = st.lists(st.lists(st.one_of(lines, shapes), min_size=1, max_size=3).map("\n".join), max_size=4).map(tuple)
bodies = st.builds(
    SkillText,
    st.just("Name"),
    st.none(),
    items,
    items,
    items,
    items,
    st.one_of(st.none(), st.lists(st.one_of(lines, shapes, st.just("")), max_size=4).map("\n".join)),
)


def cleaned(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    kept = ("\n".join(line.rstrip() for line in item.strip().split("\n")) for item in value)
    return tuple(item for item in kept if item)


@given(bodies)
def test_what_is_written_reads_back(said: SkillText) -> None:
    read = parse_skill(render_skill(said))
    assert read.template == said.template
    for part in PARTS[:4]:
        assert getattr(read, part) == cleaned(getattr(said, part))


@given(bodies, bodies)
def test_an_update_changes_the_parts_it_speaks_of(old: SkillText, new: SkillText) -> None:
    spoken = new._replace(prerequisites=None, exit_criteria=None)
    body = render_skill(old) + "\n\n## Notes\n\nMine.\n"
    changed = update_body(body, spoken, None)
    assert "\n\n## Notes\n\nMine.\n" in changed
    read = parse_skill(changed)
    assert read.steps == cleaned(new.steps)
    assert read.prerequisites == cleaned(old.prerequisites)
    assert read.exit_criteria == cleaned(old.exit_criteria)
    assert read.template == (old.template if new.template is None else new.template)
    assert update_body(changed, spoken, None) == changed


def test_an_update_keeps_what_people_wrote_around_a_list() -> None:
    body = (
        "# Ship\r\n\r\nMy own words.\r\n\r\n## Steps\r\n\r\nIn this order:\r\n\r\n* Tag.\r\n* Push.\r\n\r\n"
        "Never on Fridays.\r\n\r\n## Links\r\n\r\n- x\r\n"
    )
    changed = update_body(
        body, SkillText("Ship", "New.", steps=("Test.", "Push."), exit_criteria=("Done.",)), "Old.", "\r\n"
    )
    assert (
        changed == body.replace("* Tag.\r\n* Push.", "1. Test.\r\n2. Push.") + "\r\n## Exit Criteria\r\n\r\n- Done.\r\n"
    )


def test_a_missing_section_goes_to_the_end() -> None:
    changed = update_body("# Skill: x\n\n## Exit Criteria\n\n- Done.\n", SkillText("x", steps=("One.",)), None)
    assert changed == "# Skill: x\n\n## Exit Criteria\n\n- Done.\n\n## Steps\n\n1. One.\n"


def test_nothing_is_put_into_an_open_fence() -> None:
    for body in ("# Skill: x\n\n```\nmake\n", "# Skill: x\n\n## Template\n\n```\nleft open"):
        with pytest.raises(CannotSplice, match="close the fence"):
            update_body(body, SkillText("x", steps=("One.",), template="new"), None)


def test_the_place_of_a_part_is_never_in_a_fence() -> None:
    body = "# Skill: x\n\n```\n## Steps\n\n1. No.\n```\n"
    assert update_body(body, SkillText("x", steps=("Yes.",)), None) == body + "\n## Steps\n\n1. Yes.\n"

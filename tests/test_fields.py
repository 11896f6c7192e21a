"""The checked reading of frontmatter: kinds, defaults, and complaints at the right lines."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.markdown.document import parse_document
from memory_kb.markdown.fields import read_fields, read_kind
from memory_kb.model import DOMAINS, KIND_ALIASES, KINDS, PRIORITIES, RELATIONS, STATUSES, TYPES, Link
from memory_kb.text import as_text, parse_date, read_words

#: The words of the format; the working kinds have no importance of their own.
KIND_TABLE = [
    ("policy", "directive", 0.95),
    ("preference", "directive", 0.5),
    ("architecture", "declarative", 0.8),
    ("decision", "declarative", 0.5),
    ("fact", "declarative", 0.4),
    ("rule", "procedural", 0.5),
    ("pitfall", "corrective", 0.8),
    ("skill", "procedural", 0.8),
    ("episode", "declarative", 0.4),
]


@pytest.mark.parametrize(("kind", "type_", "importance"), KIND_TABLE)
def test_a_kind_implies_its_type_and_importance(kind: str, type_: str, importance: float) -> None:
    fields, complaints = read_fields({"kind": kind})
    assert (fields["kind"], fields["type"], fields["importance"]) == (kind, type_, importance)
    assert complaints == ()


@pytest.mark.parametrize(
    ("kind", "type_", "read"),
    [
        pytest.param("workflow", None, ("skill", "procedural"), id="workflow"),
        pytest.param("pattern", None, ("rule", "procedural"), id="pattern"),
        pytest.param("anti-pattern", None, ("pitfall", "corrective"), id="anti-pattern"),
        pytest.param("diary", None, ("episode", "declarative"), id="diary"),
        pytest.param(None, "declarative", ("fact", "declarative"), id="declarative"),
        pytest.param(None, "procedural", ("rule", "procedural"), id="procedural"),
        pytest.param(None, "directive", ("preference", "directive"), id="directive-is-no-policy"),
        pytest.param(None, "corrective", ("pitfall", "corrective"), id="corrective"),
        pytest.param(None, None, ("fact", "declarative"), id="neither"),
        pytest.param("fact", "corrective", ("fact", "corrective"), id="both"),
        pytest.param(" Rule ", "PROCEDURAL", ("rule", "procedural"), id="case-and-space"),
        pytest.param("page", "corrective", ("pitfall", "corrective"), id="unknown-kind-known-type"),
        pytest.param("page", "docs", ("fact", "declarative"), id="both-unknown"),
        pytest.param(["rule"], 7, ("fact", "declarative"), id="not-words"),
    ],
)
def test_kind_and_type_from_what_is_named(kind: object, type_: object, read: tuple[str, str]) -> None:
    assert read_kind(kind, type_) == read


def test_an_empty_mapping_has_the_defaults() -> None:
    fields, complaints = read_fields({})
    assert complaints == ()
    assert (fields["id"], fields["kind"], fields["type"], fields["domain"], fields["importance"], fields["phase"]) == (
        None,
        "fact",
        "declarative",
        "team",
        0.5,
        "unknown",
    )
    assert (
        fields["status"],
        fields["reinforcement_count"],
        fields["last_reinforced"],
        fields["created_at"],
        fields["title"],
    ) == (
        None,
        0,
        None,
        None,
        None,
    )
    assert (
        fields["tags"],
        fields["priority"],
        fields["applies_to"],
        fields["links"],
        fields["dated"],
        fields["seen"],
    ) == (
        (),
        None,
        (),
        (),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("priority", "importance"), [("critical", 0.95), ("high", 0.8), ("medium", 0.5), ("normal", 0.4)]
)
def test_a_priority_decides_over_the_kind_and_a_number_over_both(priority: str, importance: float) -> None:
    assert read_fields({"kind": "fact", "priority": priority})[0]["importance"] == importance
    assert read_fields({"kind": "policy", "priority": priority, "importance": 0.33})[0]["importance"] == 0.33


COMPLAINTS = [
    pytest.param({"kind": "page"}, "kind", "kind page is not a known word; read as fact", id="kind"),
    pytest.param(
        {"kind": "page", "type": "corrective"},
        "kind",
        "kind page is not a known word; read as pitfall",
        id="kind-by-type",
    ),
    pytest.param({"type": "docs"}, "type", "type docs is not a known word; read as declarative", id="type"),
    pytest.param({"status": "draft"}, "status", "status draft is not a known word; read as the default", id="status"),
    pytest.param(
        {"priority": "urgent"}, "priority", "priority urgent is not a known word; read as the default", id="priority"
    ),
    pytest.param({"domain": "galaxy"}, "domain", "domain galaxy is not a known word; read as the default", id="domain"),
    pytest.param({"importance": 7}, "importance", "importance 7 is outside 0 to 1; read as 1.0", id="importance-above"),
    pytest.param(
        {"importance": -0.1}, "importance", "importance -0.1 is outside 0 to 1; read as 0.0", id="importance-below"
    ),
    pytest.param(
        {"importance": "high"}, "importance", "importance high is not a number; read as 0.5", id="importance-word"
    ),
    pytest.param(
        {"importance": "nan"}, "importance", "importance nan is not a number; read as 0.5", id="importance-nan"
    ),
    pytest.param({"confidence": [1]}, "confidence", "confidence [1] is not a number; read as 0.5", id="confidence"),
    pytest.param(
        {"reinforcement_count": -1},
        "reinforcement_count",
        "reinforcement_count -1 is out of range; read as 0",
        id="count-below",
    ),
    pytest.param(
        {"reinforcement_count": "many"},
        "reinforcement_count",
        "reinforcement_count many is not a whole number; read as 0",
        id="count-word",
    ),
    pytest.param(
        {"success_count": 10**12},
        "success_count",
        "success_count 1000000000000 is out of range; read as 0",
        id="count-above",
    ),
    pytest.param(
        {"last_reinforced": "yesterday"},
        "last_reinforced",
        "last_reinforced yesterday is not an ISO date; read as no date",
        id="date-word",
    ),
    pytest.param(
        {"created_at": "2026-02-30"},
        "created_at",
        "created_at 2026-02-30 is not an ISO date; read as no date",
        id="no-such-day",
    ),
    pytest.param(
        {"last_applied": 20260101},
        "last_applied",
        "last_applied 20260101 is not an ISO date; read as no date",
        id="date-as-number",
    ),
    pytest.param(
        {"links": [{"relation": "supersedes"}]}, "links", "a link without `to` is ignored", id="link-to-nothing"
    ),
    pytest.param(
        {"links": [{"to": "x", "relation": "likes"}]},
        "links",
        "relation likes to x is not a known word; read as related_to",
        id="relation",
    ),
    pytest.param(
        {"links": [{"to": "x"}]},
        "links",
        "relation (none) to x is not a known word; read as related_to",
        id="no-relation",
    ),
]


@pytest.mark.parametrize(("meta", "field", "message"), COMPLAINTS)
def test_what_cannot_be_used_is_said(meta: dict[str, Any], field: str, message: str) -> None:
    (complaint,) = read_fields(meta)[1]
    assert (complaint.field, complaint.message) == (field, message)


@pytest.mark.parametrize("value", ["two\nlines", "two\r\nlines", ["two\nlines"]])
def test_a_complaint_is_one_line(value: object) -> None:
    for field in ("kind", "status", "importance", "last_reinforced", "reinforcement_count"):
        (complaint,) = read_fields({field: value})[1]
        assert len(complaint.message.splitlines()) == 1, complaint.message


@pytest.mark.parametrize(("meta", "field", "message"), COMPLAINTS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_complaint_names_the_line_of_its_field(meta: dict[str, Any], field: str, message: str, newline: str) -> None:
    """In the second entry of a file, behind other keys, a comment and a nested key of the same name."""
    import json

    value = json.dumps(meta[field])
    others = "".join(f"{key}: {json.dumps(other)}\n" for key, other in meta.items() if key != field)
    head = "Before.\n\n---\nid: a\n---\nOne.\n\n---\nid: b\n"
    text = f"{head}{others}nested:\n  {field}: 1\n# {field}: 2\nnote: |\n  {field}: 3\n'{field}' : {value}\n---\nTwo.\n".replace(
        "\n", newline
    )
    (problem,) = parse_document(text, "notes.md").problems
    assert text.split(newline)[problem.line - 1].startswith(f"'{field}'")
    assert problem.path == "notes.md"
    assert problem.message.partition(";")[2] == message.partition(";")[2]


def test_the_status_of_a_folder_holds_until_the_entry_names_one() -> None:
    text = (
        "---\nid: a\n---\nOne.\n\n---\nid: b\nstatus: active\n---\nTwo.\n\n---\nid: c\nstatus: nonsense\n---\nThree.\n"
    )
    assert [entry.status for entry in parse_document(text, "archive/a.md", "archived").entries] == [
        "archived",
        "active",
        "archived",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param(["a", "b"], ("a", "b"), id="list"),
        pytest.param("a, b ,c", ("a", "b", "c"), id="commas"),
        pytest.param("one two", ("one two",), id="spaces-stay"),
        pytest.param(["a", "a", " a "], ("a",), id="repeats"),
        pytest.param(["#a", "##b", "#"], ("a", "b"), id="number-signs"),
        pytest.param([1, 2.5, True, None, [], {}], ("1", "2.5", "True"), id="not-words"),
        pytest.param(None, (), id="nothing"),
        pytest.param("", (), id="empty"),
        pytest.param(7, ("7",), id="number"),
        pytest.param([str(n) for n in range(500)], tuple(str(n) for n in range(200)), id="at-most-200"),
    ],
)
def test_lists_of_words(value: object, words: tuple[str, ...]) -> None:
    assert read_words(value) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(" a \n b ", "a b", id="one-line"),
        pytest.param(12, "12", id="number"),
        pytest.param(False, "False", id="false"),
        pytest.param("   ", None, id="blank"),
        pytest.param(["a"], None, id="list"),
        pytest.param({"a": 1}, None, id="mapping"),
        pytest.param("x" * 5_000, "x" * 1_000, id="cut"),
    ],
)
def test_one_line_texts(value: object, text: str | None) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("value", "day"),
    [
        pytest.param("2026-03-01", date(2026, 3, 1), id="date"),
        pytest.param("2026-03-01T23:59:59Z", date(2026, 3, 1), id="date-time"),
        pytest.param(" 2026-03-01 10:00", date(2026, 3, 1), id="space"),
        pytest.param("2024-02-29", date(2024, 2, 29), id="leap-day"),
        pytest.param("2026-02-29", None, id="no-leap-day"),
        pytest.param("0000-01-01", None, id="year-zero"),
        pytest.param("2026-03-011", None, id="too-many-digits"),
        pytest.param("2026-03", None, id="month"),
        pytest.param("01.03.2026", None, id="other-order"),
        pytest.param(20260301, None, id="number"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_days(value: object, day: date | None) -> None:
    assert parse_date(value) == day


def test_links_of_every_accepted_shape() -> None:
    fields, complaints = read_fields(
        {"links": [{"to": "a", "relation": "Supersedes"}, "b", {"to": 7, "relation": "superseded_by"}]}
    )
    assert fields["links"] == (Link("a", "supersedes"), Link("b", "related_to"), Link("7", "superseded_by"))
    assert complaints == ()
    assert read_fields({"links": "a"})[0]["links"] == (Link("a", "related_to"),)


def test_a_link_supersedes_an_entry() -> None:
    (entry,) = parse_document("---\nid: a\nlinks: [{to: b, relation: superseded_by}]\n---\n", "a.md").entries
    assert entry.is_superseded
    (entry,) = parse_document("---\nid: a\nlinks: [{to: b, relation: supersedes}]\n---\n", "a.md").entries
    assert not entry.is_superseded


ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from([*KINDS, *KIND_ALIASES, *TYPES, *STATUSES, "2026-01-02"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["to", "relation", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        *(
            "id",
            "kind",
            "type",
            "domain",
            "importance",
            "phase",
            "status",
            "reinforcement_count",
            "last_reinforced",
            "created_at",
            "title",
            "name",
        ),
        *(
            "tags",
            "priority",
            "applies_to",
            "links",
            "date",
            "created",
            "confidence",
            "success_count",
            "last_applied",
            "quality_score",
        ),
    ]
)


@given(st.dictionaries(NAMES, ANY_VALUE, max_size=8))
def test_whatever_is_written_every_field_is_good(meta: dict[str, Any]) -> None:
    fields, complaints = read_fields(meta)
    assert fields["kind"] in KINDS
    assert fields["type"] in TYPES
    assert fields["domain"] in DOMAINS
    assert fields["status"] is None or fields["status"] in STATUSES
    assert fields["priority"] is None or fields["priority"] in PRIORITIES
    assert 0.0 <= fields["importance"] <= 1.0
    assert fields["reinforcement_count"] >= 0
    assert all(link.relation in RELATIONS for link in fields["links"])
    assert {complaint.field for complaint in complaints} <= meta.keys()
    assert all("\n" not in complaint.message for complaint in complaints)

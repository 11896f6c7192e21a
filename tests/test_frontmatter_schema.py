"""The JSON Schema of the frontmatter says what the reading of it says."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import NOW, REPOSITORY
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.learning.playbook import MATURITIES
from memory_kb.learning.render_entry import Draft, render_new_entry
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.fields import FIELDS, frontmatter_schema, read_fields
from memory_kb.model import KINDS
from memory_kb.store.session_events import SESSION_OUTCOMES

jsonschema: Any = pytest.importorskip("jsonschema")
VALIDATOR = jsonschema.Draft202012Validator(frontmatter_schema())

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2_000_000_000),
    st.floats(-2, 2, allow_nan=False),
    st.sampled_from(["policy", "active", "task", "high", "2026-01-02", "2026-13-01", "soon", "", "0.5", "seven"]),
    st.lists(st.sampled_from(["a", "b"]), max_size=2),
    st.just([{"to": "x", "relation": "supersedes"}]),
    st.just([{"to": "x", "relation": "knows"}]),
    st.just([{"relation": "supersedes"}]),
    st.just({"a": 1}),
)


def complained(meta: dict[str, Any]) -> set[str]:
    return {one.field for one in read_fields(meta)[1]}


def rejected(meta: dict[str, Any]) -> set[str]:
    return {str(error.absolute_path[0]) for error in VALIDATOR.iter_errors(meta)}


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(frontmatter_schema())


@given(meta=st.dictionaries(st.sampled_from(sorted(FIELDS)), VALUES, max_size=6))
def test_what_lint_complains_of_the_schema_rejects(meta: dict[str, Any]) -> None:
    assert complained(meta) <= rejected(meta)


@pytest.mark.parametrize("name", [name for name, field in FIELDS.items() if field.form == "choice"])
def test_every_word_is_taken_by_both(name: str) -> None:
    for word in FIELDS[name].choices:
        assert not complained({name: word}) | rejected({name: word})
        assert complained({name: f"{word}x"}) == rejected({name: f"{word}x"}) == {name}


def test_what_is_written_fits() -> None:
    for kind in KINDS:
        text = render_new_entry(Draft("Text.", kind, "Title", ("a",), "high", ("src/**",), "observed"), "x-1", NOW)
        (entry,) = parse_document(text, "a.md").entries
        assert not complained(dict(entry.metadata)) | rejected(dict(entry.metadata)), kind


def test_the_sample_vault_fits() -> None:
    count = 0
    for file in (REPOSITORY / "sample_vault").rglob("*.md"):
        for entry in parse_document(file.read_text(encoding="utf-8"), file.name).entries:
            assert rejected(dict(entry.metadata)) == set(), file
            count += entry.has_frontmatter
    assert count > 10


def test_words_of_other_rooms_are_the_same() -> None:
    assert FIELDS["maturity"].choices == MATURITIES
    assert set(FIELDS["outcome"].choices) < set(SESSION_OUTCOMES)


def test_every_field_says_what_it_is() -> None:
    properties = frontmatter_schema()["properties"]
    assert list(properties) == list(FIELDS)
    assert all(one["description"].endswith(".") for one in properties.values())

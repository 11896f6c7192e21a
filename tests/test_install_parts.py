"""The parts that installing puts into JSON, TOML and text: they come and go, and every other byte stays."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from installing import CODEX_CONFIG

from memory_kb.agents.config_files import (
    FilePart,
    ListItem,
    Server,
    insert_toml,
    parse_json,
    put_in,
    remove_json,
    remove_toml,
    take_out,
)
from memory_kb.errors import CannotSplice
from memory_kb.markdown import managed_block as blocks

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text('ab\\"/*,{}[]\u00e9 \t', max_size=6))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc/", max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["a", "b", "hooks", "mcpServers", "// x"]), VALUES, max_size=4)
SERVER = Server(("mcpServers", "memory-kb"), {"command": "memory-kb", "args": ["mcp"]})
HOOK = ListItem(("hooks", "Stop"), {"command": "memory-kb hook stop"})
PARTS: list[FilePart] = [SERVER, HOOK]


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, Any]:
    """Write a document in some style: indents, line ends, a BOM."""
    value = draw(DOCUMENTS)
    newline, unit = draw(st.sampled_from(["\n", "\r\n"])), draw(st.sampled_from(["", "  ", "    ", "\t", None]))

    def write(one: Any, depth: int) -> str:
        if not isinstance(one, dict | list) or not one:
            return json.dumps(one, ensure_ascii=draw(st.booleans()))
        ends = ("{", "}") if isinstance(one, dict) else ("[", "]")
        lead = "" if unit is None else newline + unit * (depth + 1)
        items = [write(item, depth + 1) for item in (one.values() if isinstance(one, dict) else one)]
        if isinstance(one, dict):
            items = [f"{json.dumps(key)}: {item}" for key, item in zip(one, items, strict=True)]
        inner = ",".join(f"{lead}{item}" for item in items)
        return f"{ends[0]}{inner}{'' if unit is None else newline + unit * depth}{ends[1]}"

    bom = draw(st.sampled_from(["", "\ufeff"]))
    return f"{bom}{write(value, 0)}{draw(st.sampled_from(['', newline]))}", value


@given(texts())
def test_splices_keep_every_other_byte(document: tuple[str, Any]) -> None:
    """What is put in is there, nothing else changed, and taking it out again gives the same bytes."""
    text, value = document
    assert parse_json("x", text) == value
    data = text.encode()
    try:
        after, trace = put_in("x", data, PARTS)
    except CannotSplice:
        assert not all(isinstance(value.get(key, {}), dict) for key in ("mcpServers", "hooks")) or "Stop" in str(value)
        return
    expected = json.loads(json.dumps(value))
    expected.setdefault("mcpServers", {})["memory-kb"] = SERVER.value
    expected.setdefault("hooks", {}).setdefault("Stop", []).append(HOOK.value)
    assert parse_json("x", after.decode()) == expected
    assert is_subsequence(text, after.decode())
    assert put_in("x", after, PARTS, trace)[0] == after
    assert take_out("x", after, PARTS, trace) == data
    left = take_out("x", after, PARTS, None)
    assert left is not None
    structural = parse_json("x", left.decode())
    for key in ("hooks", "mcpServers"):
        if not value.get(key):
            assert not structural.pop(key, None)
            value.pop(key, None)
    assert structural == value


def is_subsequence(small: str, large: str) -> bool:
    rest = iter(large)
    return all(character in rest for character in small)


@given(texts(), st.data())
def test_anything_can_be_taken_out(document: tuple[str, Any], data: st.DataObject) -> None:
    text, value = document
    while isinstance(value, dict | list) and value:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = data.draw(st.sampled_from(keys))
        text = remove_json(text, (key,)) if isinstance(value, dict) else text
        value = {name: item for name, item in value.items() if name != key} if isinstance(value, dict) else []
        assert parse_json("x", text) == value


@given(
    st.lists(
        st.sampled_from(
            [CODEX_CONFIG, "", "\n", "# end\n", '[x]\ny = """\n[z]\n"""\n', "[[a]]\nb = {c = [1,\n[2]]}\n"]
        ),
        unique=True,
    )
)
def test_toml_tables_come_and_go(pieces: list[str]) -> None:
    text = "".join(sorted(pieces, key=lambda piece: piece.startswith("[")))
    table = ("mcp_servers", "memory-kb")
    after = insert_toml("c.toml", text, table, {"command": "C:\\kb", "args": ["mcp", '"\u00e9']})
    held = tomllib.loads(after)
    assert held["mcp_servers"].pop("memory-kb") == {"command": "C:\\kb", "args": ["mcp", '"\u00e9']}
    before = tomllib.loads(text)
    assert held == before | {"mcp_servers": before.get("mcp_servers", {})}
    assert tomllib.loads(remove_toml("c.toml", after + "\n[last]\n", table)) == before | {"last": {}}


@given(st.text("a\n\r#-<!>", max_size=30))
def test_blocks_come_and_go(text: str) -> None:
    after = blocks.put("A.md", text, "install", "One.\nTwo.")
    assert after.startswith(text)
    assert blocks.put("A.md", after, "install", "One.\nTwo.") == after
    assert blocks.take_out("A.md", after, "install").rstrip("\r\n") == text.rstrip("\r\n")

"""Load YAML within bounds, into plain JSON values.

PyYAML does the parsing, through libyaml where it is installed. On top of its safe loader: dates
and clock times stay the strings people wrote, an unknown `!tag` is ignored, `<<` merges nothing,
and a block whose aliases multiply into something huge is refused before it is expanded.
"""

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.text import as_read

if TYPE_CHECKING:
    import yaml
#: Characters of one block, and values in it, that we are ready to look at.
MAX_BLOCK = 300_000
MAX_VALUES = 50_000
#: Characters of a block that never ends, or may be none, that are looked at.
MAX_BROKEN = 65_536
MAX_DEPTH = 50
# What nests without a bound on its depth; the C parser overflows its stack on some thousand levels.
_NESTING = ("[", "{", "- ", "-\t", "? ", "?\t")
_MAX_BITS = 1_024
#: What is wrong with YAML that is something else.
NO_MAPPING = "is not a mapping of keys to values"
_TEXT, _SET = "tag:yaml.org,2002:str", "tag:yaml.org,2002:set"
_DROPPED_TAGS = frozenset({"timestamp", "int", "float", "value", "merge"})
_INT = lazy_regex(r"[-+]?(?:0|[1-9][0-9_]*|0[0-7_]+|0x[0-9a-fA-F][0-9a-fA-F_]*|0b[01][01_]*)$")
_FLOAT = lazy_regex(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|\.inf|\.Inf|\.INF|\.nan|\.NaN|\.NAN)$"
)


class InvalidBlock(Exception):
    """A block that is not a usable YAML mapping: `what` is wrong with it, as of `line`, which counts from 0."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(f"the frontmatter {what}")
        self.what, self.line = what, line


@functools.cache
def yaml_loader() -> "type[yaml.SafeLoader]":
    """Return the safe loader class that all frontmatter and configuration is read with."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class NoteLoader(base):  # type: ignore[misc]
        """The safe loader without YAML 1.1's surprises."""

    NoteLoader.yaml_implicit_resolvers = {
        first: [(tag, shape) for tag, shape in resolvers if tag.rpartition(":")[2] not in _DROPPED_TAGS]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    NoteLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
    NoteLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
    NoteLoader.add_multi_constructor("", lambda loader, _suffix, node: loader.construct_scalar(node))
    return NoteLoader


def load_mapping(block: str, scale: int = 1) -> dict[str, Any]:
    """Parse a YAML mapping into JSON values.

    A file that is all YAML may be `scale` times as large as a block of frontmatter.

    Raises:
        InvalidBlock: it is not YAML, not a mapping, or too large.

    Example:
        >>> load_mapping("id: x\\ncreated_at: 2026-03-01\\ntags: [a, 12:30]")
        {'id': 'x', 'created_at': '2026-03-01', 'tags': ['a', '12:30']}
    """
    if len(block) > MAX_BLOCK * scale:
        raise InvalidBlock(f"is longer than {MAX_BLOCK * scale:,} characters")
    import yaml

    try:
        _check_depth(block)
        loader = yaml_loader()(block)
        try:
            value = _NodeReader(loader, MAX_VALUES * scale).read()
        finally:
            loader.dispose()
    except yaml.YAMLError as exc:
        raise _not_yaml(exc) from exc
    except InvalidBlock:
        raise
    except Exception as exc:  # PyYAML's constructors raise anything at all on odd explicit tags
        raise InvalidBlock(f"is not valid YAML: {exc}") from exc
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidBlock(NO_MAPPING)
    return value


class YamlItem(NamedTuple):
    """An item of a list in a file that is all YAML: its YAML, and its line from 1."""

    text: str
    line: int


def cut_list(text: str, names: tuple[str, ...]) -> list[YamlItem] | None:
    """Return the items of a list that is a whole file, or is under one of some names in it; None where there is none.

    They are to be read one by one, so that one bad item costs no other.

    Example:
        >>> [item[1:] for item in cut_list("rules:\\n- text: a\\n- text: b\\n", ("rules",))]
        [(2,), (3,)]
    """
    import yaml

    try:
        _check_depth(text)
        root = yaml.compose(text, yaml_loader())
    except yaml.YAMLError as exc:
        raise _not_yaml(exc) from exc
    if isinstance(root, yaml.MappingNode):
        values = {key.value: value for key, value in root.value if isinstance(key, yaml.ScalarNode)}
        root = next((values[name] for name in names if isinstance(values.get(name), yaml.SequenceNode)), None)
    if isinstance(root, yaml.SequenceNode):
        return [YamlItem(str(yaml.serialize(node)), node.start_mark.line + 1) for node in root.value]
    return None


def _not_yaml(exc: "yaml.YAMLError") -> InvalidBlock:
    mark = getattr(exc, "problem_mark", None)
    message = getattr(exc, "problem", None) or str(exc).splitlines()[0]
    return InvalidBlock(f"is not valid YAML: {message}", mark.line if mark else 0)


def _check_depth(block: str) -> None:
    """Refuse a block that is nested too deeply, before anything recursive reads it."""
    if sum(map(block.count, _NESTING)) <= MAX_DEPTH:
        return
    import yaml

    depth = 0
    for event in yaml.parse(block, yaml_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line if event.start_mark else 0
            raise InvalidBlock(f"is nested deeper than {MAX_DEPTH} levels", line)


class _NodeReader:
    """Turns the nodes of one block into what JSON can hold, and stops at a bomb.

    PyYAML would make its own values of them first, which takes as long as parsing does; it makes what is rare.
    """

    def __init__(self, loader: "yaml.SafeLoader", most_values: int) -> None:
        self._loader, self._left = loader, most_values

    def read(self) -> Any:
        """Return the value of the block."""
        node = self._loader.get_single_node()
        return None if node is None else self._read(node, 0)

    def _read(self, node: Any, depth: int) -> Any:
        if node.id == "scalar":
            return self._read_scalar(node)
        self._left -= len(node.value)
        if self._left < 0 or depth >= MAX_DEPTH:
            raise InvalidBlock(f"expands to more than {MAX_VALUES:,} values or {MAX_DEPTH} levels")
        if node.id == "sequence":
            return [self._read(item, depth + 1) for item in node.value]
        found = {self._read_key(key): self._read(item, depth + 1) for key, item in node.value}
        return list(found) if node.tag == _SET else found

    def _read_key(self, node: Any) -> str:
        if node.id != "scalar":
            raise InvalidBlock("is not valid YAML: found unhashable key", node.start_mark.line)
        return str(self._read_scalar(node))

    def _read_scalar(self, node: Any) -> str | float | None:
        if node.tag == _TEXT:
            return as_read(node.value)
        value = self._loader.construct_object(node, deep=True)
        if isinstance(value, int):
            # A number beyond all use becomes its hexadecimal digits, so that it can be printed.
            return value if value.bit_length() <= _MAX_BITS else hex(value)[:40] + "…"
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        return None if value is None else as_read(str(value))

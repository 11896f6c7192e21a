"""The reference of the Python API, made from signatures and docstrings; docs/python-api.md calls it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import re
from collections.abc import Iterator

import memory_kb
from memory_kb import KnowledgeBase

#: The groups of the page and the modules whose methods stand in each.
GROUPS = {
    "Opening and closing": ["opened"],
    "Searching and reading": ["searching", "contexts", "reading", "browsing", "exposure"],
    "Keeping, changing, taking back": ["learning", "editing", "authoring", "examining", "capturing", "undoing"],
    "Sessions": ["sessions", "ending", "extracting", "hooking"],
    "Episodes and work in progress": ["episodes", "working", "continuing"],
    "Rules, skills and review": ["rules", "skills", "skillmoving", "reviewing", "weighing", "crediting", "claims"],
    "Lifecycle": ["lifecycle", "compacting", "maintaining"],
    "Index and health": ["indexing", "watching", "evaluating"],
    "Git, agents and other tools": ["versioning", "installing", "imports"],
    "Plans": ["running"],
}
#: Numbers of requirements mean nothing to readers of the page.
_REQUIREMENT = re.compile(r"\s*\((?:requirements §|architecture §|S\d-\d)[^)]*\)")
_NAME = re.compile(r"\b[A-Z]\w+")
_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Example):$", re.MULTILINE)


def describe_methods() -> str:
    """Return all public methods of KnowledgeBase, in their groups.

    Raises:
        LookupError: a module of methods stands in no group.
    """
    methods: dict[str, dict[str, object]] = {}
    for name in dir(KnowledgeBase):
        owner = next((one for one in KnowledgeBase.__mro__ if name in vars(one)), object)
        if not name.startswith("_") and owner is not object:
            methods.setdefault(owner.__module__.rpartition(".")[2], {})[name] = inspect.getattr_static(
                KnowledgeBase, name
            )
    missing = methods.keys() - {module for modules in GROUPS.values() for module in modules}
    if missing:
        raise LookupError(f"scripts/pythonapi.py: no group for {', '.join(sorted(missing))}")
    parts = []
    for title, modules in GROUPS.items():
        parts.append(f"### {title}\n")
        parts += [
            _describe(name, found) for module in modules for name, found in sorted(methods.get(module, {}).items())
        ]
    return "\n".join(parts)


def _describe(name: str, found: object) -> str:
    if isinstance(found, property):
        assert found.fget
        code = f"{name}: {_shorten(str(inspect.signature(found.fget).return_annotation))}"
    else:
        function = found.__func__ if isinstance(found, classmethod) else found
        assert callable(function)
        code = f"{'KnowledgeBase.' if isinstance(found, classmethod) else ''}{name}{_signature(inspect.signature(function))}"
    return f"#### {name}\n\n```text\n{code}\n```\n\n{_prose(found)}\n"


def _signature(signature: inspect.Signature) -> str:
    parts, has_star = [], False
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            parts.append("*")
        has_star = has_star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        parts.append(f"{star}{parameter.name}: {_shorten(str(parameter.annotation))}{default}")
    returned = f" -> {_shorten(str(signature.return_annotation))}"
    line = f"({', '.join(parts)}){returned}"
    return line if len(line) < 100 else f"(\n{''.join(f'    {part},{chr(10)}' for part in parts)}){returned}"


def _shorten(annotation: str) -> str:
    return annotation.replace("'", "").replace("os.PathLike[str]", "Path")


def _prose(found: object) -> str:
    """Return a docstring as Markdown, its sections as lists."""
    text = _REQUIREMENT.sub("", inspect.getdoc(found) or "")
    lines, section = [], ""
    for line in text.splitlines():
        heading = _SECTION.fullmatch(line)
        if heading:
            section = heading[1]
            lines += ["**Example:**", "", "```text"] if section == "Example" else [f"**{section}:**", ""]
        elif section == "Example":
            lines.append(line[4:])
        elif section and line.startswith("    ") and not line.startswith("     "):
            term, colon, about = line.strip().partition(": ")
            lines.append(f"- `{term}`: {about}" if colon else f"- {line.strip()}")
        elif section and line.strip():
            lines.append(f"  {line.strip()}")
        else:
            section = ""
            lines.append(line)
    return "\n".join(lines).rstrip() + ("\n```" if section == "Example" else "")


def describe_values() -> str:
    """Return the values that the methods give and take, by name."""
    return "\n".join(_describe_value(name, found) for name, found in sorted(_values().items()))


def _values() -> dict[str, type]:
    """Return the public values, and the package's own that methods and those values speak of."""
    found: dict[str, type] = {}
    left = [
        getattr(memory_kb, name) for name in memory_kb.__all__ if not name.startswith("_") and name != "KnowledgeBase"
    ]
    for name in (name for name in dir(KnowledgeBase) if not name.startswith("_")):
        method = inspect.getattr_static(KnowledgeBase, name)
        function = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
        left += _named_in(str(inspect.signature(function).return_annotation), function.__module__)
    while left:
        value = left.pop()
        if value.__name__ not in found:
            found[value.__name__] = value
            left += [other for text in _fields(value).values() for other in _named_in(text, value.__module__)]
    return found


def _named_in(annotation: str, module: str) -> Iterator[type]:
    names = _imports(module)
    for name in _NAME.findall(annotation):
        home = importlib.import_module(names.get(name, module))
        value = vars(home).get(name)
        if (
            inspect.isclass(value)
            and value.__module__.startswith("memory_kb")
            and value is not KnowledgeBase
            and _fields(value)
        ):
            yield value


@functools.cache
def _imports(module: str) -> dict[str, str]:
    """Return from where a module has its names, for type checkers alone too."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memory_kb")
    ]
    return {alias.asname or alias.name: node.module or "" for node in nodes for alias in node.names}


def _fields(value: type) -> dict[str, str]:
    if dataclasses.is_dataclass(value):
        return {field.name: _shorten(str(field.type)) for field in dataclasses.fields(value)}
    if issubclass(value, tuple):
        return {
            name: _shorten(inspect.get_annotations(value)[name].__forward_arg__)
            for name in getattr(value, "_fields", ())
        }
    return {}


def _describe_value(name: str, value: type) -> str:
    fields = "".join(f"{field}: {kind}\n" for field, kind in _fields(value).items())
    own = inspect.getdoc(value) if value.__doc__ and not value.__doc__.startswith(f"{name}(") else ""
    code = f"```text\n{fields}```\n\n" if fields else ""
    public = f"from memory_kb import {name}" if name in memory_kb.__all__ else ""
    about = _prose(value) if own else ""
    return f"#### {name}\n\n{code}{about}\n" + (f"\n`{public}`\n" if public else "")

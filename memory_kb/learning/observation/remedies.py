"""What helps a command that failed: one that makes ready what it needs, such as a service or a schema, or another form of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import Command, word_set
from memory_kb.learning.observation.failures import Failure
from memory_kb.learning.observation.forms import (
    FETCHED,
    KNOWN,
    bare,
    form_of,
    is_only_set,
    is_other_form,
    is_step_towards,
    name,
    teaches,
)
from memory_kb.learning.observation.objections import undoes
from memory_kb.learning.observation.options import flags_beside, is_green_only, is_other_job

# What a command fails with that is run in the wrong way or place, and what it fails with before it comes to where another one failed.
_WRONG_PLACE = frozenset({"missing program", "missing package", "missing script", "wrong package manager"})
_EARLY = _WRONG_PLACE | {"wrong option", "not allowed", "passing"}
#: Files that say how things are run.
CONFIGURATION = lazy_compile(
    r"(?:^|/)(?:[\w.-]*config[\w.-]*\.(?:js|ts|mjs|cjs|json|ya?ml|toml)|package\.json|pyproject\.toml|setup\.(?:cfg|py)|tox\.ini|pytest\.ini|"
    r"conftest\.py|tsconfig[\w.]*\.json|Dockerfile\S*|"
    r"(?:docker-)?compose[\w.-]*\.ya?ml|go\.(?:mod|work)|Cargo\.toml|Makefile|justfile|build\.gradle(?:\.kts)?|pom\.xml|\.env\S*|"
    r"\.\w+rc(?:\.\w+)?|\.npmrc|\.tool-versions|\.nvmrc|[\w.-]+\.nix)$|"
    r"^\.(?:github|gitlab|circleci|cargo)\b|\.gitlab-ci\.yml$"
)
# So often the same must have failed before its form is blamed.
_AGAIN = 2


class Attempt(NamedTuple):
    """A command that failed, and what had gone well before it on the same line."""

    command: Command
    failure: Failure
    seq: int
    before: tuple[Command, ...] = ()


class Step(NamedTuple):
    """What was done between a failure and a success: an edit of a file, a command that worked, or that a person spoke."""

    seq: int
    file: str = ""
    added: str = ""
    command: Command | None = None
    is_said: bool = False


@dataclass(frozen=True, slots=True)
class Fix:
    """A failure together with what made it work.

    `way` tells how: `form` where the command was to be written otherwise, `before` where another
    one had to come first, `edit` where a file had to change, `none` where nothing helped. `past` is
    the form that got past the failure, where what worked in the end has more than that.
    """

    way: str
    attempts: tuple[Attempt, ...]
    worked: Command | None = None
    steps: tuple[Step, ...] = ()
    cause: str | None = None
    seqs: tuple[int, ...] = ()
    past: Command | None = None


#: Programs that take away or only fetch: an output that names them names no remedy.
_NO_REMEDY = frozenset({"rm", "kill", "pkill", "curl", "wget", "cat", "ls", "grep", "find"})
#: What only tells something.
_ASKING = word_set("search list ls show info help status logs describe outdated why doctor version explain")
_PLAIN = 2

_SERVICE = lazy_compile(
    r"^(?:docker(?:-| )compose (?:\S+ )*(?:up|start)|docker (?:start|run)|systemctl (?:--user )?start|service \S+ start|brew services start|"
    r"pg_ctl\b|redis-server|colima start|"
    r"minikube start|supabase start|make \S*(?:up|db|services|infra|deps)\b|(?:npm|pnpm|yarn|bun)(?: run)? \S*(?:db|services|infra|up)\b|"
    r"\S*(?:start|up)[-_]\S+|podman (?:start|run))"
)
_INSTALL = lazy_compile(
    r"^(?:(?:uv (?:sync|pip install)|pip3? install|poetry install|pdm install|npm (?:ci|install)|pnpm install|yarn(?: install)?|"
    r"bundle install|apt(?:-get)? install|brew install|conda install)\b.*"
    r"(?:--extra|--all-extras|--with|--group|--dev|\[\w+|--legacy-peer-deps|-r \S*(?:dev|test|ci)\S*|lib\S+|-dev\b)|brew install \S|"
    r"apt(?:-get)? install|helm dep\S* |git submodule|git lfs|pod install|dotnet (?:tool )?restore|mix deps\.get|"
    r"rustup (?:component|target) add|playwright install|(?:go|cargo|pipx|uv tool|gem|dotnet tool|composer global|asdf|mise|krew) install \S|"
    r"(?:npm|pnpm) (?:i|install|add) (?:\S+ )*(?:-g|--global)\b|mix (?:local|archive)\.|helm (?:plugin install|repo add)|pecl install|"
    r"ansible-galaxy (?:\S+ )?install|"
    r"^\S*(?:install|setup|bootstrap)[\w.-]*\.(?:sh|py)\b|^make (?:install|setup|bootstrap|tools|deps)\b)"
)
_SCHEMA = lazy_compile(
    r"\bmigrate\b|\balembic (?:upgrade|stamp)|\bupgrade heads?\b|prisma (?:db push|migrate)|createdb\b|createuser\b|db:(?:create|"
    r"migrate|setup|push|reset|schema)|sqlx (?:database|migrate)|diesel (?:setup|migration)|goose\b|flyway\b"
)
_GENERATE = lazy_compile(
    r"\bgenerate\b|\bgen(?:[:_-]\w+)?\b|\bcodegen\b|\bprotoc\b|\bbuf\b|sqlx prepare|\bmake proto\b"
)
_CLEAN = lazy_compile(
    r"\bclean\b|--clear-?cache|--no-cache|rm -rf \S*(?:cache|\.next|dist|build|target|node_modules/\.)|cache (?:clean|clear|"
    r"purge)"
)
_SETTINGS = lazy_compile(r"^(?:cp \S*env\S* \S*\.env|source|direnv allow)")
_SOURCED = lazy_compile(r"^(?:source \S|\. \S|module load|(?:conda|micromamba) activate)")
_LOGIN = lazy_compile(r"^\S+ (?:\S+ )?(?:login|signin)\b|^kinit\b")
_VERSION = lazy_compile(r"^(?:(?:nvm|fnm|pyenv|rustup|asdf|mise|corepack|goenv|uv python)\b|sdk use\b)")
#: What helps against a sort of failure.
HELP = {
    "missing service": (_SERVICE,),
    "missing package": (_INSTALL, _GENERATE, _SOURCED),
    "missing program": (_INSTALL, _SOURCED),
    "missing schema": (_SCHEMA,),
    "stale code": (_GENERATE, _CLEAN),
    "missing setting": (_SETTINGS,),
    "wrong version": (_VERSION,),
    "not signed in": (_LOGIN,),
    "wrong package manager": (lazy_compile(r"^corepack\b|lockfile"),),
    "wrong module system": (_CLEAN,),
    "other": (_GENERATE, _VERSION, _SERVICE, _SCHEMA, _SOURCED),
}
#: What makes ready what another command needs.
_PREPARES = lazy_compile(
    r"\b(?:dep(?:s|endenc(?:y|ies))?|init|import|prepare|build|install|restore|setup|bootstrap|generate|gen|codegen|sync|fetch|pull|download|link|"
    r"seed|migrate|configure|compile|login|start|up|trust|update|get)\b|[-_:](?:deps|init|import|prepare|gen|setup|db|up|start)\b"
)
# What makes code that is not kept, where a package is not found: that packages are to be installed is known.
_BUILDS = lazy_compile(
    r"^(?!docker|podman)\S+ (?:\S+ )*?(?:[\w-]+[:_-])?(?:prepare|build|compile|codegen|bootstrap)(?:[:_-]\S+)?(?: |$)"
)
#: What helps against a sort of failure where nothing else was done before the same went well.
ONLY_HELP = {"other": _PREPARES, "missing package": _BUILDS}


def is_named(command: Command, failed: Command, failure: Failure) -> bool:
    """Tell whether what a failure said names this command, and not every user of the tool knows it."""
    text = bare(command)
    if command.family == failed.family or KNOWN.match(text) or FETCHED.search(command.shown) or _only_tells(command):
        return False
    if teaches(command) and any(f"{text} ".startswith(f"{one} ") for one in failure.advice):
        return True
    return any(_is_meant(command, hint.split()) for hint in failure.hints)


def _only_tells(command: Command) -> bool:
    return command.program in _NO_REMEDY or command.family.rpartition(" ")[2] in _ASKING


def _is_meant(command: Command, hint: list[str]) -> bool:
    """Tell whether the words after `run` in a message are those of a command, as far as they go on."""
    words = list(command.words)
    hint = [hint[0] if hint[0].startswith("./") else hint[0].rpartition("/")[2], *hint[1:]]
    same = next(
        (place for place, (one, other) in enumerate(zip(words, hint, strict=False)) if one != other),
        min(len(words), len(hint)),
    )
    return same >= max(_PLAIN, len(command.family.split())) or (same == 1 and words[0].startswith("./"))


def is_telling(attempt: Attempt) -> bool:
    """Tell whether a failure teaches something by itself, whatever was run before it on its line."""
    return teaches(attempt.command) or attempt.failure.sort == "missing program"


def tells_form(attempt: Attempt, others: tuple[Attempt, ...], worked: Command) -> bool:
    """Tell whether the form of a command was what made it fail.

    What is known of no sort must have failed again, or have worked with nothing but a setting more.
    """
    sort, failed = attempt.failure.sort, attempt.command
    if sort in ("change", "passing", "missing schema", "stale code") or is_other_job(failed, worked):
        return False
    if set(worked.runners) - set(failed.runners) == {"sudo"}:
        return False
    is_less = worked.flags < failed.flags and form_of(worked._replace(words=())) == form_of(failed._replace(words=()))
    times = sum(one.failure.pattern == attempt.failure.pattern for one in others)
    return (
        (times >= _AGAIN and not is_less) or is_only_set(failed, worked) if sort in ("other", "wrong option") else True
    )


def is_led(attempt: Attempt, step: Command) -> bool:
    """Tell whether a command got past a failure with nothing but what stands in front of it."""
    failed = attempt.command
    is_of_setup = attempt.failure.sort not in ("change", "passing") and set(step.runners) - set(failed.runners) != {
        "sudo"
    }
    return is_of_setup and not flags_beside(step, failed) and not is_green_only(step, failed)


def names_setting(attempt: Attempt, worked: Command) -> bool:
    """Tell whether an output names a setting that was then given, and nothing else is different."""
    more = {one.partition("=")[0] for one in set(worked.settings) - set(attempt.command.settings)}
    return is_only_set(attempt.command, worked) and not more.isdisjoint(attempt.failure.settings)


def by_sort(attempts: tuple[Attempt, ...]) -> list[tuple[Attempt, ...]]:
    """Return the attempts that failed for the same sort of reason together."""
    groups: dict[str, list[Attempt]] = {}
    for one in attempts:
        groups.setdefault("missing" if one.failure.sort in _WRONG_PLACE else one.failure.sort, []).append(one)
    return [tuple(group) for group in groups.values()]


def find_step(attempt: Attempt, attempts: tuple[Attempt, ...], worked: Command) -> Attempt | None:
    """Return the next form of a command, if it is on the way to what worked and failed only where the first one never came to."""
    later = [one for one in attempts if one.seq > attempt.seq]
    step = next((one for one in later if is_other_form(attempt.command, one.command)), None)
    is_same = is_only_set(attempt.command, worked) and step is not None and form_of(step.command) != form_of(worked)
    if step is None or is_same or any(one.failure.pattern == attempt.failure.pattern for one in later):
        return None
    return step if step.failure.sort not in _EARLY and is_step_towards(step.command, attempt.command, worked) else None


def gist(failed: Command, cure: Command) -> object:
    """Return what a cure comes to: how the command is run, or the options that it is given."""
    return name(cure) if name(cure) != name(failed) else flags_beside(cure, failed)


def means_of(failed: Command, cure: Command) -> list[str]:
    """Return the options, settings and runners that a command has and another one has not.

    Example:
        >>> from memory_kb.learning.observation.commandlines import parse_line
        >>> failed, cure = (parse_line(line)[0] for line in ("kit a", "B=1 npx kit --c a"))
        >>> means_of(failed, cure)
        ['--c', 'B', 'npx']
    """
    settings = [one.partition("=")[0] for one in cure.settings if one not in failed.settings]
    return [*sorted(flags_beside(cure, failed)), *settings, *(one for one in cure.runners if one not in failed.runners)]


def words_for(fix: Fix) -> list[str]:
    """Return the words that a fix has and the failure had not."""
    cure = fix.past or fix.worked
    if fix.way == "form" and cure:
        return means_of(fix.attempts[0].command, cure)
    return [" ".join(step.command.words[:2]) for step in fix.steps if step.command]


def is_undone(fix: Fix, command: Command) -> bool:
    """Tell whether a command takes back what a fix did."""
    return any(undoes(command, [step.file] if step.file else [], step.command) for step in fix.steps)

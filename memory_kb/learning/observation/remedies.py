"""Commands that make ready what another one needs: services, packages, schemas, generated code."""

from __future__ import annotations

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import Command, word_set
from memory_kb.learning.observation.failures import Failure
from memory_kb.learning.observation.forms import FETCHED, KNOWN, bare, teaches

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
_GENERATE = lazy_compile(r"\bgenerate\b|\bgen(?:[:_-]\w+)?\b|\bcodegen\b|\bprotoc\b|\bbuf\b|sqlx prepare|\bmake proto\b")
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
_BUILDS = lazy_compile(r"^(?!docker|podman)\S+ (?:\S+ )*?(?:[\w-]+[:_-])?(?:prepare|build|compile|codegen|bootstrap)(?:[:_-]\S+)?(?: |$)")
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
    same = next((place for place, (one, other) in enumerate(zip(words, hint, strict=False)) if one != other), min(len(words), len(hint)))
    return same >= max(_PLAIN, len(command.family.split())) or (same == 1 and words[0].startswith("./"))

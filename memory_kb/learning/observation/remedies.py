"""Commands that make ready what another one needs: services, packages, schemas, generated code."""

from __future__ import annotations

import re

_SERVICE = re.compile(
    r"^(?:docker(?:-| )compose (?:\S+ )*(?:up|start)|docker (?:start|run)|systemctl (?:--user )?start|service \S+ start|brew services start|"
    r"pg_ctl\b|redis-server|colima start|"
    r"minikube start|supabase start|make \S*(?:up|db|services|infra|deps)\b|(?:npm|pnpm|yarn|bun)(?: run)? \S*(?:db|services|infra|up)\b|"
    r"\S*(?:start|up)[-_]\S+|podman (?:start|run))"
)
_INSTALL = re.compile(
    r"^(?:(?:uv (?:sync|pip install)|pip3? install|poetry install|pdm install|npm (?:ci|install)|pnpm install|yarn(?: install)?|"
    r"bundle install|apt(?:-get)? install|brew install|conda install)\b.*"
    r"(?:--extra|--all-extras|--with|--group|--dev|\[\w+|--legacy-peer-deps|-r \S*(?:dev|test|ci)\S*|lib\S+|-dev\b)|brew install \S|"
    r"apt(?:-get)? install|helm dep\S* |git submodule|git lfs|pod install|dotnet (?:tool )?restore|mix deps\.get|"
    r"rustup (?:component|target) add|playwright install|"
    r"^\S*(?:install|setup|bootstrap)[\w.-]*\.(?:sh|py)\b|^make (?:install|setup|bootstrap|tools|deps)\b)"
)
_SCHEMA = re.compile(
    r"\bmigrate\b|\balembic (?:upgrade|stamp)|\bupgrade heads?\b|prisma (?:db push|migrate)|createdb\b|createuser\b|db:(?:create|"
    r"migrate|setup|push|reset|schema)|sqlx (?:database|migrate)|diesel (?:setup|migration)|goose\b|flyway\b"
)
_GENERATE = re.compile(r"\bgenerate\b|\bgen(?:[:_-]\w+)?\b|\bcodegen\b|\bprotoc\b|\bbuf\b|sqlx prepare|\bmake proto\b")
_CLEAN = re.compile(
    r"\bclean\b|--clear-?cache|--no-cache|rm -rf \S*(?:cache|\.next|dist|build|target|node_modules/\.)|cache (?:clean|clear|"
    r"purge)"
)
_SETTINGS = re.compile(r"^(?:cp \S*env\S* \S*\.env|source|direnv allow)")
_VERSION = re.compile(r"^(?:(?:nvm|fnm|pyenv|rustup|asdf|mise|corepack|goenv|uv python)\b|sdk use\b)")
#: What helps against a sort of failure.
HELP = {
    "missing service": (_SERVICE,),
    "missing package": (_INSTALL, _GENERATE),
    "missing program": (_INSTALL,),
    "missing schema": (_SCHEMA,),
    "stale code": (_GENERATE, _CLEAN),
    "missing setting": (_SETTINGS,),
    "wrong version": (_VERSION,),
    "wrong package manager": (re.compile(r"^corepack\b|lockfile"),),
    "wrong module system": (_CLEAN,),
    "other": (_GENERATE, _VERSION, _SERVICE, _SCHEMA),
}
#: What makes ready what another command needs.
PREPARES = re.compile(
    r"\b(?:dep(?:s|endenc(?:y|ies))?|init|import|prepare|build|install|restore|setup|bootstrap|generate|gen|codegen|sync|fetch|pull|download|link|"
    r"seed|migrate|configure|compile|login|start|up|trust|update|get)\b|[-_:](?:deps|init|import|prepare|gen|setup|db|up|start)\b"
)

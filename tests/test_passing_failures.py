"""What is over when it is done, whatever stands on its line, teaches nothing."""

from __future__ import annotations

import pytest
from chaining import learned

NOTHING = {
    "typo in target": [
        ("-", "kubectl get pods -n prview", 'Error from server (NotFound): namespaces "prview" not found'),
        ("+", "kubectl get pods -n preview", "web-1"),
    ],
    "code error in chain": [
        ("-", "poetry install -q && poetry run pytest", "E   AssertionError: assert 1 == 2\n1 failed"),
        ("E", "a.py", "x"),
        ("+", "poetry install -q && poetry run pytest", "1 passed"),
    ],
    "force": [
        ("-", "composer install && php artisan migrate", "ERROR: Application In Production! command cancelled"),
        ("+", "composer install && php artisan migrate --force", "ok"),
    ],
    "new dep": [
        ("-", "poetry run pytest", "ModuleNotFoundError: No module named 'freezegun'"),
        ("+", "poetry add --group dev freezegun && poetry run pytest", "3 passed"),
    ],
    "fresh": [("-", "composer test", "sh: 1: phpunit: not found"), ("+", "composer install && composer test", "OK")],
    "wait": [
        ("-", "curl -f localhost:8000/health", "curl: (7) Failed to connect: Connection refused"),
        ("+", "sleep 5 && curl -f localhost:8000/health", "ok"),
    ],
    "other work between": [
        ("-", "terraform validate", "Error: Unsupported argument"),
        ("E", "main.tf", "x"),
        ("+", "terraform fmt && terraform validate", "Success"),
    ],
    "mix compile": [
        ("-", "mix test", "** (CompileError) lib/a.ex:3: undefined function foo/0"),
        ("E", "lib/a.ex"),
        ("+", "mix format && mix test", "ok"),
    ],
    "push rejected": [
        (
            "-",
            "git commit -qam x && git push",
            " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs",
        ),
        ("+", "git pull --rebase && git push", "ok"),
    ],
    "flag unrelated dirs": [
        ("-", "docker build -t a . && docker push reg/a", "denied: requested access to the resource is denied"),
        ("+", "docker build -t reg/b . && docker push reg/b", "ok"),
    ],
    "git hint": [
        (
            "-",
            "git push",
            "fatal: The current branch x has no upstream branch.\nTo push, use\n\n    git push --set-upstream origin x",
        ),
        ("+", "git push --set-upstream origin x", "ok"),
    ],
    "known init": [
        (
            "-",
            "terraform plan",
            "Error: Inconsistent dependency lock file\nrun terraform init to fix",
        ),
        ("+", "terraform init && terraform plan", "ok"),
    ],
    "rake chain platform": [
        (
            "-",
            "bundle install && bundle exec rake assets",
            "error: ffi requires Ruby version >= 3.2. The current ruby version is 3.0",
        ),
        ("+", "rbenv shell 3.2.2 && bundle install && bundle exec rake assets", "done"),
    ],
    "deno perms": [
        (
            "-",
            "deno task sync",
            'error: NotCapable: Requires env access to "TOKEN", run again with the --allow-env flag',
        ),
        ("+", "deno run --allow-env sync.ts", "ok"),
    ],
    "tofu chain": [
        (
            "-",
            "cd env/dev && tofu plan -out p && tofu apply p",
            'Error: Backend initialization required: please run "tofu init"',
        ),
        ("+", "cd env/dev && tofu init && tofu plan -out p && tofu apply p", "ok"),
    ],
    "rebuild": [
        ("-", "docker compose build api && docker compose run api pytest", "E   AssertionError: 1 == 2\n1 failed"),
        ("E", "a.py"),
        ("+", "docker compose build --no-cache api && docker compose run api pytest", "1 passed"),
    ],
    "retry": [
        (
            "-",
            "gradle test",
            "> Task :test FAILED\nCartTest > adds FAILED\n   java.lang.AssertionError: expected 1 but was 2",
        ),
        ("E", "Cart.java"),
        ("+", "gradle clean test", "ok"),
    ],
    "look between": [
        ("-", "swift build", "error: cannot find 'Foo' in scope"),
        ("+", "ls Sources && cat Package.swift"),
        ("E", "Sources/Foo.swift"),
        ("+", "swift build", "ok"),
    ],
    "quote in commit": [
        ("-", "git commit -m 'run make setup first' && make test", "make: *** [test] Error 1\nFAIL: x"),
        ("E", "x"),
        ("+", "git commit -m 'run make setup first' && make test", "ok"),
    ],
    "unrelated install": [
        ("-", "pytest -q", "E   ValueError: bad\n1 failed"),
        ("+", "brew install jq && pytest -q", "1 passed"),
    ],
    "or": [
        ("-", "kubectl apply -f a.yaml || kubectl create -f a.yaml", "error: the namespace is missing"),
        ("+", "kubectl create ns x && kubectl apply -f a.yaml", "ok"),
    ],
    "psql": [
        ("-", "psql app -c 'select 1'", "psql: error: connection to server refused"),
        ("+", "psql -h db app -c 'select 1'", "1"),
    ],
    "help text": [
        ("-", "composer req foo/bar", "Could not find package foo/bar. error. Try composer search foo"),
        ("+", "composer search foo && composer req foo/baz", "ok"),
    ],
    "words with run": [
        ("-", "make e2e", "Error: tests that run in parallel failed with timeouts"),
        ("+", "docker ps && make e2e", "ok"),
    ],
    "heredoc": [
        ("-", "python3 - <<'EOF'\nprint(1/0)\nEOF", "ZeroDivisionError: division by zero"),
        ("+", "python3 - <<'EOF'\nprint(1)\nEOF", "1"),
    ],
    "alembic fixed file": [
        ("-", "alembic upgrade head && pytest -q", "FAILED: Can't locate revision identified by 'abc'"),
        ("E", "versions/a.py"),
        ("+", "alembic upgrade head && pytest -q", "ok"),
    ],
    "just typo": [
        ("-", "just biuld && just test", "error: Justfile does not contain recipe `biuld`.\nDid you mean `build`?"),
        ("+", "just build && just test", "ok"),
    ],
    "edit in the middle": [
        ("-", "terraform apply -auto-approve", "Error: Missing required argument region"),
        ("E", "main.tf"),
        ("+", "terraform init && terraform apply -auto-approve", "ok"),
    ],
    "echo": [
        ("-", "echo start; ./run.sh; echo done $?", "ERROR: cannot open config"),
        ("+", "cp run.env.sample .env && ./run.sh", "ok"),
    ],
}


@pytest.mark.parametrize("steps", NOTHING.values(), ids=NOTHING)
def test_what_is_over_when_it_is_done_is_not_kept(steps: list[tuple[str, ...]]) -> None:
    assert learned(*steps) == []

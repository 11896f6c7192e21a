"""An episode blames and shows the command of a line that failed, and finds what put it right."""

from __future__ import annotations

import pytest

from memory_kb.learning.episodic.trace import Trace, trace_session
from memory_kb.notes.events import Event

#: Commands, whether they went well and what they wrote; which is blamed, for what, and what the resolution says of it.
CASES = {
    "missing script": (
        [
            (
                "npm run tets",
                False,
                'npm error Missing script: "tets"\nnpm error To see a list of scripts, run:\nnpm error   npm run',
            ),
            ("npm run test", True, "3 passed"),
        ],
        ("npm run tets", "Missing script", ["npm run test` went through"]),
    ),
    "push": (
        [
            (
                "git add -A && git commit -qm x && git push",
                False,
                " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'o'",
            ),
            ("git pull --rebase -q && git push", True, ""),
        ],
        ("git push", "rejected", ["ran `git pull --rebase -q`", "`git push` went through"]),
    ),
    "hook": (
        [
            ("git commit -qm x && git push", False, "husky - pre-commit hook exited with code 1 (error)"),
            ("git commit -qm x && git push", True, ""),
        ],
        ("git commit -qm x", "husky", [""]),
    ),
    "poetry chain": (
        [
            (
                "poetry install && poetry run alembic upgrade head",
                False,
                "sqlalchemy.exc.OperationalError: connection refused",
            ),
            ("docker compose up -d db && poetry run alembic upgrade head", True, ""),
        ],
        ("poetry run alembic upgrade head", "OperationalError", ["docker compose up -d db"]),
    ),
    "seed option": (
        [
            ("php artisan db:seed", False, "Error: Class DatabaseSeeder does not exist"),
            ("php artisan db:seed --class=DemoSeeder", True, "done"),
        ],
        ("php artisan db:seed", "DatabaseSeeder", ["--class=DemoSeeder` went through instead"]),
    ),
    "corrected name then more": (
        [
            ("terraform workspace select prodd", False, 'Workspace "prodd" doesn\'t exist.'),
            ("terraform workspace select prod", True, ""),
            ("terraform fmt", True, ""),
            ("terraform workspace select prod", True, ""),
        ],
        ("terraform workspace select prodd", "prodd", ["`terraform workspace select prod` went through instead"]),
    ),
    "case of a scheme": (
        [
            (
                "xcodebuild -scheme Runlog -destination 'platform=iOS' build",
                False,
                'xcodebuild: error: The project named "RunLog" does not contain a scheme named "Runlog".',
            ),
            ("xcodebuild -scheme RunLog -destination 'platform=iOS' build", True, "ok"),
        ],
        ("xcodebuild -scheme Runlog -destination 'platform=iOS' build", "scheme", ["RunLog", "instead"]),
    ),
    "java home": (
        [
            ("./gradlew test", False, "* What went wrong:\n> error: invalid source release: 21"),
            ("java -version 2>&1", True, "17"),
            ("export JAVA_HOME=/opt/jdk21 && ./gradlew test", True, "ok"),
        ],
        ("./gradlew test", "invalid source release", ["JAVA_HOME=/opt/jdk21 ./gradlew test` went through"]),
    ),
    "tried in vain": (
        [
            ("composer install", False, "error: ext-gd is missing from your system"),
            ("composer clear-cache && composer install", False, "error: ext-gd is missing from your system"),
            ("apt-get install -y php-gd && composer install", True, "ok"),
        ],
        ("composer install", "ext-gd", ["ran `apt-get install -y php-gd`; then"]),
    ),
    "pytest in chain": (
        [
            ("pytest -q && git push", False, "E   KeyError: 'id'\n1 failed, 3 passed in 0.2s"),
            ("pytest -q && git push", True, "4 passed"),
        ],
        ("pytest -q", "KeyError", ["pytest -q` went through"]),
    ),
    "other job": (
        [
            ("python import.py march.csv", False, "ValueError: bad row 7 in march.csv"),
            ("python import.py april.csv", True, "ok"),
        ],
        ("python import.py march.csv", "bad row", None),
    ),
    "push still rejected": (
        [
            ("git commit -qm x && git push", False, " ! [rejected] main -> main (fetch first)"),
            ("git commit --amend -qm y", True, ""),
        ],
        ("git push", "rejected", None),
    ),
    "help": (
        [
            ("terraform apply plan.out", False, "Error: Saved plan is stale"),
            ("terraform apply plan.out --help", True, "Usage"),
        ],
        ("terraform apply plan.out", "stale", None),
    ),
    "gradle task": (
        [
            (
                "./gradlew integTest && git push",
                False,
                "FAILURE: Build failed with an exception.\n* What went wrong:\nTask 'integTest' not found in root project 'x'.",
            ),
            ("./gradlew integrationTest && git push", True, "ok"),
        ],
        ("./gradlew integTest", "integTest", ["./gradlew integrationTest"]),
    ),
    "helm then kubectl": (
        [
            (
                "helm upgrade web charts/web && kubectl rollout status deploy/web",
                False,
                'error: deployment "web" exceeded its progress deadline',
            ),
            ("kubectl set resources deploy/web --limits=memory=1Gi && kubectl rollout status deploy/web", True, "ok"),
        ],
        ("kubectl rollout status deploy/web", "progress deadline", ["kubectl set resources"]),
    ),
    "ansible inventory": (
        [
            (
                "ansible-playbook -i inv/stagin site.yml",
                False,
                "ERROR! the playbook inventory inv/stagin does not exist",
            ),
            ("ansible-playbook -i inv/staging site.yml", True, "ok=3"),
        ],
        ("ansible-playbook -i inv/stagin site.yml", "inv/stagin", ["inv/staging"]),
    ),
    "psql and seed": (
        [
            (
                "createdb app_test && mix ecto.migrate",
                False,
                'createdb: error: database creation failed: ERROR:  database "app_test" already exists',
            ),
            ("mix ecto.migrate", True, "ok"),
        ],
        ("createdb app_test", "already exists", None),
    ),
    "swift env": (
        [
            ("swift test --filter NetTests", False, "error: missing API_HOST"),
            ("API_HOST=localhost swift test --filter NetTests", True, "Test Suite passed"),
        ],
        ("swift test --filter NetTests", "API_HOST", ["API_HOST=localhost swift test"]),
    ),
    "bundle audit option": (
        [
            (
                "bundle exec rails db:prepare",
                False,
                "ActiveRecord::NoEnvironmentInSchemaError: Environment data not found",
            ),
            ("bundle exec rails db:prepare --trace", True, "ok"),
        ],
        ("bundle exec rails db:prepare", "Environment data", ["--trace"]),
    ),
    "kubectl ctx": (
        [
            ("kubectl --context prd get pods && ./notify.sh", False, 'error: context "prd" does not exist'),
            ("kubectl --context prod get pods && ./notify.sh", True, "ok"),
        ],
        ("kubectl --context prd get pods", "prd", ["--context prod"]),
    ),
    "terraform fmt chain": (
        [
            (
                "terraform fmt -check && terraform validate && git push",
                False,
                "! [rejected] main -> main (non-fast-forward)",
            ),
            ("git pull --rebase && git push", True, ""),
        ],
        ("git push", "rejected", ["git pull --rebase"]),
    ),
    "other test": (
        [
            ("composer test -- --filter CartTest", False, "Failed asserting that 1 is 2.\nFAILURES!"),
            ("composer test -- --filter UserTest", True, "OK"),
        ],
        ("composer test -- --filter CartTest", "asserting", None),
    ),
    "playbook": (
        [
            ("ansible-playbook a.yml", False, "fatal: [web1]: FAILED! => no space left"),
            ("ansible-playbook b.yml", True, "ok=1"),
        ],
        ("ansible-playbook a.yml", "no space", None),
    ),
}


def traced(*steps: tuple[str, bool, str]) -> Trace:
    events = [Event(session="s", seq=1, role="user", content="Look into it, please.")]
    for number, (command, ok, output) in enumerate(steps):
        call = {"session": "s", "tool": "Bash", "call_id": str(number)}
        events.append(Event(type="tool_call", args={"command": command}, **call))  # type: ignore[arg-type]
        events.append(Event(type="tool_result", ok=ok, content=output, error=None if ok else output, **call))  # type: ignore[arg-type]
    (trace,) = trace_session("s", events)
    return trace


@pytest.mark.parametrize(("steps", "wanted"), CASES.values(), ids=CASES)
def test_what_failed_and_what_put_it_right(
    steps: list[tuple[str, bool, str]], wanted: tuple[str, str, list[str] | None]
) -> None:
    blamed, message, words = wanted
    (mishap,) = traced(*steps).mishaps
    assert mishap.shown == blamed
    assert message in f"{mishap.fault.type}: {mishap.fault.message}"
    assert (mishap.resolution is None) == (words is None), mishap.resolution
    assert all(word in (mishap.resolution or "") for word in words or ())


def test_a_wrong_try_is_left_when_what_it_was_for_went_well() -> None:
    first, tried = traced(
        ("npm ci", False, "npm error ModuleNotFoundError: No module named 'distutils'"),
        (
            "xcode-select --install; npm ci",
            False,
            "xcode-select: error: already installed\nnpm error ModuleNotFoundError: No module named 'distutils'",
        ),
        ("python3 -m pip install --user setuptools && npm ci", False, "error: externally-managed-environment"),
        ("brew install python-setuptools && npm ci", True, "added 812 packages"),
    ).mishaps
    assert (first.shown, first.count) == ("npm ci", 2)
    assert first.resolution == "ran `brew install python-setuptools`; then `npm ci` went through"
    assert tried.shown == "python3 -m pip install --user setuptools"
    assert tried.is_left


@pytest.mark.parametrize(
    ("command", "ok", "output", "line"),
    [
        ("git add -A && git commit -qm x && git push", True, "", "git commit -qm x && git push"),
        (
            "git commit -qm x && git push && ./deploy.sh",
            False,
            "! [rejected] main -> main (fetch first)",
            "git commit -qm x && git push",
        ),
        (
            "cd web && npm run build && ./deploy.sh",
            False,
            "Error: the token has expired",
            "npm run build && ./deploy.sh",
        ),
        ("mkdir -p out; make all", True, "", "make all"),
        ('grep -rn "postgres\\|mysql" src | head -3', True, "x", "look at"),
        (
            "docker compose up -d db && uv run pytest -q | tail -3",
            True,
            "3 passed",
            "docker compose up -d db && uv run pytest -q",
        ),
    ],
)
def test_the_log_shows_what_was_run_up_to_what_failed(command: str, ok: bool, output: str, line: str) -> None:
    assert traced((command, ok, output)).steps[0].action == line

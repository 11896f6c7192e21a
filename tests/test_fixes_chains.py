"""What was put right on a line of several commands is learned of the one that failed and of the one that helped."""

from __future__ import annotations

import pytest
from chaining import learned

HELPED = {
    "gradle JAVA_HOME": (
        [
            (
                "-",
                "./gradlew test --tests CartTest",
                "* What went wrong:\nExecution failed for task ':compileJava'.\n> error: invalid source release: 21",
            ),
            ("+", "JAVA_HOME=/opt/jdk-21 ./gradlew test --tests CartTest", "ok"),
        ],
        ("`./gradlew test` needs `JAVA_HOME=/opt/jdk-21`", "invalid source release: 21"),
    ),
    "helm dep chained": (
        [
            (
                "-",
                "helm lint charts/web",
                "Error: found in Chart.yaml, but missing in charts/ directory: redis\nrun `helm dependency build charts/web`",
            ),
            ("+", "helm dependency build charts/web && helm lint charts/web", "1 chart(s) linted, 0 chart(s) failed"),
        ],
        ("Run `helm dependency build charts/web` before `helm lint`",),
    ),
    "poetry run alembic": (
        [
            (
                "-",
                "poetry run alembic upgrade head",
                "sqlalchemy.exc.OperationalError: could not connect to server: Connection refused",
            ),
            (
                "+",
                "docker compose up -d db && sleep 3 && poetry run alembic upgrade head",
                "INFO  [alembic.runtime.migration] Running upgrade",
            ),
        ],
        ("Run `docker compose up -d db` before `poetry run alembic upgrade`",),
    ),
    "bundle config": (
        [
            (
                "-",
                "bundle exec rspec",
                "An error occurred while installing pg\nPG::ConnectionBad: could not connect to server: Connection refused",
            ),
            ("+", "brew services start postgresql@16; bundle exec rspec", "12 examples, 0 failures"),
        ],
        ("`brew services start postgresql@16`", "Connection refused"),
    ),
    "mix advised": (
        [
            (
                "-",
                "mix test",
                '** (Mix) Can\'t continue due to errors on dependencies\n* jason: the dependency is not available, run "mix deps.get"',
            ),
            ("+", "mix deps.get && mix test", "12 tests, 0 failures"),
        ],
        ("Run `mix deps.get` before `mix test`",),
    ),
    "composer platform": (
        [
            (
                "-",
                "composer install",
                "error: root composer.json requires php ^8.3 but your php version (8.1.2) does not satisfy that requirement.",
            ),
            ("+", "PATH=/opt/php8.3/bin:$PATH composer install", "Generating autoload files"),
        ],
        ("composer install",),
    ),
    "az login": (
        [
            (
                "-",
                "terraform plan -out p",
                "Error: building account: could not acquire access token to parse claims: please run 'az login' to setup account.",
            ),
            ("+", "az login --use-device-code", "[]"),
            ("+", "terraform plan -out p", "Plan: 1 to add"),
        ],
        ("Run `az login --use-device-code` before `terraform plan`",),
    ),
    "kubectl context chain": (
        [
            ("-", "helm diff upgrade web charts/web && ./scripts/rollout.sh staging", 'Error: plugin "diff" not found'),
            ("+", "helm plugin install databus23/diff", "Installed"),
            ("+", "helm diff upgrade web charts/web && ./scripts/rollout.sh staging", "ok"),
        ],
        ("Run `helm plugin install databus23/diff` before `helm diff`",),
    ),
    "swift wrong platform chain": (
        [
            ("-", "docker build -t api:1 . && docker run --rm api:1 --version", "exec /api: exec format error"),
            ("+", "docker build --platform linux/arm64 -t api:1 . && docker run --rm api:1 --version", "1.0"),
        ],
        ("`--platform linux/arm64`", "exec format error"),
    ),
    "cross-build in chain": (
        [
            (
                "-",
                "go build -o srv ./cmd/srv && scp srv box:/opt && ssh box /opt/srv -v",
                "bash: /opt/srv: cannot execute binary file: Exec format error",
            ),
            ("+", "GOOS=linux GOARCH=amd64 go build -o srv ./cmd/srv && scp srv box:/opt && ssh box /opt/srv -v", "v1"),
        ],
        ("GOOS=linux GOARCH=amd64",),
    ),
    "ansible vault chain": (
        [
            ("-", "cd infra && ansible-playbook site.yml", "ERROR! Attempting to decrypt but no vault secrets found"),
            ("+", "cd infra && ansible-playbook --vault-id dev@vault site.yml", "ok=3"),
        ],
        ("`--vault-id dev@vault`",),
    ),
    "unquoted advice": (
        [
            ("-", "make e2e", "Error: browser not downloaded. To get it run playwright install chromium and try again"),
            ("+", "npx playwright install chromium && make e2e", "9 passed"),
        ],
        ("Run `npx playwright install chromium` before `make e2e`",),
    ),
    "go install": (
        [
            ("-", "make proto", "protoc-gen-go: program not found or is not executable\nmake: *** [proto] Error 1"),
            ("+", "go install google.golang.org/protobuf/cmd/protoc-gen-go@latest && make proto", "ok"),
        ],
        ("go install google.golang.org/protobuf/cmd/protoc-gen-go@latest", "before `make proto`"),
    ),
    "token expired": (
        [
            ("-", "./scripts/publish.sh beta", "error: access token has expired (401)"),
            ("+", "vault login -method=oidc", "Success"),
            ("+", "./scripts/publish.sh beta", "published"),
        ],
        ("Run `vault login -method=oidc` before `./scripts/publish.sh`",),
    ),
    "cure is the last of a chain": (
        [
            (
                "-",
                "bin/rails test",
                "ActiveRecord::PendingMigrationError: Migrations are pending. To resolve this, run:\n        bin/rails db:migrate RAILS_ENV=test",
            ),
            ("+", "docker compose up -d mail && bin/rails db:migrate RAILS_ENV=test", "== migrated"),
            ("+", "bin/rails test", "3 runs"),
        ],
        ("Run `bin/rails db:migrate RAILS_ENV=test` before `bin/rails test`",),
    ),
    "bazel via chain": (
        [
            (
                "-",
                "bazel build //app:bin && ./tools/smoke.sh",
                "ERROR: Error loading '@rules_jvm//': JAVA_HOME must be set",
            ),
            ("+", "export JAVA_HOME=/opt/jdk-21; bazel build //app:bin && ./tools/smoke.sh", "ok"),
        ],
        ("JAVA_HOME=/opt/jdk-21",),
    ),
    "cdk login": (
        [
            (
                "-",
                "npx cdk deploy Api",
                "Error: Need to perform AWS calls for account 1, but the current credentials have expired",
            ),
            ("+", "aws sso login --profile dev && npx cdk deploy Api", "✅ Api"),
        ],
        ("Run `aws sso login --profile dev` before `npx cdk",),
    ),
    "flutter pub": (
        [
            (
                "-",
                "flutter test",
                "Error: Could not find package `freezed`. Run `dart run build_runner build` to generate the files.",
            ),
            ("+", "dart run build_runner build --delete-conflicting-outputs && flutter test", "All tests passed!"),
        ],
        ("dart run build_runner build",),
    ),
    "dotnet tool": (
        [
            (
                "-",
                "dotnet ef database update",
                "Could not execute because the specified command or file was not found: dotnet-ef: command not found",
            ),
            ("+", "dotnet tool restore"),
            ("+", "dotnet ef database update", "Done."),
        ],
        ("Run `dotnet tool restore` before `dotnet ef",),
    ),
    "pulumi env": (
        [
            ("-", "pulumi up --yes", "error: PULUMI_CONFIG_PASSPHRASE must be set"),
            ("+", "PULUMI_CONFIG_PASSPHRASE_FILE=.pass pulumi up --yes", "done"),
        ],
        ("PULUMI_CONFIG_PASSPHRASE_FILE",),
    ),
    "last of three named": (
        [
            (
                "-",
                "cargo test -p api",
                "error: environment variable `PROTOC` not defined. run ./scripts/fetch-protoc.sh first",
            ),
            ("+", "mkdir -p tools && ./scripts/fetch-protoc.sh && cargo fetch", "ok"),
            ("+", "cargo test -p api", "test result: ok"),
        ],
        ("Run `./scripts/fetch-protoc.sh` before `cargo test`",),
    ),
    "podman in semicolon": (
        [
            ("-", "sbt test", "java.net.ConnectException: Connection refused: localhost:9092"),
            ("+", "podman start kafka; sleep 4; sbt test", "Passed"),
        ],
        ("Run `podman start kafka` before `sbt`",),
    ),
    "xcode flags": (
        [
            ("-", "xcodebuild -scheme App test", "error: no matching platform: unable to find a destination. error"),
            ("+", "xcodebuild -scheme App -destination 'platform=iOS Simulator,name=iPhone 16' test", "ok"),
        ],
        ("-destination",),
    ),
    "jest vs bun": (
        [("-", "npx mocha test/cart", "sh: 1: mocha: not found"), ("+", "bun test test/cart", "3 pass")],
        ("Run `bun test` instead of `npx mocha`",),
    ),
    "yarn jest": (
        [("-", "yarn jest src/a", 'error Command "jest" not found.'), ("+", "yarn vitest run src/a", "1 passed")],
        ("`yarn jest` fails here, `yarn vitest run` works",),
    ),
    "mvn wrapper option": (
        [
            (
                "-",
                "mvn -q verify",
                "[ERROR] Rule RequireJavaVersion failed: Detected JDK version 17 is not in the allowed range [21,).",
            ),
            ("+", "JAVA_HOME=$(/usr/libexec/java_home -v 21) mvn -q verify", "ok"),
        ],
        ("JAVA_HOME=",),
    ),
    "xargs": (
        [
            (
                "-",
                "cargo clippy --workspace && cargo test",
                "error: 'cargo-clippy' is not installed for the toolchain. To install, run `rustup component add clippy`",
            ),
            ("+", "rustup component add clippy && cargo clippy --workspace && cargo test", "ok"),
        ],
        ("rustup component add clippy",),
    ),
    "ng serve": (
        [
            ("-", "npx ng build", "Error: error:0308010C:digital envelope routines::unsupported"),
            ("+", "NODE_OPTIONS=--openssl-legacy-provider npx ng build", "ok"),
        ],
        ("NODE_OPTIONS=--openssl-legacy-provider",),
    ),
    "many tries": (
        [
            ("-", "make dev", "Error: connect ECONNREFUSED 127.0.0.1:5432"),
            ("-", "docker compose restart api && make dev", "Error: connect ECONNREFUSED 127.0.0.1:5432"),
            ("-", "docker compose up -d cache && make dev", "Error: connect ECONNREFUSED 127.0.0.1:5432"),
            ("+", "docker compose up -d postgres && make dev", "ready"),
        ],
        ("Run `docker compose up -d postgres` before `make dev`",),
    ),
}


@pytest.mark.parametrize(("steps", "words"), HELPED.values(), ids=HELPED)
def test_what_helped_is_found_wherever_it_stands(steps: list[tuple[str, ...]], words: tuple[str, ...]) -> None:
    told = "\n".join(f"{offer.draft.title}\n{offer.draft.text}" for offer in learned(*steps))
    assert all(word in told for word in words), told


def test_a_form_that_failed_before_is_not_what_helped() -> None:
    offline = "error: there is no cached data for this query, run `cargo sqlx prepare` to update it"
    (offer,) = learned(
        ("-", "cargo build", "error: `DATABASE_URL` must be set, or `cargo sqlx prepare` must have been run"),
        ("-", "SQLX_OFFLINE=true cargo build", offline),
        ("+", "docker compose up -d db && sleep 2 && cargo sqlx prepare", "written"),
        ("+", "SQLX_OFFLINE=true cargo build", "Finished"),
    )
    assert offer.draft.title == "Run `cargo sqlx prepare` before `SQLX_OFFLINE=true cargo build`"
    assert "docker" not in offer.draft.text


def test_what_is_shown_to_have_worked_is_not_what_failed() -> None:
    failed = "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile (default-compile) on project shop: Fatal error "
    steps = (("-", "./mvnw -q test", failed + "compiling: error: release version 21 not supported -> [Help 1]"),)
    (offer,) = learned(*steps, ("+", "export JAVA_HOME=/opt/jdk-21 && ./mvnw -q test", "ok"))
    assert "**Recovery:** `JAVA_HOME=/opt/jdk-21 ./mvnw -q test` worked." in offer.draft.text
    assert "release version 21 not supported`" in offer.draft.text


@pytest.mark.parametrize(
    ("failed", "error", "worked", "title"),
    [
        (
            "latexmk -pdf book.tex",
            "! Fatal Package fontspec Error: requires XeTeX",
            "latexmk -lualatex book.tex",
            "`latexmk` works with",
        ),
        (
            "python -m check a.nc",
            "errore: licenza non trovata",
            "LIC=27000@cam python -m check a.nc",
            "`python -m check` needs `LIC=27000@cam`",
        ),
    ],
)
def test_another_option_or_a_setting_at_once_is_what_helped(failed: str, error: str, worked: str, title: str) -> None:
    (offer,) = learned(("-", failed, error), ("+", worked, "ok"))
    assert (offer.draft.title or "").startswith(title)

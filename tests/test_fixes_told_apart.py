"""Of several things that were wrong one after another each has its own cure, and one cure has one entry."""

from __future__ import annotations

import pytest
from observing import learned as learned_of

from memory_kb.learning.intake import Offer
from memory_kb.learning.observation.commandlines import parse_line
from memory_kb.learning.observation.forms import name

NO_PROFILE = "11:02:40  Encountered an error:\nParsing Error\n  Unknown profile 'kitchen'"
NO_USER = "error: LEDGER_USER is required but not set"
LOCKED = "Error: cannot take the lock of the ledger"


def learned(*steps: tuple[str, ...]) -> list[Offer]:
    offers = learned_of(("U", "Have a look, please."), *steps)
    return [offer for offer in offers if offer.draft.kind == "pitfall"]


def titles(*steps: tuple[str, ...]) -> list[str]:
    return [offer.draft.title or "" for offer in learned(*steps)]


def test_each_step_on_the_way_is_the_cure_of_what_it_got_past() -> None:
    offers = learned(
        ("-", "dbt run -s sales", NO_PROFILE),
        ("-", "dbt run -s sales --profiles-dir etc", NO_USER),
        ("U", "source ~/ledger.env first"),
        ("-", ". ~/ledger.env; dbt run -s sales --profiles-dir etc", LOCKED),
        ("+", ". ~/ledger.env; dbt run -s sales --no-lock --profiles-dir etc"),
    )
    assert [offer.draft.title for offer in offers] == [
        "`dbt run` works with `--profiles-dir etc`",
        "`dbt run` needs `source ~/ledger.env`",
    ]
    assert "**Recovery:** `dbt run -s sales --profiles-dir etc` got past it." in offers[0].draft.text


@pytest.mark.parametrize("error", [NO_PROFILE, "sh: dbt: command not found"])
def test_a_form_got_past_nothing_where_the_error_came_again_or_came_before(error: str) -> None:
    steps = [
        ("-", "dbt run -s sales", NO_PROFILE),
        ("-", "dbt run -s sales --profiles-dir etc", error),
        ("+", "dbt run -s sales --target b"),
    ]
    assert "`dbt run` works with `--profiles-dir etc`" not in titles(*steps)


def test_one_cure_has_one_entry() -> None:
    (offer,) = learned(
        ("-", "ctest -V", "kit.xcb: could not connect to display"),
        ("-", "xvfb-run ctest -V", "sh: xvfb-run: command not found"),
        ("+", "KIT_SCREEN=none ctest -V"),
    )
    assert offer.draft.title == "`ctest` needs `KIT_SCREEN=none`"
    assert "could not connect to display" in offer.draft.text
    assert "xvfb-run: command not found" in offer.draft.text


@pytest.mark.parametrize(
    ("steps", "is_kept"),
    [
        ([("+", "LLVM_SYS_9_PREFIX=/opt/llvm cargo build")], True),
        ([("E", "src/a.rs"), ("+", "LLVM_SYS_9_PREFIX=/opt/llvm cargo build")], False),
        ([("+", "COLOURS=1 cargo build")], False),
    ],
)
def test_a_setting_that_the_output_names_is_the_cure(steps: list[tuple[str, ...]], is_kept: bool) -> None:
    error = "error: No suitable LLVM was found, nor is LLVM_SYS_9_PREFIX given\nerror: could not compile `llvm-sys`"
    assert bool(titles(("-", "cargo build", error), *steps)) == is_kept


def test_an_option_that_the_person_names_is_the_cure() -> None:
    failed = ("-", "cmake -B out", "CMake Error at a.cmake:3 (find_package):\n  Could not find zlib")
    worked = ("+", "cmake -B out -DZLIB_HOME=/opt/zlib-9")
    assert titles(failed, ("U", "it is in /opt/zlib-9"), worked) == ["`cmake` works with `-DZLIB_HOME=/opt/zlib-9`"]
    assert not titles(failed, ("U", "I have put it right on my side"), worked)


@pytest.mark.parametrize(
    "worked",
    [
        "mvn verify -DskipTests",
        "SKIP=lint mvn verify",
        "mvn verify --exclude web",
        "mvn verify -m 'not web'",
        "mvn verify-fast",
        "mvn verify || true",
        "mvn verify; true",
    ],
)
def test_what_only_comes_out_green_is_no_cure(worked: str) -> None:
    failed = ("-", "mvn verify", "error: package kit-tools is not installed")
    assert not titles(failed, ("+", worked))
    assert titles(failed, ("+", "mvn verify -Pci"))


@pytest.mark.parametrize(
    "said",
    [
        "no, put it back",
        "undo that",
        "whoa, 60 files. revert",
        "ok but just this once",
        "fine, is a hack for now",
        "never use the ci profile, -Pci is for the robots",
    ],
)
def test_what_the_person_is_against_is_not_taught(said: str) -> None:
    steps = [("-", "mvn verify", "error: package kit-tools is not installed"), ("+", "mvn verify -Pci")]
    assert not titles(*steps, ("U", said), ("+", "mvn package"))
    assert titles(*steps, ("U", "nice, no more errors"), ("+", "mvn package"))


def test_a_word_against_a_later_deed_is_none_against_a_cure() -> None:
    steps = [
        ("-", "mvn verify", "error: package kit-tools is not installed"),
        ("+", "mvn verify -Pci"),
        ("E", "src/a.java"),
    ]
    assert titles(*steps, ("U", "no, put it back"), ("+", "mvn package"))
    assert not titles(*steps, ("U", "no, undo the -Pci thing"), ("+", "mvn package"))


def test_what_is_forbidden_before_is_not_taught() -> None:
    failed = ("-", "dbt run -s sales --target b", "error: package kit-tools is not installed")
    worked = ("+", "dbt run -s sales --full-refresh --target b")
    assert not titles(failed, ("U", "in dev yes. in prod never do a full refresh"), worked)
    assert titles(failed, ("U", "in dev yes"), worked)


def test_what_is_put_back_is_not_taught() -> None:
    steps = [
        ("-", "npm test", "npm error Unsupported engine: node 9"),
        ("A", "The version in the configuration is wrong, because node 9 is gone."),
        ("E", "package.json", '"node": "20"'),
        ("+", "npm test"),
    ]
    assert titles(*steps)
    assert not titles(*steps, ("+", "git checkout package.json"))


def test_a_configuration_that_was_changed_since_may_be_the_cure() -> None:
    steps = [("-", "cargo run", "error: no answer, try running `loader run --chip a1`"), ("+", "loader run --chip a1")]
    assert titles(*steps, ("+", "cargo run")) == ["Run `loader run --chip a1` before `cargo run`"]
    assert not titles(*steps, ("E", ".cargo/config.toml", 'runner = "loader"'), ("+", "cargo run"))


def test_what_is_led_through_dashes_is_named() -> None:
    one, other = (
        parse_line(line)[0] for line in ("mise exec kit@1 -- terraform plan", "aws-vault exec prod -- terraform plan")
    )
    assert one[2:4] == (("mise exec kit@1 --",), ("terraform", "plan"))
    assert other[2:4] == (("aws-vault exec prod --",), ("terraform", "plan"))


def test_a_run_that_checked_nothing_did_not_work() -> None:
    failed = ("-", "pytest", "E   ModuleNotFoundError: No module named 'kit'")
    assert titles(failed, ("+", "pytest --kit=local", "3 passed in 0.2s")) == ["`pytest` works with `--kit=local`"]
    assert not titles(failed, ("+", "pytest --kit=local", "collected 0 items"))


def test_a_file_that_is_changed_on_the_line_is_no_edit_of_the_whole_line() -> None:
    unset, old = "scripts/pack.sh: 4: KIT_VERSION: set KIT_VERSION", "error: the tools are too old"
    packed = "sed -i 's/13/12/' etc/control && KIT_VERSION=3 scripts/pack.sh out | tail -3"
    steps = [("-", "scripts/pack.sh out", unset), ("-", "KIT_VERSION=3 scripts/pack.sh out", old), ("+", packed)]
    assert titles(*steps) == ["`scripts/pack.sh` needs `KIT_VERSION=3`"]
    assert not titles(("-", "scripts/pack.sh out", old), ("+", packed))


def test_what_is_read_into_the_shell_is_named_from_outside_of_its_folder() -> None:
    offers = learned(
        ("-", "kit build", "sh: kit: command not found"), ("+", "cd ~/shop && . .venv/bin/activate && kit build")
    )
    assert [offer.draft.title for offer in offers] == ["`kit` needs `source ~/shop/.venv/bin/activate`"]


def test_a_name_never_loses_the_command() -> None:
    lead = "source ~/src/kitchen/.venv/bin/activate && KIT_HOME=/opt/kit/9.11.2 "
    (command,) = parse_line(f"{lead}west build app")
    assert name(command) == "west build"


def test_a_recovery_names_no_option_that_the_failure_had_not() -> None:
    steps = [
        ("-", "dbt run", 'error: 0 packages are there. Run "dbt deps" first'),
        ("+", "dbt deps"),
        ("+", "dbt run --full-refresh"),
    ]
    (offer,) = learned(*steps)
    assert offer.draft.title == "Run `dbt deps` before `dbt run`"
    assert "--full-refresh" not in offer.draft.text


def test_what_stands_in_front_got_past_nothing_where_more_was_done() -> None:
    before, after = (
        ("-", "kit test", "error: cannot read the ledger"),
        ("-", "KIT_HOME=a kit test", "error: cannot write the ledger"),
    )
    worked = ("+", "KIT_HOME=a kit test -Pci")
    told = "`kit` needs `KIT_HOME=a`"
    assert told in titles(before, after, worked)
    assert told not in titles(before, ("E", "src/ledger.py"), after, worked)
    assert told not in titles(before, ("+", "make ledger"), after, worked)


def test_what_is_run_on_another_machine_is_seen() -> None:
    failed = ("-", "ssh far 'cd work && sbatch job.sh'", "sbatch: error: Invalid account")
    assert titles(failed, ("+", "ssh far 'cd work && sbatch -A birds job.sh'")) == [
        "`ssh far sbatch` works with `-A birds`"
    ]
    assert not titles(failed, ("+", "ssh far 'cd work && make; sbatch -A birds job.sh'"))


@pytest.mark.parametrize(("worked", "is_kept"), [("npm install", False), ("pnpm install", True)])
def test_an_install_that_is_less_strict_is_no_cure(worked: str, is_kept: bool) -> None:
    assert (
        bool(titles(("-", "npm ci", "npm error code EUSAGE\nnpm error the lockfile needs an update"), ("+", worked)))
        == is_kept
    )


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [("i logged you in", False), ("just this once take STAGE=dev", False), ("STAGE=dev then", True)],
)
def test_what_the_person_did_or_wants_once_is_no_cure(said: str, is_kept: bool) -> None:
    assert (
        bool(titles(("-", "make deploy", "error: not logged in"), ("U", said), ("+", "STAGE=dev make deploy")))
        == is_kept
    )


def test_an_option_that_the_error_does_not_speak_of_got_past_nothing() -> None:
    failed, worked = ("-", "kit b", "error: cannot find zlib"), ("+", "kit b --static --zlib-home=/opt")
    assert titles(failed, ("-", "kit b --static", "error: cannot start"), worked) == [
        "`kit` works with `--zlib-home=/opt`"
    ]
    assert "`kit` works with `--zlib-home=/opt`" in titles(
        failed, ("-", "kit b --zlib-home=/opt", "error: cannot start"), worked
    )


def test_an_address_is_told_as_what_was_done_and_is_no_rule() -> None:
    (offer,) = learned(
        ("-", "kit pull", "error: package a is not installed"), ("+", "KIT_MIRROR=https://mirror.example.org kit pull")
    )
    assert offer.draft.title == "`kit` needs `KIT_MIRROR=…`"
    assert offer.draft.text.endswith("**Recovery:** `KIT_MIRROR=https://mirror.example.org kit pull` worked.")

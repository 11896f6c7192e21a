"""Which option made a command work is told by what the error says and by what lay between."""

from __future__ import annotations

import pytest
from chaining import learned

NO_PROBE = "FATAL ERROR: required program pyprobe not found; install it or add its location to PATH"
NO_DEVICE = (
    "xcodebuild: error: Unable to find a device matching the provided destination specifier:\n\t{ name:iPad Air }"
)
NO_POOL = "error: Unknown pool 'small'. It was removed from this cluster."
NO_ACCOUNT = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
NO_PARENT = "[ERROR] Failed to execute goal on project core: Could not find artifact org.acme:parent:pom:3 in central: status code: 404, Not Found"
NO_TARGET = "ERROR common.c: Can not connect to target. Please use 'connect under reset' and try again\nFailed to connect to target"

FIXES = {
    "one option for another, where the error names a missing program": (
        [("-", "west flash --probe-id 7", NO_PROBE), ("+", "west flash --runner openocd", "ok")],
        (
            "`west flash` works with `--runner openocd`",
            "required program pyprobe not found",
            "`west flash --runner openocd` worked.",
        ),
    ),
    "something else for what there is not, after a look": (
        [
            ("-", "xcodebuild test -scheme A -destination 'platform=iOS Simulator,name=iPad Air'", NO_DEVICE),
            ("+", "xcrun simctl list devices available", "iPad Pro"),
            ("+", "xcodebuild test -scheme A -destination 'platform=iOS Simulator,name=iPad Pro'", "ok"),
            ("+", "xcodebuild test -scheme A -destination 'platform=iOS Simulator,name=iPad Pro'", "ok"),
        ],
        (
            "`xcodebuild test`",
            "-destination 'platform=iOS Simulator,name=iPad Pro'` worked.",
            "Unable to find a device",
        ),
    ),
    "something else, joined to the option": (
        [("-", "nomadic run --pool=small job.hcl", NO_POOL), ("+", "nomadic run --pool=batch-2 job.hcl", "ok")],
        ("`nomadic run` works with `--pool=batch-2`", "Unknown pool 'small'"),
    ),
    "something else before the command of the program": (
        [
            ("-", "docker compose --profile lab up -d", "Error: no such profile: lab"),
            ("+", "docker compose --profile office up -d", "ok"),
        ],
        ("`docker compose up` works with `--profile office`", "no such profile"),
    ),
    "something else, after a look with the same program": (
        [
            ("-", "docker buildx build --builder legacy .", 'ERROR: no builder "legacy" found'),
            ("+", "docker buildx ls", "office"),
            ("+", "docker buildx build --builder office .", "ok"),
        ],
        ("works with `--builder office`", "no builder"),
    ),
    "within a loop": (
        [
            ("-", "for n in 1 2 4; do sbatch job.sh --n $n; done", NO_ACCOUNT),
            ("+", "sacctmgr show assoc user=$USER", "phys-242"),
            ("+", "for n in 1 2 4; do sbatch --account=phys-242 job.sh --n $n; done", "Submitted batch job 1"),
        ],
        (
            "`sbatch` works with `--account=phys-242`",
            "Invalid account",
            "`sbatch --account=phys-242 job.sh --n $n` worked.",
        ),
    ),
    "a file of settings behind a short option": (
        [
            ("-", "mvn -q verify", NO_PARENT),
            ("+", "cat ci/settings.xml", "<settings>"),
            ("+", "mvn -q -s ci/settings.xml verify", "ok"),
            ("+", "mvn -q -s ci/settings.xml verify", "ok"),
        ],
        ("`mvn verify` works with `-s ci/settings.xml`", "`mvn -q -s ci/settings.xml verify` worked."),
    ),
    "words in quotes that are those of an option": (
        [
            ("-", "st-flash write x.bin 0x8000000", NO_TARGET),
            ("+", "st-flash --connect-under-reset write x.bin 0x8000000", "ok"),
        ],
        ("`st-flash` works with `--connect-under-reset`", "Can not connect to target"),
    ),
    "an option in quotes, though the failure looks like a passing one": (
        [
            (
                "-",
                "rigctl dump board.img",
                "ERROR: read timeout on channel 2, rerun with '--slow-clock' for old boards",
            ),
            ("+", "rigctl --slow-clock dump board.img", "ok"),
        ],
        ("`rigctl` works with `--slow-clock`", "read timeout on channel 2"),
    ),
}


@pytest.mark.parametrize(("steps", "words"), FIXES.values(), ids=FIXES)
def test_the_option_that_helped_is_kept(steps: list[tuple[str, ...]], words: tuple[str, ...]) -> None:
    (offer,) = learned(*steps)
    told = f"{offer.draft.title}\n{offer.draft.text}"
    assert all(word in told for word in words), told


NOTHING = {
    "a slip of the hand": [
        ("-", "nomadic run --pool batsh a.hcl", "error: unknown pool 'batsh'"),
        ("+", "nomadic run --pool batch a.hcl", "ok"),
    ],
    "a file": [
        ("-", "app --config a/dev.toml", "error: a/dev.toml not found"),
        ("+", "app --config a/prod.toml", "ok"),
    ],
    "other work": [
        ("-", "runit --filter cart", "error: no tests found, filter cart unknown"),
        ("+", "runit --filter order", "ok"),
    ],
    "an error of something else": [
        ("-", "nomadic run --pool small", "error: exit status 3"),
        ("+", "nomadic run --pool large", "ok"),
    ],
    "an error that names something else": [
        ("-", "nomadic run --pool small", "error: key 'x' not found in job"),
        ("+", "nomadic run --pool large", "ok"),
    ],
    "something was changed before": [
        ("-", "nomadic run --pool small a", NO_POOL),
        ("E", "a"),
        ("+", "nomadic run --pool large a", "ok"),
    ],
    "something was done before": [
        ("-", "nomadic run --pool small a", NO_POOL),
        ("+", "nomadic pools create large"),
        ("+", "nomadic run --pool large a", "ok"),
    ],
    "one thing for another": [
        ("-", "adbx push --udid emulator-5554 a", "error: device 'emulator-5554' not found"),
        ("+", "adbx push --udid emulator-5556 a", "ok"),
    ],
    "a passing failure whose output names another option": [
        ("-", "rigctl dump a", "ERROR: read timeout, rerun with '--slow-clock'"),
        ("+", "rigctl --fast dump a", "ok"),
    ],
    "a short option that stands before what is run on": [
        ("-", "pytest -q", "E   assert 1 == 2\n1 failed"),
        ("+", "pytest -s tests/test_a.py", "ok"),
    ],
    "a loop that tries until it works": [
        ("-", "hostctl ping box", "error: no answer"),
        ("+", "for i in 1 2 3; do hostctl ping box && break; sleep 1; done", "ok"),
    ],
    "a loop whose output is piped away and tells of a failure": [
        ("-", "pytest tests/a --real", "E   connection refused"),
        ("+", "for n in 1 2; do pytest tests/a --real --n $n; done | tail -3", "FAILED tests/a::b\n1 failed in 0.1s"),
    ],
    "another command of a program, for something else in the same space": [
        (
            "-",
            "helm -n prod upgrade api c",
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        ),
        (
            "-",
            "helm -n prod upgrade api c --atomic",
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        ),
        ("+", "helm -n prod rollback api 42", "Rollback was a success"),
    ],
}


@pytest.mark.parametrize("steps", NOTHING.values(), ids=NOTHING)
def test_what_may_have_other_reasons_is_not_kept(steps: list[tuple[str, ...]]) -> None:
    assert [offer.draft.text for offer in learned(*steps)] == []


EXPORT = "godot --headless --export-release Linux out/g"


@pytest.mark.parametrize("fetch", ["git lfs install && git lfs pull", "git lfs pull"])
def test_another_job_of_a_program_is_no_form_of_the_first(fetch: str) -> None:
    (offer,) = learned(
        ("-", EXPORT, "ERROR: Cannot open file 'res://.godot/imported/a.ctex'."),
        (
            "-",
            f"godot --headless --import && {EXPORT}",
            "ERROR: Error importing 'res://hero.png'. The file is corrupted",
        ),
        ("+", fetch, "ok"),
        ("+", f"godot --headless --import && {EXPORT}", "ok"),
    )
    assert f"`{fetch}`, then `{EXPORT}` worked." in offer.draft.text
    assert "works with" not in (offer.draft.title or "")


def test_another_job_by_itself_settles_nothing() -> None:
    failed = ("-", EXPORT, "ERROR: Cannot open file 'res://.godot/imported/a.ctex'.")
    assert learned(failed, failed, ("+", "godot --headless --import", "ok")) == []

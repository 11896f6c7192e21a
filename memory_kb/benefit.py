"""Measure whether a memory would have helped: replay a person's own transcripts and count facts of the logs.

Sessions are replayed in order of time. A vault in a temporary folder has learned from the sessions that had ended
before each one began, and from no others. Nothing leaves the machine, and no model is used.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from memory_kb.context.entry_lines import ClaimChecks
from memory_kb.context.framing import Given
from memory_kb.context.hook_context import build_prompt_context, find_task, match_task
from memory_kb.context.session_start import build_start, read_start
from memory_kb.errors import MemoryKBError, UnreadableInput
from memory_kb.git.past_vault import choose_notes
from memory_kb.git.repository import Repository
from memory_kb.kb import KnowledgeBase
from memory_kb.sessions.importing import Labels, TranscriptImport
from memory_kb.sessions.rediscoveries import (
    SORTS,
    EarlierSessions,
    Need,
    SessionNeeds,
    comparable_text,
    count_failed,
    mentions,
    read_needs,
)
from memory_kb.stop_words import stop_words
from memory_kb.store.agent_memory_files import always_holds
from memory_kb.store.session_log import SessionFiles
from memory_kb.text import count_tokens

#: The ways of remembering that are compared, as the table calls them.
WAYS = ("memory-kb", "nothing", "grep", "MEMORY.md")
_GREP_LINES = 20
_BACKTICKED = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"\w{3,}")
#: The files that a person curates for agents, in a project's folder; one of them is often a link to another.
CURATED_FILES = (
    "MEMORY.md",
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".claude/CLAUDE.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
)
_RULES = re.compile(r"\.(?:claude/rules/.*\.md|cursor/rules/.*\.mdc)\Z")
_NOTE_BYTES = 200_000
_LINK = "120000"
#: No citation is judged: the code as it was then is not at hand.
_UNJUDGED = ClaimChecks()


class PastNotes(NamedTuple):
    """The notes of one moment: what a person wrote for agents, and the vault's notes by their path in the project."""

    curated: str = ""
    files: Mapping[str, bytes] = {}


class NotesInGit:
    """The notes of a project, as they were."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._repository: Repository | None = None
        self._inner = ""
        self._known: dict[str, PastNotes] = {}
        try:
            repository = Repository(folder, environ)
            if repository.has_commits:
                self._repository, self._inner = repository, repository.prefix(folder)
        except (MemoryKBError, OSError):
            pass

    def at(self, moment: str) -> PastNotes:
        """Return the notes of the last commit before a moment of the branch that is checked out."""
        if self._repository is None or not moment:
            return PastNotes()
        found = self._repository.git("rev-list", "-1", f"--before={moment}", "HEAD").decode().strip()
        if found and found not in self._known:
            self._known[found] = self._read(self._repository, found)
        return self._known.get(found, PastNotes())

    def _read(self, repository: Repository, commit: str) -> PastNotes:
        """Return the notes of a commit; links to other files count once, as those files."""
        blobs = [one for one in repository.files(commit, self._inner) if one.mode != _LINK]
        notes = {one.path for one in choose_notes(blobs, is_memory=True) if one.path.endswith(".md")}
        wanted = [one for one in blobs if one.path in CURATED_FILES or one.path in notes or _RULES.match(one.path)]
        texts = {one.path: data[:_NOTE_BYTES] for one, data in repository.read(wanted)}
        words = {path: data.decode("utf-8", "replace").strip() for path, data in texts.items()}
        curated = [words[name] for name in CURATED_FILES if name in words]
        curated += [text for path, text in words.items() if _RULES.match(path) and always_holds(path, text)]
        files = {path: data for path, data in texts.items() if path in notes}
        return PastNotes("\n\n".join(filter(None, dict.fromkeys(curated))), files)


class LearningVault:
    """A vault in a temporary folder that learns as a real one does, and gives what its hooks would give."""

    def __init__(self, folder: Path, logs: SessionFiles) -> None:
        self._now = datetime(2000, 1, 1, tzinfo=UTC)
        self.notes = folder / "vault" / "memory"
        self.notes.mkdir(parents=True)
        (self.notes / "config.yaml").write_text("", encoding="utf-8")
        environ = {"HOME": str(folder), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none", "MEMORY_KB_HOST": "off"}
        self.kb = KnowledgeBase.open(folder / "vault", folder / "home", environ=environ, clock=lambda: self._now)
        self._logs = logs
        self.problems: list[str] = []
        self._laid: frozenset[str] = frozenset()

    def at(self, moment: str) -> None:
        """Set its clock."""
        if moment:
            self._now = max(self._now, datetime.fromisoformat(moment))

    def give(self, session: SessionNeeds, notes: PastNotes) -> Iterator[tuple[int, Given]]:
        """Yield what a session is given at its start and at its prompts, each with the number of the event."""
        self._lay_notes(notes.files)
        today = self._now.date()
        given = build_start(self.kb.index.read(lambda index: read_start(index, today)), (), today, _UNJUDGED)
        shown = frozenset(given.ids)
        yield 0, given
        for prompt in session.prompts:
            given = self._answer(prompt.content or "", shown)
            shown |= frozenset(given.ids)
            yield prompt.seq, given

    def _lay_notes(self, files: Mapping[str, bytes]) -> None:
        """Put the notes of a moment beside those that were learned."""
        folder = self.kb.vault.folder
        for path in self._laid - files.keys():
            (folder / path).unlink(missing_ok=True)
        here = {path for path in files if path in self._laid or not (folder / path).exists()}
        for path in here:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(files[path])
        self._laid = frozenset(here)

    def _answer(self, prompt: str, shown: frozenset[str]) -> Given:
        task = find_task(prompt)
        if not task:
            return Given()
        vault_index, floor, today = self.kb.index, self.kb.vault.settings.context.floor, self._now.date()
        return vault_index.read(
            lambda index: build_prompt_context(
                match_task(index, vault_index, task, floor, today).find(), shown, today, _UNJUDGED
            )
        )

    def learn(self, session: SessionNeeds) -> None:
        """Learn from a session that has ended."""
        self.at(session.ended)
        target = self.kb.sessions.files.path(session.session)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._logs.path(session.session), target)
        try:
            done = self.kb.sessions.end(session.session)
        except (MemoryKBError, OSError) as exc:
            self.problems.append(f"{session.session}: {exc}")
            return
        self.problems += [
            f"{session.session}: {step.name}: {step.message}" for step in done.steps if step.outcome == "failed"
        ]


def grep(folder: Path, curated: str, prompt: str) -> Given:
    """Return the lines that an agent finds for the rarest words of a prompt, in notes and what a person curated."""
    task = find_task(prompt)
    words = {word.casefold() for word in _WORD.findall(task)} - stop_words(task.split())
    if not words:
        return Given()
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.rglob("*.md")))
    full = (line for text in (curated, *texts) for line in text.splitlines())
    lines = [line[:300] for line in full if line.strip() and not line.startswith("---")]
    counts = Counter(word for line in lines for word in words & set(_WORD.findall(line.casefold())))
    rare = [word for word, _ in sorted(counts.items(), key=lambda item: (item[1], item[0]))][:3]
    found = [line for line in lines if any(word in line.casefold() for word in rare)]
    return Given("\n".join(found[:_GREP_LINES]))


@dataclass
class Score:
    """How much of what was found out again one way of remembering had said before, by sort, and what that saves."""

    given: Counter[str] = field(default_factory=Counter)
    failed_commands: int = 0
    saved_tokens: int = 0
    added_tokens: int = 0

    def add(self, needs: Sequence[Need]) -> None:
        """Count what it had said of the needs of one session."""
        self.given.update(need.sort for need in needs)
        tries, cost = count_failed(needs)
        self.failed_commands, self.saved_tokens = self.failed_commands + tries, self.saved_tokens + cost


class NeedCheck(NamedTuple):
    """One count, so that a person can check it: where it was needed, and who would have said it."""

    session: str
    seq: int
    sort: str
    fact: str
    tries: int
    tokens: int
    given_by: tuple[str, ...]


@dataclass
class Benefit:
    """The result of replaying a folder of transcripts.

    `found_again` was known from an earlier session, by sort; `failed_commands` on the way to it cost `tokens`. Entries
    that were given `never_paid` if they said nothing that was needed, and are `wrong` if they name a command which then
    failed and never went through. In `curated` sessions the project had a file that a person wrote for agents.
    """

    sessions: int = 0
    prompts: int = 0
    needs: Counter[str] = field(default_factory=Counter)
    found_again: Counter[str] = field(default_factory=Counter)
    failed_commands: int = 0
    tokens: int = 0
    scores: dict[str, Score] = field(default_factory=dict)
    entries_given: int = 0
    curated: int = 0
    never_paid: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    checks: list[NeedCheck] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def replay(folder: Path, on_session: Callable[[int, int], None] | None = None, project: Path | None = None) -> Benefit:
    """Replay the transcripts below a folder in order of time and count what a memory would have given.

    Sessions of one project share a vault. `on_session` is called with the number of sessions done and of all; `project`
    is the folder whose git history has the notes, by itself the one in which a session ran.
    """
    made = Benefit(scores={name: Score() for name in WAYS})
    with tempfile.TemporaryDirectory(prefix="memory-kb-benefit-") as place:
        logs = _import_all(folder, Path(place) / "logs", made)
        projects = _sessions_by_project(logs)
        total = sum(map(len, projects.values()))
        if not total:
            raise UnreadableInput(f"{folder} holds no transcript with a prompt", "name the folder of your agent's logs")
        for number, (name, sessions) in enumerate(projects.items()):
            past_notes = NotesInGit(project or _project_of(name, folder), os.environ)
            vault = LearningVault(Path(place) / f"project{number}", logs)
            with vault.kb:
                one = _ProjectReplay(vault, past_notes, made)
                for _ in one.run(sorted(sessions, key=lambda one: one.began)):
                    made.sessions += 1
                    if on_session:
                        on_session(made.sessions, total)
            made.problems += vault.problems
    return made


def _import_all(folder: Path, place: Path, made: Benefit) -> SessionFiles:
    if not folder.is_dir():
        raise UnreadableInput(f"{folder} is no folder", "name the folder of your agent's logs")
    logs = SessionFiles(place)
    for one in TranscriptImport(logs, Labels(), datetime.now(UTC)).add_folder(folder):
        made.problems += [f"{problem.path}:{problem.line}: {problem.message}" for problem in one.problems[:1]]
    return logs


def _sessions_by_project(logs: SessionFiles) -> dict[str, list[SessionNeeds]]:
    """Return what sessions found out, by the outermost folder around their own in which one worked."""
    found: list[tuple[str, SessionNeeds]] = []
    for session in logs.ids():
        events = list(logs.read(session))
        starts = (event.args or {} for event in events if event.event == "start")
        folder = next((str(args["cwd"]) for args in starts if args.get("cwd")), "")
        found.append((folder, read_needs(session, events)))
    folders = {folder for folder, _ in found if folder}
    projects: dict[str, list[SessionNeeds]] = {}
    for folder, needs in found:
        if needs.prompts or needs.needs:
            around = [one for one in folders if folder == one or folder.startswith(one.rstrip("/") + os.sep)]
            projects.setdefault(min(around, key=len, default=folder), []).append(needs)
    return projects


def _project_of(cwd: str, folder: Path) -> Path:
    """Return the project folder of some sessions: `cwd` if they name it, else the one around their transcripts."""
    if cwd:
        return Path(cwd)
    place = folder.resolve()
    return next((one.parent for one in (place, *place.parents) if one.name.startswith(".")), place)


class _ProjectReplay:
    """The replay of the sessions of one project."""

    def __init__(self, vault: LearningVault, past_notes: NotesInGit, made: Benefit) -> None:
        self._vault, self._past_notes, self._made = vault, past_notes, made
        self._past = EarlierSessions()
        self._shown, self._paid, self._wrong = set[str](), set[str](), set[str]()

    def run(self, sessions: Sequence[SessionNeeds]) -> Iterator[None]:
        """Replay sessions in their order; each may know those that were over when it began."""
        waiting: list[SessionNeeds] = []
        for session in sessions:
            for over in sorted((one for one in waiting if one.ended < session.began), key=lambda one: one.ended):
                waiting.remove(over)
                self._past.learn(over)
                self._vault.learn(over)
            self._vault.at(session.began)
            self._replay(session, self._past_notes.at(session.began))
            waiting.append(session)
            yield
        self._made.entries_given += len(self._shown)
        self._made.never_paid += sorted(self._shown - self._paid)
        self._made.wrong += sorted(self._wrong)

    def _replay(self, session: SessionNeeds, notes: PastNotes) -> None:
        made, shown, needs = self._made, set[str](), session.in_order()
        texts: dict[str, list[tuple[int, str]]] = {}
        # What each way gives, in the order of `WAYS`; the first also puts the notes where grep finds them.
        ways: tuple[list[tuple[int, Given]], ...] = (
            list(self._vault.give(session, notes)),
            [],
            [(one.seq, grep(self._vault.notes, notes.curated, one.content or "")) for one in session.prompts],
            [(0, Given(notes.curated))],
        )
        for name, given in zip(WAYS, ways, strict=True):
            made.scores[name].added_tokens += sum(count_tokens(one.text) for _, one in given)
            texts[name] = [(seq, comparable_text(one.text)) for seq, one in given if one.text]
            shown.update(*(one.ids for _, one in given))
        made.curated += bool(notes.curated)
        made.prompts += len(session.prompts)
        made.needs.update(need.sort for need in needs)
        again = [need for need in needs if self._past.knows(need)]
        made.found_again.update(need.sort for need in again)
        saved: dict[str, list[Need]] = {}
        for need in again:
            by = tuple(
                name
                for name, said in texts.items()
                if any(seq <= need.seq and mentions(text, need) for seq, text in said)
            )
            for name in by:
                saved.setdefault(name, []).append(need)
            made.checks.append(NeedCheck(session.session, need.seq, need.sort, need.fact, *count_failed([need]), by))
        tries, cost = count_failed(again)
        made.failed_commands, made.tokens = made.failed_commands + tries, made.tokens + cost
        for name, found in saved.items():
            made.scores[name].add(found)
        self._record_worth(shown, session, again)

    def _record_worth(self, ids: set[str], session: SessionNeeds, known: Sequence[Need]) -> None:
        """Record which entries that a session was given were of use, and which name a command that failed."""
        for memory in self._vault.kb.memories.all():
            if memory.id not in ids:
                continue
            self._shown.add(memory.id)
            text = comparable_text(f"{memory.title} {memory.text}")
            if any(mentions(text, need) for need in known):
                self._paid.add(memory.id)
            commands = () if memory.kind in ("episode", "pitfall") else _BACKTICKED.findall(memory.text)
            if any(" ".join(one.split()) in session.failed for one in commands):
                self._wrong.add(memory.id)


def render_report(made: Benefit, folder: str) -> str:
    """Return the figures as a page of HTML that needs nothing else."""
    from html import escape

    def row(cells: Iterable[object], tag: str = "td") -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    table = "".join(row(line) for line in list_rows(made))
    checks = "".join(
        row((one.session, one.seq, one.sort, one.fact, one.tries, one.tokens, ", ".join(one.given_by)))
        for one in made.checks
    )
    head = ("session", "event", "what", "fact", "failed commands", "tokens", "said before by")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>memory-kb benefit</title>'
        "<style>body{font:16px sans-serif;max-width:70em;margin:2em auto}td,th{padding:.2em .8em;text-align:left}"
        "td{border-top:1px solid #ccc;overflow-wrap:anywhere}</style>"
        f"<h1>What a memory would have given</h1><p>{escape(folder)}: {made.sessions:,} sessions, {made.prompts:,} prompts. "
        f"{sum(made.found_again.values()):,} things were found out again that an earlier session knew; "
        f"{made.failed_commands:,} commands failed on the way, {made.tokens:,} tokens.</p>"
        f"<table>{row(HEAD, 'th')}{table}</table>"
        f"<p>{made.entries_given:,} entries were given, {len(made.never_paid):,} never paid, {len(made.wrong):,} were wrong. {describe_last_way(made)}</p>"
        f"<h2>Every count</h2><table>{row(head, 'th')}{checks}</table></html>\n"
    )


HEAD = ("", *(f"{sort}s" for sort in SORTS), "failed commands", "tokens saved", "tokens added")


def describe_last_way(made: Benefit) -> str:
    """Return the remarks on the last way of remembering."""
    return f"{WAYS[3]} is what a person had written for agents, which {made.curated:,} of the sessions had."


def list_rows(made: Benefit) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table: what was known before, then what each way of remembering had said."""
    known = tuple(f"{made.found_again[sort]:,}" for sort in SORTS)
    yield ("found again", *known, f"{made.failed_commands:,}", f"{made.tokens:,}", "")
    for name, score in made.scores.items():
        given = tuple(f"{score.given[sort]:,}" for sort in SORTS)
        yield (name, *given, f"{score.failed_commands:,}", f"{score.saved_tokens:,}", f"{score.added_tokens:,}")

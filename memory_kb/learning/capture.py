"""Keep what a person states with an explicit marker, such as "from now on" or "we use X, not Y".

The table of markers is the whole knowledge of language here. A sentence counts that begins with a
marker, after words that only lead in to it. Everything else is left to the agent's own model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from memory_kb.credentials import find_secret, is_redacted
from memory_kb.learning.ingest import Offer
from memory_kb.learning.new_entry import Draft
from memory_kb.learning.sentences import sentences
from memory_kb.learning.wrappers import own_words
from memory_kb.markdown.splice import Value
from memory_kb.model import Location, RunReport
from memory_kb.store.events import Event
from memory_kb.text import has_cjk, shorten

#: How many characters of their own a message has that is read, and words a statement (of CJK, characters).
MIN_MESSAGE, MAX_MESSAGE = 20, 2_000
_WORDS, _CJK = (3, 50), (6, 150)
_TITLE = 80
_I = re.IGNORECASE
#: Words that only lead in to a statement; any number of them, in any order.
_LEAD = re.compile(
    r"(?:(?:and|also|but|so|ok(?:ay)?|oh|hey|hi|hmm*|well|yes|yeah|no|nope|right|great|good|nice|perfect|cool|sure|sorry|thanks?(?: you| a lot)?|"
    r"thx|please|pls|btw|by the way|fyi|again|actually|just|finally|lastly|first(?:ly| off)?|second(?:ly)?|next|now|one (?:more|last) thing|note|"
    r"important|reminder|attention|as a (?:rule|reminder)|in this (?:repo(?:sitory)?|project|codebase)|for this (?:repo(?:sitory)?|project|codebase)|"
    r"i(?:'ve| have)? (?:already )?told you(?: (?:already|before|that))*|like i said|as i said|(?:can|could|would|will) you(?: please)?(?: also)?|"
    r"i (?:want|need|would like|'d like)(?: you)? to|i'd like you to|you (?:should|must|need to|have to)|make sure (?:to|you|that you|that|we)|"
    r"be sure to|und|also|bitte|danke|übrigens|achtung|wichtig|et|donc|alors|merci|svp|s'il (?:te|vous) plaît|au fait|attention|ちなみに|あと|なお|また)"
    r"(?:[\s,:;!.–—-]+|(?<=[ぁ-ん])、?))+",
    _I,
)


class Marker(NamedTuple):
    """A marker: what a sentence begins with, as what kind it is kept, and whether the marker itself is left out."""

    kind: str
    shape: re.Pattern[str]
    is_dropped: bool = False


def _marker(kind: str, pattern: str, *, is_dropped: bool = False) -> Marker:
    return Marker(kind, re.compile(pattern, _I), is_dropped)


#: The one list of phrases by which a person's words are kept (English, German, French, Japanese).
MARKERS = (
    _marker(
        "fact",
        r"(?:remember|keep in mind|bear in mind|don't forget|do not forget|never forget|take note|note down|make a note|add a note|save a note|"
        r"note for (?:the future|later|next time)|for (?:future|later) reference)(?: that| of that|:)\s+(?=\S)",
        is_dropped=True,
    ),
    _marker(
        "policy",
        r"(?:from (?:now|here) on(?:wards?)?|going forward|in (?:the )?future|henceforth)\b[\s,:]*",
        is_dropped=True,
    ),
    _marker(
        "policy",
        r"(?:we )?(?:always|never)\s+(?!mind\b|been\b|had\b|seen\b|heard\b|again\b|ever\b|knew\b|thought\b|got\b|\w+ed\b)(?=\w)",
    ),
    _marker(
        "policy", r"when(?:ever)? \w+ing [^,.]{2,50}, (?:i(?:'d like| want| would like) you to|please|always|never)\b"
    ),
    _marker("policy", r"(?:don't|do not|dont) ever\s"),
    _marker("policy", r"(?:we|our team) only\s+(?!had\b|\w+ed\b)(?=\w)"),
    _marker(
        "policy",
        r"only (?:ever )?(?:use|commit|push|deploy|merge|release|run|write|edit|call|import|log|test)\b(?!.*\b(?:this|that) one\b)",
    ),
    _marker(
        "preference",
        r"(?:we|i|our team) (?:use|prefer|write|run|name|call|deploy|test|keep|build|pin|store)s? (?=.*(?:,? not |\binstead of\b|\brather than\b|\bover\b))",
    ),
    _marker("preference", r"i (?:(?:would|'d) )?prefer\b|i'd prefer\b|we prefer\b|my preference is\b"),
    _marker("preference", r"(?:prefer|use|call|name|write) (?=.*\b(?:instead of|rather than)\b)"),
    _marker("preference", r"by default,? (?=\w)"),
    _marker("fact", r"(?:merke? dir|denk daran|vergiss nicht|beachte)[,:]? (?:dass |bitte )?", is_dropped=True),
    _marker(
        "policy", r"(?:ab (?:jetzt|sofort|heute)|von (?:jetzt|nun) an|künftig|in zukunft)\b[\s,:]*", is_dropped=True
    ),
    _marker("policy", r"(?:wir )?(?:\w+ )?(?:immer|niemals|nie)\b(?! (?:wieder|mehr)\b)(?=.* )"),
    _marker("preference", r"(?:wir (?:nutzen|verwenden|benutzen|nehmen)|ich bevorzuge)\b"),
    _marker("fact", r"(?:souviens-toi|rappelle-toi|n'oublie pas|retiens|note)[,:]? (?:que |qu')", is_dropped=True),
    _marker("policy", r"(?:désormais|dorénavant|à partir de maintenant|à l'avenir)\b[\s,:]*", is_dropped=True),
    _marker("policy", r"(?:toujours|jamais)\b|(?:on|nous|ne|n')\s?(?:\w+ ){1,3}(?:toujours|jamais)\b"),
    _marker("preference", r"(?:(?:on|nous) (?:utilise|utilisons)|je préfère)\b"),
    _marker("policy", r"(?:今後は?|これからは?)、?(?=.)", is_dropped=True),
    _marker("policy", r"(?:常に|必ず|絶対に)(?=.)"),
    _marker("fact", r"(?=.*(?:覚えておいて|忘れないで))"),
)
#: What is proposed for review: a bare constraint or correction, which may be an order for the work at hand.
PROPOSALS = (
    _marker(
        "policy", r"(?!(?:you|it|this|that|i|there|they)\b)(?:[\w`'/.-]+ ){1,6}?(?:must(?: not)?|(?:is|are) required)\b"
    ),
    _marker("fact", r"(?!(?:i|you)\b)(?:[\w`'/.-]+ ){1,8}?not [\w`'/.-]+(?: [\w`'/.-]+){0,3},? but\b"),
)
#: A clause before the marker: when or where a statement holds.
_CLAUSE = re.compile(r"(?:when(?:ever)?|if|for|in|on|to|before|after|wenn|bei|für|quand|pour)\b[^,.!?]{2,60},\s*", _I)
#: The person asks to write down what they have just said.
_WRITE_DOWN = re.compile(
    r"(?:add|put|write|save|note|store|document|include|record) (?:that|this|it)(?: (?:down|rule|fact|too))? (?:in|to|into) (?:the |your |our |my )?"
    r"(?:\S*(?:AGENTS|CLAUDE|GEMINI|MEMORY)(?:\.md)?\b|memory\b|notes?\b|rules?\b|instructions\b|guidelines\b)"
    r"|(?:change|update|edit) (?:the )?\S*(?:AGENTS|CLAUDE|GEMINI|MEMORY)\.md\b|make a note(?: of (?:that|this|it))?\W*$|remember (?:that|this|it)\W*$",
    _I,
)
_QUESTION = re.compile(
    r"(?:why|what|who|where|which|how|when do|did|does|is|are|was|were|have|has|should|shall|may|might)\b", _I
)
#: About now alone, a permission, a story, or only thought.
_NOT_MEANT = re.compile(
    r"\b(?:for now|right now|this time|just this once|for the moment|today|tomorrow|tonight|yesterday|currently|at the moment|for this (?:one|task|pr|commit|session|step)|"
    r"in this (?:session|task|pr|commit|step|case)|feel free|whatever you (?:like|want)|anything you (?:like|want)|up to you|if you (?:like|want)|used to|"
    r"i (?:think|guess|wonder|suppose)|maybe|perhaps|let's say|suppose|pretend|lol|haha|vorerst|heute|diesmal|pour l'instant|aujourd'hui)\b|今回",
    _I,
)
_POINTING = frozenset(
    [
        "it",
        "this",
        "that",
        "these",
        "those",
        "them",
        "there",
        "here",
        "so",
        "do",
        "be",
        "use",
        "always",
        "never",
        "again",
        "the",
        "a",
        "an",
        "one",
        "ones",
        "to",
        "of",
    ]
)
_REVERT = re.compile(
    r"(?:revert|undo|roll(?: it)? back|take back|put (?:it|that|this|them) back|restore|back out)\b|(?:mach|nimm) \w+ (?:rückgängig|zurück)|annule\b|元に戻して",
    _I,
)


class Statement(NamedTuple):
    """Something a person stated.

    Attributes:
        kind: preference, policy or fact.
        text: the sentence without its lead-in.
        marker: what it was recognised by.
        is_proposal: whether a person has to decide on it.
        replaces: whether it says that something changed.
    """

    kind: str
    text: str
    marker: str
    is_proposal: bool = False
    replaces: bool = False


def find_statements(message: str | None, before: str = "") -> tuple[Statement, ...]:
    """Return what a person states in a message.

    Args:
        message: what they wrote.
        before: the last sentence of their message before, to which "add that to AGENTS.md" may point.

    Example:
        >>> [(one.kind, one.text) for one in find_statements("thanks! can you also remember that the CI has no Docker?")]
        [('fact', 'The CI has no Docker')]
        >>> [(one.kind, one.text) for one in find_statements("No, we use pnpm, not npm. Fix the login.")]
        [('preference', 'We use pnpm, not npm.')]
        >>> find_statements("Should we always use zod? You never listen.")
        ()
    """
    return read_message(message, before)[0]


def read_message(message: str | None, before: str = "") -> tuple[tuple[Statement, ...], str]:
    """Return what a person states in a message, and why it is nothing where it is nothing."""
    secret = find_secret(message or "")
    if secret or is_redacted(message or ""):
        return (), f"it holds what looks like {secret}" if secret else "a credential was taken out of it"
    own = own_words(message or "")
    size = len(own) + sum(has_cjk(sign) for sign in own)
    if not own:
        return (), "nothing in it is the person's own"
    if not MIN_MESSAGE <= size <= MAX_MESSAGE:
        return (), f"{size:,} characters of it are the person's own, and {MIN_MESSAGE} to {MAX_MESSAGE:,} are read"
    found: list[Statement] = []
    for sentence in sentences(own):
        one = _read_sentence(sentence, before)
        if one and one.text not in [other.text for other in found]:
            found.append(one)
        before = sentence
    return tuple(found), "" if found else "no sentence begins with a marker"


def last_sentence(message: str | None) -> str:
    """Return the last sentence that a person wrote in a message, or ""."""
    *_, last = "", *sentences(own_words(message or ""))
    return last


def asks_to_revert(message: str) -> str:
    """Return the sentence by which a person asks to revert a change, or "".

    Example:
        >>> asks_to_revert("Thanks. Please revert that, the file must stay flat."), asks_to_revert("I reverted it.")
        ('Please revert that, the file must stay flat.', '')
    """
    found = (one for one in sentences(message) if _REVERT.match(_without_lead(one)) and not one.endswith("?"))
    return shorten(next(found, ""), 200)


def _without_lead(sentence: str) -> str:
    lead = _LEAD.match(sentence)
    return sentence[lead.end() :] if lead else sentence


def _read_sentence(sentence: str, before: str) -> Statement | None:
    bare = _without_lead(sentence)
    if _WRITE_DOWN.match(bare):
        return _pointed_at(before)
    is_asked = (
        re.match(r"(?:.*\b)?(?:can|could|would|will) you\b", sentence[: len(sentence) - len(bare)], _I) is not None
    )
    if (
        (sentence.rstrip(" )\"'").endswith(("?", "？")) and not is_asked)
        or _QUESTION.match(bare)
        or _NOT_MEANT.search(bare)
    ):
        return None
    clause = _CLAUSE.match(bare)
    for lead, rest in [(bare, bare), *([(bare, _without_lead(bare[clause.end() :]))] if clause else [])]:
        for marker in MARKERS:
            found = marker.shape.match(rest)
            if found:
                inner = rest[found.end() :] if marker.is_dropped else lead
                return _statement(marker, inner, found[0], replaces=marker.is_dropped and marker.kind == "policy")
    for marker in PROPOSALS:
        found = marker.shape.match(bare)
        if found:
            made = _statement(marker, bare, found[0])
            return made._replace(is_proposal=True) if made else None
    return None


def _pointed_at(before: str) -> Statement | None:
    """Return the statement that a request to write it down points at."""
    text = _without_lead(before)
    if not text or text.endswith("?"):
        return None
    made = _read_sentence(before, "")
    return made._replace(is_proposal=False) if made else _statement(Marker("fact", _REVERT), text, "add that")


def _statement(marker: Marker, text: str, found: str, *, replaces: bool = False) -> Statement | None:
    if marker.is_dropped:
        again = _without_lead(text)
        inner = next((one for one in MARKERS if one.shape.match(again) and not one.is_dropped), None)
        text, marker = again if inner else text, inner or marker
    text = re.sub(
        r"(?:,? (?:please|pls|thanks|thank you|ok(?:ay)?|bitte|danke|merci))+(?=[.!?]*$)", "", text.strip(), flags=_I
    )
    text = text.rstrip("?？ ") if marker.is_dropped else text
    words = [word for word in re.findall(r"[\w'’-]+", text) if word.casefold() not in _POINTING]
    least, most = _CJK if has_cjk(text) else _WORDS
    size = len(text) if has_cjk(text) else len(text.split())
    if not least <= size <= most or (len(words) < 2 and not has_cjk(text)):
        return None
    return Statement(
        marker.kind, text[:1].upper() + text[1:], " ".join(found.split()).strip(" ,:").casefold(), replaces=replaces
    )


class Heard(NamedTuple):
    """A message of a person with what it states, or why it states nothing."""

    event: Event
    statements: tuple[Statement, ...]
    reason: str = ""


def hear(events: Iterable[Event]) -> Iterator[Heard]:
    """Yield the messages of people in a session, each with what it states.

    Example:
        >>> events = [Event(role="user", content="Never push to master."), Event(role="assistant", content="I never push.")]
        >>> [(heard.event.role, heard.statements[0].kind) for heard in hear(events)]
        [('user', 'policy')]
    """
    before: dict[str | None, str] = {}
    for event in events:
        if event.type == "message" and event.role == "user" and event.content and event.injected != "whole":
            yield Heard(event, *read_message(event.content, before.get(event.session, "")))
            before[event.session] = last_sentence(event.content)


def offer_statements(
    heard: Iterable[Heard],
    now: datetime,
    place: Location | None = None,
    session: str | None = None,
    *,
    propose: bool = False,
) -> list[Offer]:
    """Return what was stated as offers for the intake, in the order in which it was said.

    The same sentence of the same event is the same offer, however often it is read.

    Args:
        heard: messages with their statements.
        now: the time; what belongs to no session is new every time.
        place: where the entries go, by default the project.
        session: where the messages come from, for those that do not name it themselves.
        propose: whether everything waits for a person's decision.
    """
    return [
        make_offer(one.event, statement, number, now, place or Location(), session, propose=propose)
        for one in heard
        for number, statement in enumerate(one.statements)
    ]


def make_offer(
    event: Event,
    one: Statement,
    number: int,
    now: datetime,
    place: Location,
    session: str | None,
    *,
    propose: bool = False,
) -> Offer:
    """Return the offer of a statement, with where it comes from."""
    origin = event.session or session
    fields: list[tuple[str, Value]] = [("session_id", origin)] if origin else []
    if origin and event.seq:
        fields.append(("session_seq", event.seq))
        key = f"{event.seq}"
    else:
        key = blake2b((event.content or "").encode("utf-8", "replace"), digest_size=12).hexdigest()
        key += "" if origin else f"/{event.ts or now.isoformat()}"
    if propose or one.is_proposal:
        fields.append(("status", "proposed"))
    title = shorten(one.text.rstrip(".!。 "), _TITLE)
    draft = Draft(one.text, one.kind, title, priority="high", source="user_explicit", fields=tuple(fields))
    where = f" in session {origin}{f', event {event.seq}' if event.seq else ''}" if origin else ""
    return Offer(
        draft,
        place,
        f"capture/{origin or ''}/{key}{f'/{number}' if number else ''}",
        f"Stated with “{one.marker}”{where}.",
        origin,
        said=event.ts or None,
        replaces=not (propose or one.is_proposal),
    )


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of one message, or of one statement of it.

    Attributes:
        action: `created`, `reinforced`, `known`, `forgotten` or `refused`; `passed` where the
            message states nothing.
        reason: why, in words.
        marker: what the statement was recognised by.
        text: the sentence that is kept.
        session: where the message comes from; `seq` is the number of its event.
    """

    action: str
    reason: str
    marker: str | None = None
    kind: str | None = None
    text: str | None = None
    source: str | None = None
    id: str | None = None
    path: str | None = None
    session: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """What was made of the messages of people, in their order, and the run that wrote it."""

    messages: tuple[Captured, ...]
    run: RunReport

    @property
    def kept(self) -> tuple[Captured, ...]:
        """Those that state something, whatever became of it."""
        return tuple(one for one in self.messages if one.action != "passed")

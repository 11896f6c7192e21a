"""Recognise what a person states with an explicit marker, such as "from now on" or "we use X, not Y".

The table of markers is the only knowledge of language here. A sentence counts if it begins with a
marker, after introductory words. Everything else is left to the agent's own model.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.credentials import REDACTED, find_secret
from memory_kb.lazy_regex import lazy_regex
from memory_kb.learning.user_text import own_words, sentences
from memory_kb.terms import has_cjk
from memory_kb.text import shorten

#: How many characters of their own a message has that is read, and words a statement (of CJK, characters).
MIN_MESSAGE, MAX_MESSAGE = 20, 2_000
_WORDS, _CJK = (3, 50), (6, 150)


def _shape(pattern: str) -> re.Pattern[str]:
    return lazy_regex(pattern, re.IGNORECASE)


class Marker(NamedTuple):
    """What a sentence begins with that is kept, and as what kind; `is_dropped` if only what follows is kept."""

    kind: str
    shape: re.Pattern[str]
    is_dropped: bool = False


#: Words that only lead in to a statement; any number of them, in any order.
_LEAD = _shape(
    r"(?:(?:and|also|but|so|ok(?:ay)?|oh|hey|hi|hmm*|well|yes|yeah|no|nope|right|great|good|nice|perfect|cool|sure|sorry|thx|please|pls|btw|fyi|again|"
    r"thanks?(?: you| a lot)?|by the way|actually|just|finally|lastly|next(?! time)|now|then|note|important|reminder|attention|update|additionally|similarly|"
    r"likewise|furthermore|moreover|besides|(?:first|second|third)(?:ly| off)?|one (?:more|last) thing|no matter what|as a (?:rule|reminder)|"
    r"(?:in|for) (?:this|our|the) (?:repo(?:sitory)?|project|codebase)|i(?:'ve| have)? (?:already )?told you(?: (?:already|before|that))*|(?:like|as) i said|"
    r"(?:can|could|would|will) you(?: please)?(?: also)?|(?:i|we)(?:'d| would)?(?: also| now)* (?:want|need|like) (?:you|us)(?: all)? to|"
    r"you (?:should|must|need to|have to)|(?:make sure|be sure|ensure) (?:to|that you|that we|you|we|that)|remember to|start to|it's (?:very )?important (?:to|that (?:you|we))|"
    r"(?:one|another|an?|the|our) (?:[\w'’-]+ ){1,9}?is to|get into the habit of|"
    r"und|also|bitte|danke|übrigens|achtung|wichtig|et|donc|alors|merci|svp|s'il (?:te|vous) plaît|au fait|"
    r"por favor|gracias|además|пожалуйста|спасибо|кстати|важно|ちなみに|あと|なお|また|请|谢谢|另外|顺便说一下)"
    r"(?:[\s,:;!.–—-]+|[，、：！]|(?<=[ぁ-ん请])、?))+"
)


def _markers(kind: str, *patterns: str, is_dropped: bool = False) -> list[Marker]:
    return [Marker(kind, _shape(pattern), is_dropped) for pattern in patterns]


_SHOWS = r"(?:only )?(?:show|display|hide|render|highlight|freeze|select|redirect)\b"
_FOR_ALL = r"(?:all|every|each|any) (?!(?:of )?(?:this|these|that|those)\b)(?:[\w`'-]+ ){1,5}?"
_REMEMBER = r"(?:always )?(?:remember|keep in mind|bear in mind|(?:don't|do not|never) forget|take note|note down|(?:make|add|save) a note)"
#: The one list of phrases by which a person's words are kept.
MARKERS = (
    *_markers(
        "fact",
        _REMEMBER + r"(?:(?: of)?,? that\b|:) *(?=\S)",
        _REMEMBER
        + r" (?=(?:we|we're|this is)\b|(?:the|our|this) (?:[\w'-]+ ){1,3}?(?:is|are|has|have|does|doesn't|isn't|needs?|uses?|runs?|can|can't|cannot|only)\b)",
        r"(?:note for (?:the future|later|next time)|for (?:future|later) reference)(?:,? that\b|:|,) *(?=\S)",
        r"(?:merke? dir|denk daran|vergiss nicht|beachte)[,:]? (?:dass |bitte )?",
        r"(?:souviens-toi|rappelle-toi|n'oublie pas|retiens|note)[,:]? (?:que |qu')",
        r"(?:recuerda|ten en cuenta|no olvides|lembre(?:-se)?(?: de)?)[,:]? (?:que )",
        r"(?:(?:запомни|помни|учти)(?:те)?|имей(?:те)? в виду)[,:]? (?:что )?|(?:记住|请记住|别忘了)[，,：: ]*",
        is_dropped=True,
    ),
    *_markers("fact", r"(?=.*(?:覚えておいて|忘れないで))"),
    *_markers(
        "policy",
        r"(?:from (?:now|here) on(?:wards?)?(?: out)?|(?:going|moving) forward|henceforth|(?:in (?:the )?future|next time)(?!,? (?:i|we|you)\b))\b[\s,:]*",
        r"(?:ab (?:jetzt|sofort|heute)|von (?:jetzt|nun) an|künftig|in zukunft)\b[\s,:]*",
        r"(?:désormais|dorénavant|à partir de maintenant|à l'avenir|(?:a partir de|de) ahora(?: en adelante)?|en adelante|a partir de agora)\b[\s,:]*",
        r"(?:с этого момента|впредь|отныне)\b[\s,:]*|(?:今後は?|これからは?|从现在(?:开始|起)|从今往后|今后|以后)[、，,]?(?=.)",
        is_dropped=True,
    ),
    *_markers(
        "policy",
        r"(?:we |you )?(?:always|never)\s+(?!(?:mind|been|had|seen|message|again|ever|knew|thought|got|happy|glad|here|know|\w+ed)\b)(?!"
        + _SHOWS
        + r")(?=[\w`])",
        r"(?:don't|do not|dont) ever\s|(?:we|our team) (?:\w+ )?only\s+(?!(?:had|want|need|\w+ed)\b)(?=\w)",
        r"we (?:don't|do not|dont) (?!(?:want|need|have|know|see|care|think|seem|get|really|even|actually|yet)\b)(?=\w+ (?!(?:that|this|it)\b)\w)",
        # "Nie" is "not" in Polish: it counts behind a German verb, and before an infinitive at the end.
        r"(?:(?:wir )?(?:\w+ )?(?:immer|niemals)|(?:wir \w+|\w{4,}(?<!i)e) nie|(?:\w+ )?nie(?=.* \w+e[lr]?n\W*$))\b(?! (?:wieder|mehr|noch)\b)(?=.* )",
        # "Toujours" is "still" as well, but not before what is to be done, and not after "to have" and "to be".
        r"toujours (?=\w+(?:er|ir|re|ez)\b)|(?:jamais|siempre|nunca|sempre)\b"
        r"|(?:on|nous|ne|n')\s?(?!(?:n'|a|est|avons|sommes)\b)(?:\w+ ){1,3}(?:toujours|jamais)\b",
        r"(?:мы )?(?:всегда|никогда)\b|(?:常に|必ず|絶対に|总是|始终|务必|一律|永远不要|绝不|千万不要)(?=.)",
        r"(?:whenever|every ?time|any ?time) you\b(?=.*,)|(?:[\w`'/.*-]+ ){1,5}?(?:should|must|shall) (?:just )?(?:always|never)\b",
        _FOR_ALL + r"(?:(?:should|must|needs? to) )?(?:start|end|begin)s? with\b",
        r"(?:i|we)(?:'d| would)? (?:want|need|like) (?:(?:all|every|each|our|your) )?(?:[\w-]+ ){1,3}to (?:always|never|start|end|begin)\b",
        r"(?:i|we)(?:'d| would)?(?: also)? (?:want|like|need)(?: us)? to emphasi[sz]e (?:that|the (?:importance|use|consistent use) of) (?=.*\b(?:in|for|to|with) (?:all|every|each|any|your|our)\b)",
        r"(?:one|another|an?) (?:[\w'’-]+ ){0,5}?(?:practice|convention|rule|standard|thing)s? (?:that )?(?:we|i)\b(?: [\w'’-]+){1,7}? is (?:to |the (?:use|inclusion) of |always |\w+ing |end |start )",
        r"(?:we |start )?(?:start|end|begin|prefix|suffix|name)(?:n?ing)? (?:(?:all|every|each|our|your|the names? of|names of) )*(?:(?!the|a|this)[\w-]+ |the (?=(?:\w+ )?name))?"
        r"(?:[\w-]+ )?(?:names?|them|methods|functions|variables|classes|files|branches|commits|tests) (?:with|by|in|using|after)\b",
        r"(?:we (?:include|use)|start (?:using|including|adding|writing)) (?!.*\b(?:this|that|these|those)\b)(?=.*\b(?:in|for|within) (?:all|every|each|any|your|our)\b)",
    ),
    *_markers(
        "preference",
        r"(?:we|i|our team) (?:use|prefer|write|run|name|call|deploy|test|keep|build|pin|store)s? (?=.*(?:,? not |\b(?:instead of|rather than|over)\b))",
        r"(?:we|our team) (?:use|prefer)s? [\w.+#/@-]+(?: (?:for|in|as) [\w /-]+)?\W*$",
        r"we(?:'ve| have)? (?:now )?(?:switched|moved|migrated) (?:from [\w.+#/@ -]+ )?to\b",
        r"we no longer (?:use|write|run|name|call|deploy|test|keep|build|pin|store)\b",
        r"(?:i|we)(?: would|'d)?(?: really| strongly)? prefer\b|my preference is\b",
        r"(?:wir (?:nutzen|verwenden|benutzen|nehmen)|ich bevorzuge|(?:on|nous) (?:utilise|utilisons)|je préfère|prefiero|prefiro|usamos)\b",
        r"(?:мы используем|я предпочитаю)\b|(?:我们(?:使用|用|只)|我(?:更)?喜欢)",
    ),
)
#: What is proposed for review: it may be an order for the work at hand, or describe what the product does.
PROPOSALS = (
    *_markers("preference", r"(?:prefer|use|call|name|write) (?=.*\b(?:instead of|rather than)\b)|by default,? (?=\w)"),
    *_markers(
        "policy",
        r"(?:always|never) " + _SHOWS + r"|(?:use|include) (?=.*\b(?:in|for|within) (?:all|every|each|any) \w)",
        r"required: (?=\w)|must (?!(?:be|have|say|admit|confess)\b)(?=\w)",
        r"(?!(?:you|it|this|that|i|there|they|if)\b)(?:[\w`'/.-]+ ){1,6}?must(?: not)?\b",
    ),
    *_markers(
        "fact",
        r"(?!(?:i|you)\b)(?:[\w`'/.-]+ ){1,8}?not [\w`'/.-]+(?: [\w`'/.-]+){0,3},? but "
        r"(?!(?:i|we|you|it|they|he|she|that|this|there|not|also|if|when|still|only|\w+ (?:is|are|was|has|have|can|will|does|did))\b)(?=\w)",
    ),
)
#: A clause before the marker: when or where a statement holds.
_CLAUSE = _shape(
    r"(?:when(?:ever)?|as (?:you|we)|regarding|if|for|in|on|to|before|after|besides|wenn|bei|für|quand|pour)\b[^,.!?]{2,60},\s*"
    r"|.{5,160}?(?:[,;:]| and) (?:so,? |and |also |please )*(?=(?:from now on|going forward|(?:remember|keep in mind|don't forget) that)\b)"
)
#: A question that is a request.
_REQUEST = _shape(r"(?:.*\b)?(?:can|could|would|will) you\b")
_QUESTION = _shape(
    r"(?:why|what|who|where|which|how|when do|did|does|is|are|was|were|have|has|should|shall|may|might)\b"
)
#: About now alone, a permission, a story, or only thought.
_NOT_MEANT = _shape(
    r"\b(?:for now|right now|this time|just this once|for the moment|today|tomorrow|tonight|yesterday|currently|at the moment|for this (?:one|task|pr|commit|session|step)|"
    r"in this (?:session|task|pr|commit|step|case)|feel free|whatever you (?:like|want)|anything you (?:like|want)|up to you|if you (?:like|want)|used to|"
    r"i (?:think|guess|wonder|suppose)|maybe|perhaps|let's say|suppose|pretend|lol|haha|vorerst|heute|diesmal|pour l'instant|aujourd'hui|por ahora|hoy|сейчас|пока)\b|今回|暂时|这次"
)
#: What says nothing that can be acted on alone: praise of something, or what points elsewhere.
_EMPTY = _shape(
    r".*\b(?:is|are|be)(?: always| so| very| really| all)? (?:key|important|crucial|essential|vital|valuable|critical|receptive|mindful)\b"
    r"|(?:it|its|they|these|those|this (?!is\b|project|repo|app)|that (?:is|one)|here|there|you(?:'re|r)?|we (?:want|are here)|we're here)\b"
    r"|(?:i(?:'d| would) like to|i(?:'| wi)ll|i(?:'| a)m|let's)\b"
)
_POINTS = _shape(
    # What is named further on in a sentence may be what "them" means.
    r"(?:\S+ ){0,5}(?:them|those)\b|.*\b(?:these|such|this (?!project|repo|app|codebase)\w+)\b|\w+ (?:it|this)\b|.*\b(?:this|that)\W*$"
    r"|.*\b(?:in|of|on|with|use) that \w|.*\b(?:ça|cela|ceci|esto|eso|isto|isso|это)\b"
)
_POINTING = _shape(r"(?:it|this|that|these|those|them|there|here|so|do|be|use|always|never|again|the|an?|ones?|to|of)$")
_AT_THE_END = _shape(
    r",? (?:from (?:now|here) on(?:wards?)?|going forward|moving forward|ab jetzt|désormais|dorénavant|a partir de ahora)\W*$"
)
_FIRST_PERSON = _shape(r".*\b(?:i|i'[dm]|i'll|we'll|let's)\b")
_PLAIN_WORD = _shape(r"[^\W\d_]+(?=[\s,'’])")
_TRAILING = _shape(r"(?:,? (?:please|pls|thanks|thank you|ok(?:ay)?|bitte|danke|merci))+(?=[.!?]*$)")
_REVERT = _shape(
    r"(?:revert|undo|roll(?: it)? back|take back|put (?:it|that|this|them) back|restore|back out)\b|(?:mach|nimm) \w+ (?:rückgängig|zurück)|annule\b|元に戻して"
)


class Statement(NamedTuple):
    """A preference, policy or fact that a person stated: the sentence without its lead-in, and its marker.

    On a proposal a person has to decide.
    """

    kind: str
    text: str
    marker: str
    is_proposal: bool = False


def find_statements(message: str | None) -> tuple[Statement, ...]:
    """Return what a person states in a message.

    Example:
        >>> [(one.kind, one.text) for one in find_statements("thanks! can you also remember that the CI has no Docker?")]
        [('fact', 'The CI has no Docker')]
    """
    own = own_words(message or "")
    size = len(own) + sum(has_cjk(sign) for sign in own)
    if not MIN_MESSAGE <= size <= MAX_MESSAGE:
        return ()
    found = {one.text: one for one in filter(None, map(_read_sentence, sentences(own)))}
    return () if found and find_credential(message) else tuple(found.values())


def find_credential(message: str | None) -> str:
    """Return why nothing of a message is read, if it holds a credential or held one; else an empty text."""
    if secret := find_secret(message or ""):
        return f"it holds what looks like {secret}"
    return "a credential was taken out of it" if REDACTED in (message or "") else ""


def asks_to_revert(message: str) -> str:
    """Return the sentence by which a person asks to revert a change, or "".

    Example:
        >>> asks_to_revert("Thanks. Please revert that."), asks_to_revert("I reverted it.")
        ('Please revert that.', '')
    """
    found = (one for one in sentences(message) if _REVERT.match(_without_lead(one)) and not one.endswith("?"))
    return shorten(next(found, ""), 200)


def _without_lead(sentence: str) -> str:
    lead = _LEAD.match(sentence)
    return sentence[lead.end() :] if lead else sentence


def _read_sentence(sentence: str) -> Statement | None:
    bare = _without_lead(sentence)
    is_asked = _REQUEST.match(sentence[: len(sentence) - len(bare)])
    is_question = sentence.rstrip(" )\"'").endswith(("?", "？")) and not is_asked
    if is_question or _QUESTION.match(bare) or _NOT_MEANT.search(bare):
        return None
    return _marked(bare) or _proposed(bare)


def _marked(bare: str) -> Statement | None:
    """Return what a sentence without its lead-in states by a marker at its head, after a clause, or at its end."""
    clause = _CLAUSE.match(bare)
    for head in (bare, *([_without_lead(bare[clause.end() :])] if clause else [])):
        for marker in MARKERS:
            found = marker.shape.match(head)
            if found and not (marker.is_dropped and head[found.end() :].strip(" .!") == ""):
                return _statement(marker, head[found.end() :] if marker.is_dropped else bare, found[0])
    last = _AT_THE_END.search(bare)
    if last and not _FIRST_PERSON.match(bare):
        return _statement(Marker("policy", _AT_THE_END, is_dropped=True), bare[: last.start()] + ".", last[0])
    return None


def _proposed(bare: str) -> Statement | None:
    for marker in PROPOSALS:
        found = marker.shape.match(bare)
        made = found and not bare.endswith(":") and _statement(marker, bare, found[0])
        if made:
            return made._replace(is_proposal=True)
    return None


def _statement(marker: Marker, text: str, found: str) -> Statement | None:
    has_clause = _CLAUSE.match(text) is not None
    if marker.is_dropped:
        text = _without_lead(text)
        marker = next((one for one in MARKERS if one.shape.match(text) and not one.is_dropped), marker)
    text = _TRAILING.sub("", text.strip())
    text = text.rstrip("?？ ") if marker.is_dropped else text
    words = [word for word in re.findall(r"[\w'’-]+", text) if not _POINTING.match(word)]
    least, most = _CJK if has_cjk(text) else _WORDS
    size = len(text) if has_cjk(text) else len(text.split())
    if not least <= size <= most or (len(words) < 2 and not has_cjk(text)):
        return None
    if _EMPTY.match(text) or (_POINTS.match(text) and not has_clause):
        return None
    name = " ".join(found.split()).strip(" ,:").casefold()
    text = text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text
    return Statement(marker.kind, text, name)

"""What a project has to live with: hosts and ports, limits, what needs a restart, what is so by design."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.lexicon import FARING, SHOWN
from memory_kb.learning.speech.ownwords import CODE
from memory_kb.learning.speech.phrases import any_of

_I = re.IGNORECASE | re.DOTALL
_PART = any_of(
    "staging production prod relay ingress preview demo sandbox test_(?:system|environment|server|cluster|database|db) dev_(?:system|"
    "environment|server|cluster) "
    "(?:test|build|license|licence|ci|mail|file|git|web|app|dev)_?(?:server|box|machine|host|runner|node)s? environments? ci runners? "
    "jenkins vpn proxy database db "
    "replica primary redis postgres mysql mongo kafka rabbit\\w* elastic\\w* registry gateway api apis endpoint broker queue bucket "
    "cdn load_balancer "
    "jump_host bastion host server cluster box nas mirror cron cron_\\w+ scheduler import importer agent webhooks? webhook_\\w+ sessions? tokens? "
    "quota limit uploads? column timeout vendor partner supplier backend frontend service app pods? container lambda functions? pipeline "
    "nightly_\\w+ settings? config flags?"
)
_SUBJECT = (
    rf"(?:(?:the|our|their|both|all|a|every) )?(?:[\w.'/{CODE}-]+ ){{0,3}}?{_PART}(?: (?:environment|system|server|cluster|database|db|"
    rf"box|machine|host|api|endpoint|url|instance|account)s?)?(?: (?:for|of|on|in) (?:the |our )?[\w.-]+(?: [\w.-]+)?)?"
)
_HOST = (
    rf"(?:\d{{1,3}}(?:\.\d{{1,3}}){{3}}|https?://\S+|(?:[a-z0-9-]+\.)+(?!(?:py|js|ts|tsx|jsx|md|json|ya?ml|toml|html?|css|txt|go|rs|"
    rf"java|rb|sh|sql|log|png|jpe?g|svg|cfg|ini|env|lock|csv)\b)[a-z]{{2,}}\b|port \d{{2,5}}|{CODE}{{4,}})"
)
_BEHIND = (
    r"(?:the |our |a )?(?:company |corporate )?(?:vpn|proxy|jump ?host|bastion|firewall|tunnel|tailscale|wireguard|load balancer|"
    r"office network|intranet)"
)
_AT = lazy_compile(
    rf"{_SUBJECT} (?:is |are |lives? |runs? |sits? |listens? |answers? )(?:only |just )?(?:reachable |available |accessible |hosted |"
    rf"deployed |mounted )?(?:only )?"
    rf"(?:on|at|behind|under|in|via|through|from|over) (?:{_HOST}|{_BEHIND})",
    _I,
)
_UNITS = any_of(
    r"cores? cpus? gb mb tb gib mib kb threads? slots? workers? connections? (?:parallel|concurrent)_\w+ req\w* calls? messages? "
    r"records? items? rows "
    r"addresses ids seats licen[cs]es seconds? minutes? mins? hours? days? ms retries attempts replicas nodes"
)
_NUMBER = r"(?:\d[\d.,]*k?|one|two|three|four|five|six|eight|ten|a single)"
_BOUND = lazy_compile(
    rf"{_SUBJECT} (?:(?:only|just) )?(?:has|have|comes with|allows?|accepts?|permits?|supports?|takes?|handles?|is limited to|are "
    rf"limited to|is capped at|are capped at|"
    rf"expires? after|times? out after|is valid for|are valid for|lags?(?: by| behind(?: by)?)?|holds?|throttles?(?: at)?|is|are) "
    rf"(?P<least>(?:(?:only|just|max(?:imum)?|at most|up to|no more than|of|about) )*){_NUMBER} ?(?:\w+ )?{_UNITS}\b(?P<rest>.*)",
    _I,
)
_STRICT = lazy_compile(
    rf"(?:the|our|their|this) (?!(?:\w+ )?(?:function|method|class|loop|parser|script|list|query|worker|test|job|field|table|view|input|"
    rf"file) )(?:[\w-]+ ){{1,3}}?(?:only |just )?"
    rf"(?:allows?|accepts?|permits?|is limited to|is capped at|times? out after|throttles? at|rate[- ]limits (?:us )?(?:to|at)) "
    rf"(?:(?:only|just|max(?:imum)?|at most|up to|about) )*"
    rf"{_NUMBER} ?(?:\w+ )?{_UNITS}\b(?P<rest>.*)",
    _I,
)
_LIMITING = lazy_compile(
    (
        r"\b(?:only|just|max(?:imum)?|at most|up to|no more than|limit\w*|capped|allows?|accepts?|permits?|per|expires?|times? out|valid|"
        r"lags?|throttles?)\b"
    ),
    _I,
)
_TAKEN = lazy_compile(
    (
        rf"(?:on [^,;:.?!\n]{{2,40}},? )?(?:the )?port {_NUMBER}(?: (?:on|of) [^,;:.?!\n]{{2,40}}?)? (?:is|are) (?:always )?(?:taken|used|"
        rf"occupied|reserved|blocked|in use) (?:by|for) (?!(?:another|the other|some other|my|an old|something|someone)\b)\S"
    ),
    _I,
)
_NEEDED = lazy_compile(
    (
        rf"(?:you|we|one) (?:always |only )?(?:need|have to use|have to be on|must be on|can only \w+ (?:it )?(?:through|via|over)) "
        rf"{_BEHIND}(?: \w+)?(?: for| to\b|\s*[.!]*$)"
    ),
    _I,
)
_RESTART = lazy_compile(
    r"[^?!\n]{6,120}?\b(?:(?:needs?|requires?|takes?) an? (?:full |clean |manual )?(?:re-?start|re-?build|re-?deploy\w*|reboot|"
    r"re-?login|cache flush|re-?index)\b|"
    r"(?:gets?|is|are) (?:baked in(?:to)?|compiled in(?:to)?|read (?:only )?once|loaded (?:only )?once|only (?:read|loaded) (?:once|at))\b)",
    _I,
)
_BY_DESIGN = lazy_compile(
    r"(?!(?:i|you|he|she|they|what|why|is|are|if|was)\b)[^?!\n]{6,120}?\b(?:is|are|stays?|has|have|uses?|needs?|returns?|"
    r"that's)\b[^?!\n]{0,80}?\b(?:by design|on purpose|"
    r"intentional(?:ly)?|deliberate(?:ly)?|you can (?:rely|count) on (?:that|it)|that's a given|and that stays so)\b",
    _I,
)
_FIXED = lazy_compile(
    rf"{_SUBJECT} (?:is|are) (?:strictly )?(?:read-only|append-only|immutable|write-once)\b(?!.*\b(?:make|change)\b)",
    _I,
)
_SOURCE = lazy_compile(
    rf"(?:(?:the |our |all )?(?:[\w'{CODE}-]+ )?(?:secrets?|credentials|config|configuration|settings|env vars|keys|certificates|certs|"
    rf"docs|artifacts?|images|translations|"
    r"writes|reads|traffic|logs|metrics|backups|emails?|mails?|payments|invoices)) (?:only |always )?(?:comes?|goe?s?|lives?|are sent|"
    r"are kept|are stored|is kept|end up) "
    rf"(?:only )?(?:from|to|in|through|via|on) (?:(?:the |a |our )?(?-i:[A-Z]\w+)|{_HOST}|[^,;?!\n]{{2,40}}, never)",
    _I,
)
_IDLE = lazy_compile(r"\b(?:it makes no sense|there is no point|no point in|pointless|useless)\b", _I)
_NOTICE = lazy_compile(
    r"(?:fyi|heads[- ]up|for context|for your information|just so you know|so you know|keep in mind|note)\b[,:]?\s*(?:that )?",
    _I,
)
_HOLDS = lazy_compile(
    r"\b(?:always|never|only|every|each|by default|whenever|needs|requires|expects|must|cannot|can't|doesn't|does not|don't)\b",
    _I,
)
_PERSONAL = lazy_compile(r"(?:i|we|you|he|she|they|it|this|that|these|those|there)\b(?! (?:need|have to)\b)", _I)
_DO = lazy_compile(
    r"[,;.] (?:so |and |then |please )*(?:change|open|fix|move|add|remove|make|look|check|see|rename|delete|can you|could you|increase|raise|"
    r"restart|update)\b|\b(?:what|which) now\b|\bon my\b",
    _I,
)


def read_surrounding(core: str, lead: str = "") -> str | None:
    """Return `statement` for a sentence that tells of what surrounds a project and stays; nothing for others.

    Args:
        core: the sentence without its lead.
        lead: what stands before it, which may say that the reader should know.

    Example:
        >>> [read_surrounding(one) for one in ("the mail api takes max 20 calls per minute", "the server has been down for 3 hours")]
        ['statement', None]
        >>> [read_surrounding(one) for one in ("Staging lives at stage.acme.lan", "staging is broken", "port 81 is taken by the old proxy")]
        ['statement', None, 'statement']
    """
    if _DO.search(core):
        return None
    if _BY_DESIGN.match(core) and not FARING.search(core):
        return "statement"
    if SHOWN.search(core):
        return None
    if FARING.search(core) and not _LIMITING.search(core):
        return None
    if _NOTICE.search(lead) and _HOLDS.search(core) and not _PERSONAL.match(core) and not FARING.search(core):
        return "statement"
    if any(one.match(core) for one in (_AT, _TAKEN, _NEEDED, _FIXED, _SOURCE)) and not FARING.search(core):
        return "statement"
    if _RESTART.match(core) and not _PERSONAL.match(core) and not FARING.search(core):
        return "statement"
    found = _BOUND.match(core) or _STRICT.match(core)
    return (
        "statement"
        if found and (_LIMITING.search(core) or _IDLE.search(core)) and not FARING.search(found["rest"].split(",")[0])
        else None
    )

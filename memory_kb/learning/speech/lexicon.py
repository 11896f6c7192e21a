"""What the words of a sentence are about: a kind of things, the thing at hand, what is on the screen, what is broken."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.observation.commandlines import TOOLS
from memory_kb.learning.speech.ownwords import CODE

_I = re.IGNORECASE
#: Words that pick one thing, or one out of some.
PICKING = lazy_compile(
    r"\b(?:the|this|that|these|those|an?|my|your|his|her|its|their|it|them|one|two|three|four|both|some|another|other|others|same|first|second|"
    r"third|last|next|previous|current|new|old|left|right|me|him|us|let|let's|lets|why|if|maybe|probably|absolutely|certainly|rather|"
    r"but|so|then|just|also|could|may|might|when|while|because|until|unless|mine|yours|we|we're|we've|it's|i|i'm|you|you're|he|she|"
    r"they|that's|there's|not|no|and|or|is|are|was|were|has|have|do|does|did|can|will|should|would|must|here|there|what|which|who|"
    r"something|anything|nothing|everything)\b",
    _I,
)
#: What is seen of a program, and how it looks.
SHOWN = lazy_compile(
    r"\b(?:buttons?|pages?|screens?|dialog(?:ue)?s?|modals?|menus?|headers?|footers?|sidebars?|navbars?|toolbars?|cards?|layouts?|"
    r"dropdowns?|tooltips?|"
    r"icons?|logos?|charts?|dashboards?|links?|popups?|widgets?|spinners?|banners?|checkbox(?:es)?|sliders?|badges?|avatars?|placeholders?|"
    r"paddings?|margins?|pixels?|px|bold|italics?|background(?! jobs?| workers?| tasks?)|foreground|scroll\w*|hover\w*|click\w*|forms?|"
    r"visitors?|customers?|players?|guests?|readers?|shoppers?|enem(?:y|ies)|feed|paragraphs?|headlines?|captions?|(?:web)?site|"
    r"slides?|screenshots?|toasts?)\b",
    _I,
)
#: How something fares that does not work, or just now.
FARING = lazy_compile(
    r"\b(?:again|still|yet|broken|down|fail\w*|crash\w*|wrong(?:ly)?|twice|empty|null|undefined|missing|stuck|slow(?:ly)?|weird\w*|"
    r"odd(?:ly)?|somehow|"
    r"suddenly|hang(?:s|ing)|since|now|today|yesterday|tonight|tomorrow|currently|right now|already|flickers?|jumps|dies|died|killed|lost|gone|"
    r"error(?:s|ed)? out|time[sd]? out|timing out|expired|unreachable|no idea|where|look(?:s|ing)?|[45]\d\d|\d+ ?%|i|i'm|i've|i'd|i'll|my|me|"
    r"expected|conflicts?|left|done|finished)\b|n't work",
    _I,
)
#: What one thing is meant for, which makes it one thing.
_INSTANCE = lazy_compile(
    r"\b(?:for|in|on|at|to|of|from|into|with|by) (?:the|this|that|my|your|a|an|each|his|her) (?!(?:whole |entire )?(?:repo|repository|project|code|"
    r"codebase|code base|monorepo|frontend|front-end|backend|back-end|workspace|team|company|app|\w+ (?:code|layer|package|module)|\w+(?: \w+)? "
    r"(?:tests|apps|services|packages|modules|components|scripts|builds|queries|migrations|docs))\b)",
    _I,
)
_LASTING = lazy_compile(
    (
        r"\b(?:in|across|throughout|for) (?:this|our|the) (?:whole |entire )?(?:repo|repository|project|code ?base|monorepo|team|company|"
        r"workspace|package|service)\b"
    ),
    _I,
)
_COLOURS = "red green blue black white yellow grey gray orange purple pink brown cyan magenta dark light bright"
# Words of every program, which name what a line of it does and not what a project is built with.
_COMMON = frozenset(
    f"{_COLOURS} string strings str integer integers int ints float floats number numbers bool boolean booleans array arrays list "
    f"lists dict dicts map "
    "maps set sets tuple tuples object objects class classes struct structs enum function functions method methods variable variables "
    "constant constants "
    "field fields property properties attribute attributes parameter parameters argument arguments value values key keys index loop loops for while "
    "if else switch case try catch throw raise return get post put patch delete head options margin padding flex grid block inline row rows column "
    "columns table tables div span image images text texts name names id ids email url urls path paths file files folder folders "
    "directory line lines "
    "word words char chars letter letters byte bytes bit bits top bottom center centre middle left right bold italic vertical horizontal long short "
    "big small large tiny wide narrow high low fast slow async sync public private static local global absolute relative yes no true false none null "
    "one two three four five six seven eight nine ten first second third last total sum count max min average mean start end begin "
    "stop open close on "
    "off in out up down here there now later today tomorrow aligned centered centred sorted ascending descending asc desc upper lower uppercase "
    "lowercase part parts step steps page version branch main master develop staging production prod dev test tests data query result results input "
    "output request response user users admin time date day days week month year hour minute second seconds minutes hours equal greater less more "
    "many few all any both each some only just really quite too very sure nice good bad better worse best worst great fine ok okay right wrong "
    "formal casual friendly serious simple complex easy hard new old same other different certain clear obvious reading writing running bug bugs "
    "feature features error errors problem problems issue issues idea ideas question questions thing things stuff way ways reader writer parser "
    "option options plan variant approach copy copying paste reference helper tabs cards tab card modal dialog because what when how that this it "
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august october november december "
    "percent percentage points pixels absolute fixed auto manual button buttons link links radio checkbox select dropdown icon icons".split()
)
#: Ways of writing that one may be told to keep to, whatever the words they are made of.
_WAYS = frozenset(
    [
        "arguments",
        "types",
        "queries",
        "methods",
        "variables",
        "files",
        "names",
        "imports",
        "exports",
        "quotes",
        "returns",
        "clauses",
        "hints",
        "literals",
        "comprehensions",
        "components",
        "functions",
        "classes",
        "props",
        "expressions",
    ]
)
_JOINING = frozenset(
    [
        "from",
        "to",
        "in",
        "on",
        "at",
        "by",
        "with",
        "of",
        "as",
        "come",
        "comes",
        "go",
        "goes",
        "live",
        "lives",
        "use",
        "uses",
        "run",
        "runs",
        "get",
        "gets",
        "need",
        "needs",
        "make",
        "makes",
        "take",
        "takes",
    ]
)
_TOOL = lazy_compile(rf"(?:{'|'.join(sorted(TOOLS, key=len, reverse=True))})", _I)
# A part of something, or a path; a library may be called after its ending.
_MEMBER = lazy_compile(r"\w\.(?!(?:js|io|net|dev|ai|py|rs|sh|css|ts)$)\w|^[^@]*/|\(")
_NO_NAME = lazy_compile(r"\w+(?:ly|ing|ed)$", _I)


def is_kind(phrase: str) -> bool:
    """Tell whether a phrase names a kind of things rather than one, and nothing that is on a screen.

    Example:
        >>> is_kind("arrow functions"), is_kind("the other function"), is_kind("two columns"), is_kind("red")
        (True, False, False, False)
    """
    words = phrase.lower().split()
    return (
        0 < len(words) <= 5
        and PICKING.search(phrase) is None
        and SHOWN.search(phrase) is None
        and not any(word.strip(",") in _COLOURS.split() or word.isdigit() for word in words)
        and re.fullmatch(r"\d+\w{0,2}", words[0]) is None
    )


def is_choice(phrase: str) -> bool:
    """Tell whether a phrase names something that a project is built with or written by: a tool, a library, a way.

    Example:
        >>> [is_choice(one) for one in ("ripgrep", "Gradle", "early returns", "left", "a map", "rows", "POST")]
        [True, True, True, False, False, False, False]
    """
    words = [word.strip(",").lower() for word in phrase.split()]
    if not is_kind(phrase) or len(words) > 4:
        return False
    if _TOOL.fullmatch(phrase) or (len(words) > 1 and words[-1] in _WAYS):
        return True
    if len(words) == 1:
        return (
            words[0] not in _COMMON
            and CODE not in words[0]
            and _MEMBER.search(words[0]) is None
            and _NO_NAME.match(words[0]) is None
            and len(words[0]) > 1
        )
    return words[-1] not in _COMMON and not any(word in _JOINING for word in words)


def is_at_hand(tail: str) -> bool:
    """Tell whether what follows a choice binds it to one thing.

    Example:
        >>> is_at_hand(" for the login call"), is_at_hand(" for the browser tests"), is_at_hand(" please")
        (True, False, False)
    """
    tail = _LASTING.sub("", tail)
    return (
        _INSTANCE.search(tail) is not None
        or re.search(r"\b(?:here|there|just|only|it|this|that|these|those|once)\b", tail, _I) is not None
    )


#: What a team has rules about how to write and to do, one or many.
WORK = (
    r"(?:(?:commit|branch|merge|rebase|tag|release|deploy|deployment|pr|pull request|merge request|push|review|migration|test|endpoint|route|handler|"
    r"service|job|query|querie|component|hook|module|package|library|librarie|import|export|plugin|function|method|class|file|script|"
    r"docstring|comment|"
    r"message|exception|error|name|changelog|variable|table|column|dependency|dependencie|type|model|schema|constant|config|setting|secret|password|"
    r"key|token|id|timestamp|date|price|amount|mail|email|translation|api|image|container|version|ticket|flag|fixture|snapshot|mock|event|metric|url|"
    r"upload|build|webhook|request|response|permission|string|log|env var|identifier|currency|currencie|backup|artifact|example|sample|notebook|"
    r"template|password|credential|feature|header file|struct|enum|interface|boolean|number|constructor|repo|repository|repositorie|resource|"
    r"prompt|doc|guide|readme|spec|story|storie|helper|util|stylesheet|style)(?:e?s)?)"
)

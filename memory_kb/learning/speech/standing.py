"""Instructions that hold for more than this once by their own words, without `always` or `never`.

What is told of in the plural or of this repository, and what is to be done before or after every
change of some sort, is standing; an order about the thing at hand is worded differently. Each
expression is tried like those of `phrases`, and only where those find nothing.
"""

from __future__ import annotations

from memory_kb.learning.observation.commandlines import TOOLS
from memory_kb.learning.speech.ownwords import CODE
from memory_kb.learning.speech.phrases import MATTERS, PARTICIPLE, any_of, compile_all

_TOOL = rf"(?:{'|'.join(sorted(TOOLS, key=len, reverse=True))})"
#: Ways of writing that one may be told to keep to.
_STYLE = any_of(
    "tabs spaces (?:single|double)_quotes semicolons snake.case camelcase kebab-case pascalcase screaming.snake.case title_case sentence_case "
    "(?:british|american)_(?:spelling|english) english german french utc iso(?:_8601)?(?:_dates)? early_returns guard_clauses "
    "(?:named|default|absolute|relative|wildcard|star)_(?:imports|exports) type_hints conventional_commits the_imperative(?:_mood)? "
    "present_tense past_tense composition inheritance f-strings raw_sql trailing_commas lf crlf async/await promises callbacks hooks "
    "(?:functional|function|class)_components interfaces type_aliases enums dataclasses hungarian_notation"
)
_HERE = (
    r"(?:in|across|throughout|within) (?:this|our) (?:whole )?(?:repo|repository|project|code ?base|monorepo|workspace)"
)
_ANY_THING = r"(?!(?:the|this|that|these|those|a|an|it|them|my|your|his|her|their|its|some|one|two|three|both|another|more|less|fewer)\b)"
#: Many of a kind, without an article or as those of the team.
_PLURAL = (
    rf"(?:(?:all|any|our) )?(?!(?:the|this|these|those|my|your|his|her|its|their)\b)(?:[\w.{CODE}-]+ ){{0,2}}?(?!\w+(?:ss|us|"
    rf"is)\b)[\w{CODE}-]+s"
)
_LANGUAGE = any_of(r"python typescript javascript go rust java kotlin c# c\+\+ ruby php swift scala sql")
_CODE = (
    rf"(?:(?:the|our|any) )?(?:library|production|prod|test|application|app|domain|business|front-?end|back-?end|client|server|async|public|shared|"
    rf"new|core|kernel|{_LANGUAGE}) (?:code|files|modules|paths?)"
)
_FORBIDDEN = r"(?:please )?(?:don't|do not|dont|avoid)"
_DONT_USE = (
    rf"(?:please )?(?:(?:don't|do not|dont) {any_of('use call import mock stub log throw raise catch swallow nest rely_on hard-?code')}|"
    rf"avoid(?! (?:changes|confusion|mistakes|duplicates|\w+ing)\b))"
)
_MADE = r"(?:(?:auto-?|machine-?)?generated|vendored|third-party|compiled|minified|snapshotted)"
_DEV = any_of(
    "run re-?run regenerate rebuild restart update migrate re-?sync sync format lint typecheck type-check test build re-?build bump install "
    "re-?install execute tag rebase pull squash"
)
_DOING = any_of(
    "committing pushing merging releasing deploying tagging publishing shipping rebasing "
    "(?:every|each|any|all)_(?:commits?|push(?:es)?|merges?|releases?|deploy(?:ment)?s?|prs?|pull_requests?|tags?) "
    "opening_(?:a|any)_(?:pr|pull_request|merge_request|mr) you_(?:commit|push|merge|release|deploy|tag|publish|open_a_(?:pr|pull_request))"
)
_CHANGED = (
    rf"(?:changing|editing|touching|modifying|adding|renaming|upgrading|removing|you (?:change|edit|touch|modify|add|rename|upgrade|remove))"
    rf" (?:(?:a|an|any|the) )?(?!(?:new )?(?:test|this|that)\b)[^,;:.!?\n]{{0,30}}?(?:\b(?:{MATTERS}|schema|protos?|models?|templates?|translations?|"
    rf"lockfile|openapi|grammar|fixtures?|stories|locale)s?\b|[\w{CODE}]*\.\w{{2,5}} files?\b)"
)
_OCCASION = (
    rf"(?:before (?:{_DOING})(?: (?:to|into|on) (?:main|master|develop|staging|production|prod))?|(?:after|whenever|when|every time|each "
    rf"time) {_CHANGED})"
)
_END = r"(?=\s*(?:[.;!]|, (?:or|because|since|otherwise|as|so that|CI|ci)\b|\s\(|\s[—–-]|$))"
_BE = any_of(
    "in_(?!the_(?!imperative|present|past)) under at_most lower-?case upper-?case snake.case camelcase kebab-case singular plural short "
    "imperative written prefixed sorted signed squashed"
)
_TEXTS = any_of(
    "commit_messages commit_subjects commits branch_names branches pr_titles pull_requests docstrings comments (?:variable|function|class|file|table|"
    "column|test|field|method|module|package|event|metric)_names log_messages error_messages changelog_entries migrations endpoints urls "
    "timestamps public_functions unit_tests integration_tests"
)
_KEEPS = any_of(
    "use run write keep put name format test deploy follow prefer mock pin tag squash rebase merge commit log store generate vendor document throw "
    "return avoid lint sign version wrap validate translate prefix indent"
)
#: Who must not do what: the code of the team, in the plural.
_ACTORS = any_of(
    "tests services handlers workers migrations jobs endpoints controllers models modules libraries packages builds pipelines clients resolvers "
    "reducers repositories serializers validators adapters consumers producers lambdas"
)
_DOES = any_of(
    "hit call talk touch access read write depend rely import use share store log connect open send mutate modify block know contain leak expose "
    "query fetch create delete drop raise throw swallow print sleep need require reach mock"
)
_OF_THESE = any_of(
    "new old two three four both other first second third last next remaining failing same slow flaky broken following above"
)
_PLACE = rf"(?:{_CODE}|(?:production|prod)\b|(?:our [\w-]+s|(?:(?:unit|integration|end-to-end|e2e|react|vue|api) )?(?:{_ACTORS}|components))\b)"
_DATA = any_of(
    "be_(?:logged|stored|saved|persisted|sent|shared|exported|cached|transferred|printed|exposed|committed|hard-?coded|returned|written|kept) leave "
    "appear_in_(?:the_|our_|any_)?logs? end_up_in_(?:the_|our_|any_)?logs?"
)
_PRIVATE = r"(?!(?:the )?(?:button|page|menu|dialog|header|footer|icon)\b)(?:(?:the|any|a|an) )?(?:[\w-]+ ){0,3}?[\w-]+"

PREFERENCE = compile_all(
    rf"(?:please )?(?:use|prefer|write|keep to|follow|stick (?:to|with)|format|name|indent with) {_ANY_THING}(?P<span>[^.;:!?\n]{{2,60}}? "
    rf"{_HERE})\b(?! to \w){_END}",
    rf"(?:please )?use (?P<span>(?:{_TOOL}|{_STYLE}),? (?:not|instead of|rather than|over|never) (?:{_TOOL}|{_STYLE})(?:,? (?:for|in) "
    rf"{_PLURAL})?){_END}",
    rf"(?:please )?(?:use|prefer|write) (?P<span>{_STYLE} (?:for|in) (?:{_CODE}|{_PLURAL})){_END}",
    rf"{_DONT_USE} {_ANY_THING}(?P<span>[^.;:!?\n]{{2,50}}? in {_PLACE}){_END}",
    rf"{_FORBIDDEN} import (?P<span>(?:from )?{_PLURAL} (?:in|into|from) {_PLURAL}){_END}",
    rf"{_FORBIDDEN} (?:touch|edit|change|modify|hand-edit|commit|format|lint|review) (?P<span>(?:the |any )?{_MADE} (?:files?|code|sources?|clients?|"
    rf"types|modules|assets|output)(?: (?:in|under|below|inside) [^,;:!?\s]+)?(?: by hand| manually)?){_END}",
    r"(?:please )?(?:don't|do not|dont) (?P<span>(?:commit|push|merge|deploy|release)(?: anything| changes)? (?:directly|straight) "
    r"(?:to|into|on|from) "
    rf"(?:main|master|trunk|develop|production|prod|the main branch|the default branch)){_END}",
    rf"(?:please )?(?:(?:make sure|be sure|ensure|see to it)(?: to| that you| you)?|to) (?P<span>{_DEV} [^.;:!?\n]{{2,60}}? {_OCCASION}){_END}",
    rf"(?:please )?(?P<span>{_DEV} [^.;:!?\n]{{2,50}}? (?:before (?:each|every|any|all) (?:commit|push|merge|release|deploy(?:ment)?|pr|tag)|"
    rf"before (?:committing|pushing|merging|releasing|deploying|publishing)|(?:whenever|every time|each time) {_CHANGED})){_END}",
    rf"{_HERE},? (?P<span>(?:we|you|everybody|everyone|all of us) (?:always |never |only |don't |do not )?{_KEEPS}s? "
    rf"(?!\w+ing\b){_ANY_THING}[^.!?\n]{{2,80}}?){_END}",
    rf"{_HERE},? (?P<span>(?:all )?(?!this\b)[\w-]+s (?:are|is) (?:always |never |only )?(?:named|wrapped|prefixed|sorted|{PARTICIPLE}) "
    rf"(?:with|by|as|in|from|to|under|via|on|through|before|after) [^.!?\n]{{2,60}}?){_END}",
    rf"(?:(?:all|our) )?(?P<span>{_TEXTS} should (?:always |never |not |only )?(?:be {_BE}(?:\b|(?<= ))|start with|end with|"
    rf"(?:mention|reference) (?=(?:the|a|an) (?:ticket|issue|pr)\b)|(?:use|follow|contain|mention|reference) (?!what\b|how\b){_ANY_THING})"
    rf"[^.;!?\n]{{0,60}}?){_END}",
)
CONSTRAINT = compile_all(
    rf"(?:the |our |all )?(?P<span>(?!{_OF_THESE}\b)(?:[\w-]+ )?{_ACTORS} (?:must(?:n't| not| never)|may not|are not allowed to) "
    rf"{_DOES}\b[^.;!?\n]{{2,70}}?){_END}",
    rf"(?:for|of) (?!(?:the|this|that|these|those|my|your|now)\b)(?:[\w-]+ ){{0,2}}?[\w-]+s,? (?P<span>{_PRIVATE} must(?:n't| not| never) (?:ever )?"
    rf"{_DATA}[^.;!?\n]{{0,40}}?){_END}",
    rf"(?P<span>(?!(?:the|this|that|these|those|my|your|its)\b)(?:[\w-]+ )?(?!\w+(?:ss|us|is)\b)[\w-]+s (?:must(?:n't| not| never)|"
    rf"may (?:not|never)) (?:ever )?{_DATA}[^.;!?\n]{{0,60}}?){_END}",
    rf"(?P<span>(?!(?:the|this|that|these|those|{_OF_THESE})\b)(?:[\w-]+ )?(?:{_ACTORS}|{MATTERS}s) mustn't (?!(?:fail|break|"
    rf"crash)\b)[^.;!?\n]{{4,70}}?){_END}",
    rf"(?:you|we) (?:have to|need to|must) (?P<span>{_DEV} [^.;:!?\n]{{2,60}}? {_OCCASION}){_END}",
)

"""Recognise credentials by their shape, so that none is stored (S1-28)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

# How people introduce a credential in their own words, and what it is made of then.
_FOR = (
    r"(?:(?:for|on|there|here|of|to|auf|für|zu[rm]?|pour|du|de|para|do|da|del|per|voor|van)(?:\s(?:the|my|our|der|die|das|le|la|el|o|il))?"
    r"(?:\s[\w@.-]{1,40}){0,2}\s)?"
)
_IS = rf"[\"'`]?(?:\s{{0,9}}[:=：→]\s{{0,9}}|\s{{1,3}}{_FOR}(?:is|lautet|ist|est|c'est|es|é|è)\s{{1,3}}|\s?(?:は|是|为)\s?)[\"'`]?"
_BY_NAME = (
    r"(?i:(?<![A-Za-z0-9])(?:password|passwd|passphrase|passcode|pass|pw|pwd|passwort|kennwort|mot de passe|mdp|contraseña|senha|wachtwoord)(?![\w-])"
    r"|パスワード|合言葉|密码|密碼|口令)"
)
_TERSE = r"(?i:(?<![A-Za-z0-9])(?:pw|mdp)(?![\w-]))"
_PAIR = (
    r"(?i:(?<![A-Za-z0-9])(?:credentials?|creds|login|zugangsdaten|identifiants|credenciales|credenciais|credenziali|inloggegevens)(?![\w-]))"
    r"(?:\s{0,3}[:=：]|\s{1,3}(?:is|are|sind|sont|son|são|sono|zijn))?\s{1,3}[\"'`]?[\w.@-]{1,60}[\"'`]?\s?[/:]\s?[\"'`]?"
)
_PIN = r"(?i:(?<![A-Za-z0-9])(?:pin|pin[ -]?code|passcode|code pin)(?![\w-])|暗証番号)"
_OF = r"(?:api|access|auth|secret|licen[cs]e|deploy)[ _-]?"
_TOKEN = (
    rf"(?i:(?<![A-Za-z0-9])(?:(?:{_OF})?(?:token|secret)|{_OF}key|(?:api|zugangs)[ -]?schlüssel|jeton|clé (?:d['’])?api|clave (?:de )?api"
    r"|chave (?:de |da )?api|chiave api|api[ -]?sleutel)(?![\w-])|トークン|(?:API|シークレット)キー|令牌|密钥)"
)
#: A word with a number behind it is the name of a thing; letters and digits in turns, or signs, are none.
_RANDOM = r"(?:(?=[^\s\"'`]{0,80}\d[A-Za-z])(?=[^\s\"'`]{0,80}[A-Za-z]\d)|(?=[^\s\"'`]{0,80}[!#%^&*])|(?=[^\s\"'`]{0,80}-\d{4}(?![\w-])))"
#: What a service gives out with its mark in front: no name of a thing has a digit, or so many capitals, in one run behind it.
_MARKED = r"[A-Za-z]{2,8}[_-](?=[A-Za-z0-9]{0,100}(?:\d|(?:[a-z]{1,9}[A-Z]{1,9}){3}))[A-Za-z0-9]{12,200}"
_NO_VALUE = (
    r"(?!argon2|sha\d|md5|bcrypt|scrypt|pbkdf2|base64|(?i:oauth|auth|utf|https?:|field|step|v?\d+\.\d)|[\w.-]{1,80}[(/]"
    r"|\S{0,80}(?:hashed|encoded|encrypted|based|characters?|digits?)\b)"
)
_SIGNS_OF_ONE = "A-Za-z0-9+/_!@#%^&*~=$-"
_VALUE = (
    rf"{_NO_VALUE}(?=[^\s\"'`]{{0,200}}[0-9])(?=[^\s\"'`]{{0,200}}[A-Za-z])"
    rf"(?P<value>[{_SIGNS_OF_ONE}][{_SIGNS_OF_ONE}.]{{4,200}}[{_SIGNS_OF_ONE}])"
)
_COUNTED = r"\s?(?:digits?|characters?|chars?|numbers?|times|rows|Ziffern|Stellen|Zeichen|chiffres|dígitos|cifre|cijfers|桁|位)"
_NUMBER = rf"(?P<value>\d{{4,8}})(?![A-Za-z0-9_%]|[.,:/-]\d|{_COUNTED})"

_SHAPES: tuple[tuple[str, str], ...] = (
    ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    ("an AWS access key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    ("a GitHub token", r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("a GitLab token", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
    ("a Slack token", r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Stripe key", r"(?<![A-Za-z0-9])(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    ("an API key", r"(?<![A-Za-z0-9])sk-(?:ant-|proj-|svcacct-|or-)?(?=[A-Za-z0-9_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}"),
    ("a Google API key", r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}"),
    ("an npm token", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}"),
    ("a PyPI token", r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{50,}"),
    ("a Hugging Face token", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
    ("a SendGrid key", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (
        "an access token",
        (
            r"(?<![A-Za-z0-9])(?:do[opr]_v1_[a-f0-9]{64}|dckr_pat_[A-Za-z0-9_-]{20,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|hvs\.[A-Za-z0-9_-]{24,}"
            r"|lin_api_[A-Za-z0-9]{32,}|ATATT3[A-Za-z0-9_=-]{50,}|AGE-SECRET-KEY-1[A-Z0-9]{50,})"
        ),
    ),
    (
        "a password of a request",
        (
            r"(?<![A-Za-z0-9_-])(?:curl|wget|https?|xh)\s[^\n|;&]{0,300}?(?<=\s)(?:-u|--user|-a|--auth)[\s=][\"']?[^\s:\"'$]{1,80}:"
            r"(?![$<{*])(?P<value>[^\s\"'@]{4,200})"
        ),
    ),
    (
        "a bearer token",
        r"(?i)(?<![A-Za-z0-9])bearer\s+(?=[A-Za-z0-9._~+/-]{0,200}[0-9])(?P<value>[A-Za-z0-9._~+/-]{20,})",
    ),
    ("a signed web token", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    (
        "a password in an address",
        r"(?<![A-Za-z0-9])[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,200}:(?!\*+@|\$|\{|<|x+@|password@|pass@|secret@)(?P<value>[^\s/@]{3,200})@",
    ),
    (
        "a password or key",
        (
            r"(?i)(?<![A-Za-z0-9])(?:[A-Za-z0-9]{1,30}[_-]){0,4}"
            r"(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|auth[_-]?token)[\"']?\s{0,9}[:=]\s{0,9}[\"']?"
            r"(?=[^\s\"']{0,200}[0-9])(?=[^\s\"']{0,200}[A-Za-z])(?P<value>[A-Za-z0-9+/_.!@#%^&*~=-]{8,})"
        ),
    ),
    ("a password", rf"{_BY_NAME}{_IS}{_VALUE}"),
    ("a password", rf"{_BY_NAME}\s{{1,3}}[\"'`]?{_RANDOM}{_VALUE}"),
    ("a password", rf"{_PAIR}{_RANDOM}{_VALUE}"),
    ("a password", rf"{_TERSE}\s{{1,3}}[\"'`]?{_VALUE}"),
    ("a passcode", rf"{_PIN}(?:{_IS}|\s{{1,3}}(?=\d{{4,8}}(?:[.,;!?)]|\s(?:and|und|et|y|e|en)\b|\s*$))){_NUMBER}"),
    ("a token", rf"{_TOKEN}(?:{_IS}|\s{{1,3}}[\"'`]?)(?P<value>{_MARKED})(?![A-Za-z0-9_./(-])"),
    ("a token", rf"{_TOKEN}(?:{_IS}|\s{{1,3}}[\"'`]?){_RANDOM}(?P<value>[A-Za-z0-9_+=-]{{10,200}})(?![A-Za-z0-9_./(])"),
)
#: What a text must hold, letter for letter, for a shape to be worth looking for.
_SIGNS = {
    "a private key": ("PRIVATE KEY",),
    "an AWS access key": ("AKIA", "ASIA"),
    "a GitHub token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "a GitLab token": ("glpat-",),
    "a Slack token": ("xox",),
    "a Stripe key": ("k_live_", "k_test_", "whsec_"),
    "a SendGrid key": ("SG.",),
    "an access token": ("_v1_", "dckr_pat_", "shp", "hvs.", "lin_api_", "ATATT3", "AGE-SECRET-KEY-"),
    "a password of a request": (" -u", "--user", " -a", "--auth"),
    "an API key": ("sk-",),
    "a Google API key": ("AIza",),
    "an npm token": ("npm_",),
    "a PyPI token": ("pypi-",),
    "a Hugging Face token": ("hf_",),
    "a signed web token": ("eyJ",),
    "a password in an address": ("://",),
}
#: Likewise in any case of letters.
_WORDS = {
    "a bearer token": ("bearer",),
    "a password or key": ("password", "passwd", "pwd", "secret", "token", "key"),
    "a password": (
        "pass",
        "cred",
        "login",
        "zugangsdaten",
        "identifiants",
        "inloggegevens",
        "pwd",
        "pw",
        "kennwort",
        "mdp",
        "contraseña",
        "senha",
        "wachtwoord",
        "パスワード",
        "合言葉",
        "密码",
        "密碼",
        "口令",
    ),
    "a passcode": ("pin", "passcode", "暗証番号"),
    "a token": ("token", "secret", "key", "jeton", "api", "zugangs", "トークン", "キー", "令牌", "密钥"),
}


def find_secret(text: str) -> str | None:
    """Name the first credential the text seems to hold, or return None.

    The value is never echoed.

    Example:
        >>> find_secret("deploy with AKIAABCDEFGHIJKLMNOP")
        'an AWS access key'
        >>> find_secret("the token lives in the team vault; password: see 1Password") is None
        True
    """
    return next((what for what, shape in _shapes_for(text) if shape.search(text)), None)


def _shapes_for(text: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the shapes that the text could hold; looking for a sign is far cheaper than for a shape, or than to compile one."""
    folded = text.casefold()
    for what, pattern in _SHAPES:
        if any(sign in text for sign in _SIGNS.get(what, ())) or any(word in folded for word in _WORDS.get(what, ())):
            yield what, _compile(pattern)


@functools.cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_KEY_BODY = (
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"
    r"(?:(?:\\r|\\n|\s)*(?:[A-Za-z0-9+/=]{20,}|(?:Proc-Type|DEK-Info):[^\n]*|[A-Za-z0-9+/=]{1,76}(?=(?:\\r|\\n|\s)*-----END)))*"
    r"(?:(?:\\r|\\n|\s)*-----END (?:[A-Z]+ )*PRIVATE KEY-----)?"
)
#: How what stands for a credential begins.
_MARK = "[redacted: "


class Redacted(NamedTuple):
    """A text without its credentials, and what they looked like."""

    text: str
    found: tuple[str, ...] = ()


def redact(text: str) -> Redacted:
    """Replace every credential in a text by a word about it; what stands around it stays.

    Example:
        >>> redact("export DB_PASSWORD=hunter2hunter; make")
        Redacted(text='export DB_PASSWORD=[redacted: a password or key]; make', found=('a password or key',))
    """
    found = []
    for what, shape in _shapes_for(text):
        if not shape.search(text):
            continue
        found.append(what)
        text = (_compile(_KEY_BODY) if what == "a private key" else shape).sub(
            lambda match, what=what: _blank(match, what),  # type: ignore[misc]
            text,
        )
    return Redacted(text, tuple(found))


def is_redacted(text: str) -> bool:
    """Tell whether a credential was taken out of a text.

    Example:
        >>> is_redacted(redact("export DB_PASSWORD=hunter2hunter; make").text), is_redacted("[redacted]")
        (True, False)
    """
    return _MARK in text


def _blank(match: re.Match[str], what: str) -> str:
    """Return a match with its value replaced."""
    whole, start = match.group(), match.start()
    first, last = match.span("value") if "value" in match.re.groupindex else match.span()
    return f"{whole[: first - start]}{_MARK}{what}]{whole[last - start :]}"

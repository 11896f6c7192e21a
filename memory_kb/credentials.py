"""Recognise credentials by their shape, so that none is stored as a memory (S1-28)."""

from __future__ import annotations

import re

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
        ("an AWS access key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
        ("a GitHub token", r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
        ("a GitLab token", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
        ("a Slack token", r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("a Stripe key", r"(?<![A-Za-z0-9])[rs]k_live_[A-Za-z0-9]{16,}"),
        ("an API key", r"(?<![A-Za-z0-9])sk-(?:ant-|proj-|svcacct-|or-)?(?=[A-Za-z0-9_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}"),
        ("a Google API key", r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}"),
        ("an npm token", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}"),
        ("a PyPI token", r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{50,}"),
        ("a Hugging Face token", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
        ("a bearer token", r"(?i)(?<![A-Za-z0-9])bearer\s+(?=[A-Za-z0-9._~+/-]{0,200}[0-9])[A-Za-z0-9._~+/-]{20,}"),
        ("a signed web token", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        (
            "a password in an address",
            r"(?<![A-Za-z0-9])[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,200}:(?!\*+@|\$|\{|<|x+@|password@|pass@|secret@)[^\s/@]{3,200}@",
        ),
        (
            "a password or key",
            (
                r"(?i)(?<![A-Za-z0-9])(?:[A-Za-z0-9]{1,30}[_-]){0,4}"
                r"(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|auth[_-]?token)[\"']?\s{0,9}[:=]\s{0,9}[\"']?"
                r"(?=[^\s\"']{0,200}[0-9])(?=[^\s\"']{0,200}[A-Za-z])[A-Za-z0-9+/_.!@#%^&*~=-]{8,}"
            ),
        ),
    )
)


def find_secret(text: str) -> str | None:
    """Name the first credential the text seems to hold, or return None.

    The value is never echoed.

    Example:
        >>> find_secret("deploy with AKIAABCDEFGHIJKLMNOP")
        'an AWS access key'
        >>> find_secret("the token lives in the team vault; password: see 1Password") is None
        True
    """
    for what, shape in _SHAPES:
        if shape.search(text):
            return what
    return None

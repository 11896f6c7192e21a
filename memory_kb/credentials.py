"""Recognise credentials by their shape, so that none is stored as a memory (S1-28)."""

from __future__ import annotations

import re

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
        ("an AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
        ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("a Stripe key", r"\b[rs]k_live_[A-Za-z0-9]{16,}"),
        ("an API key", r"\bsk-(?:ant-|proj-|svcacct-|or-)?[A-Za-z0-9_-]{20,}"),
        ("a Google API key", r"\bAIza[A-Za-z0-9_-]{35}"),
        ("an npm token", r"\bnpm_[A-Za-z0-9]{36}"),
        ("a PyPI token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
        ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
        ("a signed web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        ("a password in an address", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?!\*+@|\$|\{|<|x+@|password@|pass@|secret@)[^\s/@]{3,}@"),
        (
            "a password or key",
            (
                r"(?i)\b(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|auth[_-]?token)\b[\"']?\s*[:=]\s*[\"']?"
                r"(?=[^\s\"']*[0-9])(?=[^\s\"']*[A-Za-z])[A-Za-z0-9+/_.!@#%^&*~=-]{8,}"
            ),
        ),
    )
)


def find_secret(text: str) -> str | None:
    """Name the first credential the text seems to hold, or return None. The value is never echoed.

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

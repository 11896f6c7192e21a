"""What a message of an error tells of: the set-up, by sort, the change that is being made, or what comes and goes."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile

_I = re.IGNORECASE
# Messages that tell of the machine, the tools or the set-up of the project.
_ABOUT_SETUP = (
    (
        "missing program",
        (
            r"command not found|(?:^|: )[\w.+/-]+: not found$|is not recognized as an internal|"
            r"executable file not found|No such file or directory: '[\w-]+'$|"
            r"program not found|could not find (?:protoc )?plugin|\bfork/exec \S+: no such file or directory|"
            r"\b(?:program|executable|binary) [`'\"]?[\w.+-]+[`'\"]? (?:was |is |could )?not (?:be )?found\b"
        ),
    ),
    (
        "missing package",
        (
            r"ModuleNotFoundError|Could not find a package configuration file|No module named|Cannot find module '(?!\.)|Cannot find package|"
            r"cannot load such file|"
            r"no required module provides|"
            r"Can't resolve '(?!\.)|is not installed\b|not installed\.|unable to find (?:library|package)|could not find (?:gem|library|"
            r"package)|library not found|"
            r"linker [`'\"]?\w+[`'\"]? not found|cannot find -l\w+|pkg-config|fatal error: \S+\.h:"
        ),
    ),
    (
        "missing service",
        (
            r"connection refused|ECONNREFUSED|could not connect to (?:server|the docker daemon|redis)|Cannot connect to the Docker daemon|"
            r"Can't connect to (?:local )?MySQL|is the server running|No such container|service \"?[\w-]+\"? is not running|"
            r"error communicating with database|Error connecting to|"
            r"dial tcp \S+: connect:"
        ),
    ),
    (
        "missing setting",
        (
            r"environment variable|env(?:ironment)? var\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b[^\n]{0,30}\b(?:is (?:not set|required|missing|"
            r"undefined|unset)|must be set|not set)|"
            r"KeyError: '[A-Z][A-Z0-9]*_[A-Z0-9_]+'|ImproperlyConfigured|(?:missing|no) (?:api key|credentials|\S+ configuration)|"
            r"is required but (?:was )?not set|(?:^|: )[A-Z][A-Z0-9_]{2,40}: (?:set\b|unbound|parameter null)"
        ),
    ),
    (
        "missing schema",
        (
            r"(?:relation|table|database|role) \"?[\w.]+\"? does not exist|no such table|Unknown database|database is not up to date|"
            r"pending migrations?|unapplied migration|"
            r"Multiple head|migrations? (?:are|is) pending"
        ),
    ),
    (
        "stale code",
        r"did not initialize yet|has not been generated|run (?:`|')?prisma generate|generated (?:code|files?) (?:is|are) out of date|stale\b",
    ),
    (
        "wrong package manager",
        (
            r"EUNSUPPORTEDPROTOCOL|Unsupported URL Type|packageManager|This project (?:is configured to|requires) use?|only-allow|"
            r"Use \"?(?:pnpm|yarn|npm|bun)\b|"
            r"frozen-lockfile|lockfile (?:is|needs|would)|ERR_PNPM_OUTDATED|lock file .{0,40}(?:out of date|needs to be updated)"
        ),
    ),
    (
        "missing script",
        (
            r"Missing script|\bCommand \"[\w:.-]+\" not found|Couldn't find a script|Script not found|No such (?:script|target|task|command)|No "
            r"rule to make target|"
            r"Unknown (?:task|command|subcommand)|Task '[\w:-]+' not found|no test specified"
        ),
    ),
    (
        "not signed in",
        (
            r"(?:session|token|credentials?|login|sso)\b[^\n]{0,60}\b(?:has |have |is |are )?expired|not (?:logged|signed) in|"
            r"(?:login|sign-?in|authentication) (?:is )?required|no basic auth credentials|unable to locate credentials|"
            r"could not (?:load|find) (?:default )?credentials|no valid credential|you must be logged in|not authenticated|reauthentication"
        ),
    ),
    (
        "wrong version",
        (
            r"(?:release|target|source|class file|language) (?:version|release|level) \S+ (?:is )?not supported|invalid (?:source|target) release|"
            r"EBADENGINE|Unsupported engine|requires (?:a )?(?:different )?(?:Python|Node|Go|Ruby|Java|Rust|rustc|node|python)\b|(?:Python|"
            r"Node(?:\.js)?|Go|Rust|rustc|Java) (?:version )?[>=<]{1,2}|"
            r"may not be used on the stable release channel|lower than the targeted|built with|unsupported class file|"
            r"UnsupportedClassVersion|IllegalAccessError|does not export|"
            r"unsupported (?:Python|Go|Node) version|is not supported (?:on|by|"
            r"with)|GLIBC_|"
            r"no matching (?:platform|manifest)|"
            r"incompatible (?:version|with)|version mismatch|not compatible|toolchain|ERESOLVE|does not support"
        ),
    ),
    (
        "wrong platform",
        r"exec format error|bad CPU type|wrong architecture|cannot execute binary|no matching manifest|Exec format",
    ),
    (
        "wrong module system",
        (
            r"Cannot use import statement outside|Unexpected token '?export'?|ERR_REQUIRE_ESM|require\(\) of ES Module|ERR_MODULE_NOT_FOUND|"
            r"ERR_UNKNOWN_FILE_EXTENSION|exports is not defined"
        ),
    ),
    (
        "not allowed",
        (
            r"permission denied|LIBUSB_ERROR_ACCESS|"
            r"Read-only file system|EACCES|EPERM|operation not permitted|externally-managed-environment|access denied|"
            r"Protected branch|"
            r"self[- ]signed certificate|certificate verify failed"
        ),
    ),
    (
        "wrong option",
        (
            r"unknown (?:option|flag|argument|shorthand)|unrecognized (?:option|argument)|unexpected argument|no such option|invalid option|"
            r"Unknown argument|flag provided but not defined"
        ),
    ),
    ("out of room", r"out of memory|No space left|Cannot allocate memory|OutOfMemory|ENOSPC"),
)
#: Sorts of what is wrong with the set-up, and how that is said.
SETUP = tuple((name, lazy_compile(pattern, _I if name != "missing setting" else 0)) for name, pattern in _ABOUT_SETUP)
ANY_SETUP = lazy_compile(
    "|".join(pattern if name == "missing setting" else f"(?i:{pattern})" for name, pattern in _ABOUT_SETUP)
)
#: Of these nothing is learned: they come and go, or the next one is another.
PASSING = lazy_compile(
    r"(?:read |i/o |connect(?:ion)? |request |statement )?time(?:d )?-?out|\bETIMEDOUT|\bECONNRESET|\bENOTFOUND|\bEAI_AGAIN|could not resolve host|"
    r"name resolution|TLS handshake|"
    r"connection (?:broken|reset|aborted)|network is unreachable|\b50[234]\b|rate limit|too many requests|\b429\b|context deadline exceeded|"
    r"EADDRINUSE|address already in use|index\.lock|CONFLICT \(|merge conflict|non-fast-forward|would be overwritten|no upstream branch|"
    r"nothing to commit|failed to sign|"
    r"Could not find a version that satisfies",
    _I,
)
#: Of what comes and goes, what a server that is not reached is told by.
OF_THE_NET = lazy_compile(
    r"\b(?:ETIMEDOUT|ECONNRESET|ENOTFOUND|EAI_AGAIN)\b|could not resolve host|name resolution|TLS handshake|max retries exceeded|"
    r"network is unreachable|\bconnect(?:ion)?\b.{0,60}\b(?:timed out|reset|broken)\b|"
    r"\b(?:dial tcp|https?://)\S{0,200}.{0,80}\b(?:i/o timeout|timed out|deadline exceeded)\b",
    _I,
)
#: The mistakes of the change that is being made.
OF_THE_CHANGE = lazy_compile(
    r"SyntaxError|IndentationError|NameError|AssertionError|AttributeError|IndexError|TypeError|ValueError|KeyError|ZeroDivisionError|"
    r"UnboundLocalError|RecursionError|\bTS\d{4,5}: |ParserError: |ReferenceError: |"
    r"\bassert\b|cannot import name|error TS\d+|- error TS|error\[E\d+\]|\bundefined: |imported and not used|declared and not used|"
    r"missing return|is not defined|has no attribute|"
    r"\bexpected\b.{0,60}\b(?:got|found|received|but)\b|^Expected:|^Received:|want(?:ed)? .{0,40}(?:got|have)|have .{0,40}want|"
    r"mismatched types|cannot find symbol|"
    r"--- FAIL|^(?-i:FAIL|FAILED)\b|\d+ failed|test result: FAILED|panicked at|unused (?:variable|import)|"
    r"Module '\"?[^']+\"?' has no exported member|"
    r"no field or method|Property '.+' does not exist|syntax error|parse error|error: could not compile|Type error:|column .+ does not exist|"
    r"cannot borrow",
    _I,
)

"""List the shapes of credentials as data for `memory_kb.credentials`.

Marks and lengths of the services' tokens follow the rules of gitleaks 8 (https://github.com/gitleaks/gitleaks), MIT
License, Copyright (c) 2019 Zachary Rice; written down anew, with other boundaries and fewer exact lengths. How people
introduce a password in their own words is ours.
"""

import re
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex


class CredentialPattern(NamedTuple):
    """One shape of a credential.

    Attributes:
        what: its name in messages.
        keywords: in small letters; a text that holds none of them is not searched.
        pattern: the group `value`, if there is one, is the credential itself.
        least: how many bits of entropy a character of the value must have.
        judged: how the value is read: a `token` is random behind its mark and may be broken by a line end, a `name` is
            assigned to something called a key or password, or to a `service`, a `phrase` is what the pattern says it
            is.
        lead: how far in front of a keyword the pattern begins at most; None where it may be anywhere.
    """

    what: str
    keywords: frozenset[str]
    pattern: re.Pattern[str]
    least: float
    judged: str
    lead: int | None


#: What is not in front of a token.
_FREE = r"(?<![A-Za-z0-9+])"


def _rule(
    what: str, words: tuple[str, ...], pattern: str, least: float = 0.0, judged: str = "phrase", lead: int | None = None
) -> CredentialPattern:
    return CredentialPattern(what, frozenset(words), lazy_regex(pattern), least, judged, lead)


def _token(what: str, words: str, pattern: str, lead: int = 0) -> CredentialPattern:
    return _rule(what, tuple(words.split()), f"{_FREE}(?:{pattern})", judged="token", lead=lead)


#: What services give out with a mark in front.
_TOKENS = (
    _token("an AWS access key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _token("an AWS access key", "absk", r"ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    _token(
        "a GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}",
    ),
    _token(
        "a GitLab token",
        "glpat- gldt- glptt- glrt- glft- glimt- glagent- gloas- glsoat- glcbt- glffct- gr1348941",
        r"gl(?:pat|dt|ptt|rt|ft|imt|agent|oas|soat|cbt|ffct)-[\w.-]{20,}|GR1348941[\w-]{20,}",
    ),
    _token("a Slack token", "xox xapp-", r"(?:xox[abeoprs]|xapp)-(?=[A-Za-z0-9-]{0,40}\d{4})[A-Za-z0-9-]{10,}"),
    _token(
        "an API key",
        "sk- nvapi- tvly- gsk_ xai- pplx- r8_ fw_ csk-",
        (
            r"sk-(?!ecdsa-|ssh-)(?:ant-|proj-|svcacct-|admin-|or-)?(?=[A-Za-z0-9_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}"
            r"|(?:nvapi-|tvly-)(?=[A-Za-z0-9_-]{0,200}\d)[A-Za-z0-9_-]{24,}"
            # Without hyphens: "xai-what-it-explains-38e8b009.md" is the name of a note.
            r"|(?:gsk_|xai-|pplx-|r8_|fw_|csk-)(?=[A-Za-z0-9]{0,200}\d)[A-Za-z0-9]{24,}"
        ),
    ),
    _token("a Google API key", "aiza", r"AIza[A-Za-z0-9_-]{35}"),
    _token(
        "a Google token",
        "ya29. gocspx- 1//0",
        r"ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28}|1//0[A-Za-z0-9_-]{40,}",
    ),
    _token("an npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _token("a PyPI token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _token(
        "a Hugging Face token",
        "hf_ api_org_",
        r"(?:hf|api_org)_(?=[A-Za-z0-9]{0,40}(?:\d|[a-z][A-Z][a-z]?[A-Z]))[A-Za-z0-9]{30,}(?![A-Za-z0-9_])",
    ),
    _token("a SendGrid key", "sg.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _token(
        "a Sentry token",
        "sntrys_ sntryu_",
        r"sntrys_(?=[A-Za-z0-9+/=_-]{0,100}\d)[A-Za-z0-9+/=_-]{30,}|sntryu_[0-9a-f]{40,}",
    ),
    _token("a Supabase token", "sbp_ sb_secret_", r"sbp_[0-9a-f]{32,}|sb_secret_[A-Za-z0-9_-]{20,}"),
    _token("a New Relic key", "nrak- nrii- nrjs-", r"NR(?:AK|II|JS)-(?=[A-Za-z0-9-]{0,30}\d)[A-Za-z0-9-]{19,}"),
    _token("a Grafana token", "glsa_ glc_", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,}={0,2}"),
    _token("a Twilio key", "sk", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _token(
        "an Azure key",
        "accountkey sharedaccesskey",
        r"(?:AccountKey|SharedAccessKey)=(?P<value>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    _token("a Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _token(
        "an access token",
        "pnu_ rdme_ rubygems_ tk-us- xkeysib- shippo_ sgp_ sm_ sq0 eaa s-s4t2 hvs. ltai hrku- tfp_ ops_eyj akcp cmvmd clojars_ dt0c01. duffel_ eza ezt",
        (
            r"pnu_[A-Za-z0-9]{36}|rdme_[a-z0-9]{70}|rubygems_[a-f0-9]{48}|tk-us-[\w-]{48}|xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"
            r"|shippo_(?:live|test)_[a-fA-F0-9]{40}|sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}|sm_[aps]at_[A-Za-z0-9]{16}"
            r"|sq0(?:atp|csp|idp)-[\w-]{22,60}|EAAA[\w-]{56,60}|LTAI[A-Za-z0-9]{20}|HRKU-[\w-]{36,60}|tfp_[\w.=-]{59}|ops_eyJ[A-Za-z0-9+/]{100,}"
            r"|AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59}|CLOJARS_[a-z0-9]{60}|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"
            r"|EAA[A-Z](?=[A-Za-z0-9]{0,40}\d)[A-Za-z0-9]{90,}|s-s4t2(?:ud|af)-[a-f0-9]{64}|hv[a-z]\.CAES[\w-]{20,}"
            r"|duffel_(?:test|live)_[\w=-]{43}|EZ[AT]K[A-Za-z0-9]{54}(?![A-Za-z0-9+/])"
        ),
    ),
    _token(
        "an access token",
        "sk.eyj fio-u- flwseck ico- p8e- sha256~ v1.0- oy2 bkua_ ccipat_ cfpat- a3- pat aqvn dnkey- test_ live_",
        (
            r"fio-u-[\w=-]{64}|FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}|ico-[A-Za-z0-9]{32}(?![A-Za-z0-9.])|p8e-[A-Za-z0-9]{32}|sha256~[\w-]{43}"
            r"|v1\.0-[a-f0-9]{24}-[a-f0-9]{146}|oy2[a-z0-9]{43}|bkua_[a-f0-9]{40}|CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}|CFPAT-[\w-]{43}"
            r"|sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"
            r"|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|AQVN[\w-]{35,38}|dnkey-[a-z0-9=_-]{26}-[a-z0-9=_-]{52}|(?:live|test)_[a-f0-9]{35}(?![a-z0-9])"
        ),
    ),
    _token("a signed web token", "eyj", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    # Those that begin in front of their keyword, and how far at most.
    _token("a Stripe key", "k_live_ k_test_ k_prod_ whsec_", r"(?:[rs]k_(?:live|test|prod)|whsec)_[A-Za-z0-9]{16,}", 1),
    _token("a Mailgun key", "key-", r"(?:pub)?key-[0-9a-f]{32}(?![A-Za-z0-9])", 3),
    _token("a Mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])", 32),
    _token("a Telegram token", ":aa", r"\d{6,12}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9])", 12),
    _token("an Azure secret", "q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}", 4),
    _token("a Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}", 14),
    _token(
        "an access token",
        "_v1_ dckr_ hvs. hvb. lin_api_ atatt3 age-secret-key- dapi pul- dp. fo1_ fm1 fm2_ figd_ ntn_ nfp_ tskey- pscale_ pmak-",
        (
            r"do[opr]_v1_[a-f0-9]{64}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}|hv[sb]\.[A-Za-z0-9_-]{24,}|lin_api_[A-Za-z0-9]{32,}"
            r"|ATATT3[A-Za-z0-9_=-]{50,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|dapi[a-f0-9]{32}(?:-\d)?|pul-[a-f0-9]{40}"
            r"|dp\.(?:pt|st|ct|sa|scim)\.[A-Za-z0-9_.-]{40,}|fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,2}|figd_[\w-]{36,}"
            r"|ntn_[0-9]{11}[A-Za-z0-9]{35}|nfp_[A-Za-z0-9]{36}|tskey-[a-z]{1,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"
            r"|pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}"
        ),
        3,
    ),
    _token("an access token", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", 36),
)

#: Services whose keys have no mark, and are known by the service's name before them.
_SERVICES = (
    "adafruit adobe airtable algolia alibaba asana atlassian beamer bitbucket bittrex cloudflare codecov cohere coinbase confluent contentful datadog"
    " discord droneci dropbox etsy facebook fastly finicity finnhub flickr freshbooks gitter gocardless heroku hubspot intercom jfrog kraken kucoin"
    " launchdarkly linkedin looker mailchimp mailgun mapbox mattermost meraki messagebird netlify newrelic nytimes okta plaid privateai rapidapi"
    " sendbird sentry snyk sonar squarespace sumologic telegram travis trello twitch twitter typeform yandex zendesk"
)

_DISCORD = (
    r"[MNO](?<![A-Za-z0-9+].)[A-Za-z0-9_-]{23,25}\.(?=[A-Za-z0-9_-]{0,6}[A-Z0-9])[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
)
_WEBHOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9+/]{20,80})"
    r"|discord(?:app)?\.com/api/webhooks/\d{5,25}/[\w-]{30,}"
    r"|webhook\.office\.com/webhookb2/[\w@-]{36,}/IncomingWebhook/[\w/-]{30,}|hooks\.zapier\.com/hooks/catch/\d+/\w{5,}"
    r"|chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?[^\s\"']{0,80}token=[\w%-]{20,}|api\.telegram\.org/bot\d{6,12}:[\w-]{30,}"
    r"|(?:open\.feishu\.cn|open\.larksuite\.com)/open-apis/bot/v2/hook/[\w-]{20,}|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=[\w-]{20,}"
    r"|oapi\.dingtalk\.com/robot/send\?access_token=\w{20,}|\.logic\.azure\.com[:/][^\s\"']{0,300}sig=[\w%-]{20,}"
)
#: What makes a `key` one that is secret, if no line is between them.
_KEY_KINDS = "api access private auth account encryption signing master storage service admin deploy app"
_KEYS = "".join(rf"|(?<={word}-key)|(?<={word}key)" for word in _KEY_KINDS.split())
_NAMES = (
    r"password|passwd|passphrase|passwort|pwd|secret(?:[_-]?access)?(?:[_-]?key)?(?:[_-]?base)?|token"
    rf"|credentials?|_pass|key(?:(?<=_key){_KEYS})"
)
#: Before `token` or `key`: what is shown to everybody, or a place in a list.
_SHOWN = "page continuation public publickey next cache csrf xsrf sort primary partition bibtex citation redir"
_HARMLESS = "".join(rf"(?<!{word}_)(?<!{word})" for word in _SHOWN.split())

# How people introduce a credential in their own words, and what it is made of then.
_FOR = (
    r"(?:(?:for|on|in|at|there|here|of|to|auf|für|zu[rm]?|pour|du|de|para|do|da|del|per|voor|van)(?:\s(?:the|my|our|der|die|das|le|la|el|o|il))?"
    r"(?:\s[\w@.-]{1,40}){0,2}\s)?"
)
_IS = rf"[\"'`]?(?:(?:\s{{1,3}}{_FOR})?\s{{0,9}}[:=：→]\s{{0,9}}|\s{{1,3}}{_FOR}(?:is(?:\snow)?|lautet|ist|est|c'est|es|é|è)\s{{1,3}}|\s?(?:は|是|为)\s?)[\"'`]?"
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
    rf"(?i:(?<![A-Za-z0-9_])(?:(?:{_OF})?(?:token|secret)|{_OF}key|(?:api|zugangs)[ -]?schlüssel|jeton|clé (?:d['’])?api|clave (?:de )?api"
    r"|chave (?:de |da )?api|chiave api|api[ -]?sleutel)(?![\w-])|トークン|(?:API|シークレット)キー|令牌|密钥)"
)
#: Letters and digits in turns, or a number behind a dash. A word with a number behind it is the name of a thing.
_MIXED = r"(?=[^\s\"'`\](]{0,80}\d[A-Za-z])(?=[^\s\"'`\](]{0,80}[A-Za-z]\d)|(?=[^\s\"'`\](]{0,80}-\d{4}(?![\w-]))"
#: A password has signs as well; behind a word they end its sentence.
_RANDOM = rf"(?:{_MIXED}|(?=[^\s\"'`\](]{{0,80}}[!#%^&*]))"
#: A token with its service's prefix: no name of a thing has a digit, or so many capitals, in one run behind a prefix.
_MARKED = r"[A-Za-z]{2,8}[_-](?=[A-Za-z0-9]{0,100}(?:\d|(?:[a-z]{1,9}[A-Z]{1,9}){3}))[A-Za-z0-9]{12,200}"
_NO_VALUE = (
    r"(?!argon2|sha\d|md5|bcrypt|scrypt|pbkdf2|base64|(?i:oauth|auth|utf|https?:|field|step|v?\d+\.\d)|[\w.-]{1,80}[(/]"
    r"|\S{0,80}(?:hashed|encoded|encrypted|based|characters?|digits?)\b)"
)
_SIGNS = "A-Za-z0-9+/_!@#%^&*~=$-"
_VALUE = (
    rf"{_NO_VALUE}(?=[^\s\"'`]{{0,200}}[0-9]|[^\s\"'`]{{0,200}}[!#%^&*$][A-Za-z])(?=[^\s\"'`]{{0,200}}[A-Za-z])"
    rf"(?P<value>[{_SIGNS}][{_SIGNS}.]{{4,200}}[{_SIGNS}])"
)
_COUNTED = r"\s?(?:digits?|characters?|chars?|numbers?|times|rows|Ziffern|Stellen|Zeichen|chiffres|dígitos|cifre|cijfers|桁|位)"
_NUMBER = rf"(?P<value>\d{{4,8}})(?![A-Za-z0-9_%]|[.,:/-]\d|{_COUNTED})"
_PASSWORD_WORDS = (
    *("pass", "pwd", "pw", "kennwort", "mdp", "contraseña", "senha", "wachtwoord"),
    *("パスワード", "合言葉", "密码", "密碼", "口令"),
)
_PAIR_WORDS = ("cred", "login", "zugangsdaten", "identifiants", "inloggegevens")
_TOKEN_WORDS = ("token", "secret", "key", "jeton", "api", "zugangs", "トークン", "キー", "令牌", "密钥")
#: A private key from its first line to its last.
_PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:\\r|\\n|\s)*(?:[A-Za-z0-9+/=]{20,}|(?:Proc-Type|DEK-Info|Version|Comment):[^\n]*|=?[A-Za-z0-9+/=]{1,76}(?=(?:\\r|\\n|\s)*-----END)))*"
    r"(?:(?:\\r|\\n|\s)*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?"
)

_LOGIN_OPTION = (
    r"(?<![A-Za-z0-9_-])(?:curl|wget|https?|xh)\s[^|;&]{0,300}?(?<=\s)(?:-u|--user|-a|--auth)[\s=]{0,3}[\"']?[^\s:\"'$=-]?[^\s:\"'$]{0,80}:[\"']?"
    r"(?![$<{*])(?P<value>[^\s\"'@]{4,200})"
)
_LOGIN_COMMAND = (
    r"(?<![A-Za-z0-9_-])(?:(?:mysql\w*|mariadb\w*)\s(?:[^\n|;&]{0,200}?\s)?(?:-p|--password=)|sshpass\s(?:-p\s?|--password=)"
    r"|redis-cli\s(?:[^\n|;&]{0,100}?\s)?-a\s|(?:docker|podman|az|helm)\s[^\n|;&]{0,200}?\s(?:-p\s|--password[\s=]))"
    r"[\"']?(?![$<{*-])(?P<value>[^\s\"']{6,200})"
)
_BASIC_HEADER = r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"'`]?basic\s{1,3}(?P<value>[A-Za-z0-9+/_-]{8,}={0,2})"
_KEY_HEADER = (
    r"(?i)(?:authorization|x-[a-z-]{0,20}(?:key|token)|private-token)[\"']?\s{0,3}[:=]\s{0,3}[\"'`]?(?:token\s{1,3}|apikey\s{1,3})?"
    r"(?P<value>[A-Za-z0-9_.+/=~-]{16,})"
)
_DOCKER_AUTH = r"[\"']_?auth[\"']\s{0,3}:\s{0,3}[\"'](?P<value>[A-Za-z0-9+/]{12,}={0,2})[\"']"
_NPM_AUTH = r"(?<!\w)_auth(?:Token)?\s?=\s?[\"']?(?P<value>[\w+/.-]{16,}={0,2})"
_BEARER = r"(?i)(?<![A-Za-z0-9])bearer\s+(?=[A-Za-z0-9._~+/-]{0,200}[0-9])(?P<value>[A-Za-z0-9._~+/-]{20,})"
_ADDRESS_WITH_LOGIN = r"://[^\s/:@]{0,200}:(?![$*{<%])(?P<value>[^\s/@\"'`<>]{3,200})@"
_ADDRESS_WITH_KEY = r"://(?P<value>(?=[\w~-]{0,200}\d)(?=[\w~-]{0,200}[A-Za-z])[\w~-]{20,200})@[\w-]"
_KEY_OF_SERVICE = (
    r"(?i)(?=[\w.-]++[\"'`\]]{0,2}+\s{0,3}+[:=])"
    rf"(?:{_SERVICES.replace(' ', '|')})[\w.-]{{0,30}}[\"'`\]]{{0,2}}\s{{0,3}}(?:=>|:=|[:=])\s{{0,3}}[\"'`]?"
    r"(?=[\w=+/-]{0,100}\d)(?=[\w=+/-]{0,100}[a-z])(?P<value>(?!https?\b)[A-Za-z0-9_=+/-]{16,150})(?![\w./-])"
)
#: In JSON inside of JSON, backslashes are in front of quotes, and behind a value.
_ASSIGNED = (
    rf"(?i)(?=[\w-]{{1,30}}+[\"'`\]\\]{{0,16}}+\s{{0,9}}+[:=]){_HARMLESS}(?:{_NAMES})[\"'`\]\\]{{0,16}}\s{{0,9}}"
    r"(?:=>|:=|[:=](?![:=]))\s{0,9}[rbuf]?\\{0,15}[\"'`]?(?P<value>[^\s\"'`,;|\\]{8,250})"
)
_OLD_VAULT = r"(?i:token)[\"']?\s{0,3}[:=]\s{0,3}[\"']?s\.(?P<value>[A-Za-z0-9]{24})(?![A-Za-z0-9])"
_PASSWORD_AND_VALUE = rf"(?i:(?<![A-Za-z0-9])(?:password|passwort))\s{{1,3}}[\"'`]?{_RANDOM}{_VALUE}"
_PASSCODE = rf"{_PIN}(?:{_IS}|\s{{1,3}}(?=\d{{4,8}}(?:[.,;!?)]|\s(?:and|und|et|y|e|en)\b|\s*$))){_NUMBER}"
_TOKEN_AND_VALUE = (
    rf"{_TOKEN}(?:{_IS}|\s{{1,3}}[\"'`]?)"
    rf"(?P<value>{_MARKED}(?![A-Za-z0-9_./(-])|(?:{_MIXED})[A-Za-z0-9_+=-]{{10,200}}(?![A-Za-z0-9_./(]))"
)
_COMMAND_WORDS = (" -p", "--password", "sshpass", "--requirepass", " -a")
_WEBHOOK_WORDS = ("hooks.", "webhook", "bot", "chat.googleapis", "dingtalk", "logic.azure")
_HEADER_WORDS = ("authorization", "x-api-key", "x-auth-token", "x-vault-token", "private-token")
_NAME_WORDS = ("password", "passwd", "passphrase", "passwort", "pwd", "secret", "token", "key", "credential", "_pass")

RULES: tuple[CredentialPattern, ...] = (
    _rule("a private key", ("private key",), _PRIVATE_KEY),
    _rule("a private key", ("putty-user-key-file",), r"PuTTY-User-Key-File-\d: [\w-]+"),
    *_TOKENS,
    # Its keywords are in every text: what begins with a capital is found faster if that is looked for first.
    _rule("a Discord token", ("m", "n", "o"), _DISCORD, judged="token"),
    _rule("a webhook address", _WEBHOOK_WORDS, _WEBHOOKS, 2.0, "token", lead=40),
    _rule("a password of a request", (" -u", "--user", " -a", "--auth"), _LOGIN_OPTION, 1.5, "address"),
    _rule("a password of a command", _COMMAND_WORDS, _LOGIN_COMMAND, 2.0, "name"),
    _rule("a password of a request", ("authorization",), _BASIC_HEADER, 2.5, "base64", lead=0),
    _rule("a token of a request", _HEADER_WORDS, _KEY_HEADER, 3.0, "name"),
    _rule("a password of a registry", ("auth",), _DOCKER_AUTH, 2.5, "base64", lead=len("'_")),
    _rule("a password of a registry", ("_auth",), _NPM_AUTH, 3.0, "base64", lead=0),
    _rule("a bearer token", ("bearer",), _BEARER, 3.0, "name", lead=0),
    _rule("a password in an address", ("://",), _ADDRESS_WITH_LOGIN, 1.5, "address", lead=0),
    _rule("a token in an address", ("://",), _ADDRESS_WITH_KEY, 3.0, "name", lead=0),
    _rule("a key of a service", tuple(_SERVICES.split()), _KEY_OF_SERVICE, 3.0, "service", lead=0),
    _rule("a password or key", _NAME_WORDS, _ASSIGNED, 2.5, "name", lead=0),
    _rule("an access token", ("token",), _OLD_VAULT, 3.0),
    _rule("a password", _PASSWORD_WORDS, rf"{_BY_NAME}{_IS}{_VALUE}", 2.0, "said", lead=len("mot de ")),
    _rule("a password", ("password", "passwort"), _PASSWORD_AND_VALUE, 2.0, "said", lead=0),
    _rule("a password", _PAIR_WORDS, rf"{_PAIR}{_RANDOM}{_VALUE}", 2.0, "said", lead=0),
    _rule("a password", ("pw", "mdp"), rf"{_TERSE}\s{{1,3}}[\"'`]?{_VALUE}", 2.0, "said", lead=0),
    _rule("a passcode", ("pin", "passcode", "暗証番号"), _PASSCODE, lead=len("code ")),
    _rule("a token", _TOKEN_WORDS, _TOKEN_AND_VALUE, 2.5, "said", lead=len("clave de ")),
)

#: What is in no value, by how the rule judges it.
NO_VALUE = {
    "token": lazy_regex(r"(?i)example(?:key)?$|your|[x*]{5,}|\.\.\.|0{10,}|placeholder|redacted"),
    "address": lazy_regex(r"(?i)example|your|[x*]{3,}|\.\.\.|[{}<>$()\[\]]"),
    "said": lazy_regex(r"(?i)example|your|[x*]{5,}|^[$*~&]|^\d+[.,:\d]*$|\*\*$|_(?:password|token|secret|key)\d*$"),
}
#: What is written in place of a value.
PLACEHOLDER = lazy_regex(
    r"(?i)(?:example|your|my[_-]?(?:\w+[_-])?(?:token|key|secret|pass)|changeme|change[_-]me|placeholder|redacted|dummy|sample|replace|insert|fake|mock|todo|hidden"
    r"|masked|foobar|testtest|(?<![a-z])(?:some|enter)[_-]|12345678|abcdefgh(?!ijklmnop)|deadbeef|lorem|\.\.\.|…|[x*]{4,}|0{8,}|(.)\1{9,}"
    r"|p[a@]ss?w[o0]rd|s[e3]cr[e3]t|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)"
)
#: What documentation gives as the password of an address.
COMMON = lazy_regex(
    r"(?i)(?:(?:my|the|some|db|super|strong)[_-]?)*(?:p[a@]ss(?:w(?:or)?d|phrase|wort)?|pw|pwd|secret|token|key|user(?:name)?|admin|root|test|demo|guest|changeme"
    r"|postgres(?:ql)?|mysql|mariadb|mongo|redis|rabbit(?:mq)?|minio|foo|bar|baz|hello|abc|xyz|port|host|repo|org|\d+)[_-]?\d{0,4}"
)
#: What code writes where a value would be.
CODE = lazy_regex(
    r"[(){}\[\]<>$\\|]|^[~&@#%*!?/.]|->|::|://|^(?:0x|\$|%)|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|^[A-Z][A-Za-z]+[a-z]\d?$|^_*[a-z]+(?:_[a-z0-9]+)+$|^[A-Z]\w*(?:Key|Token|Secret|Password|Type)s?$|^[A-Z]+(?:_[A-Z0-9]+)+$"
    r"|^[a-z]+[a-z.-]*[._-]v?\d{1,3}$|^[\d.,:%+-]+[a-z]{0,3}$|^\d{4}-\d\d-\d\d|^(?:sha\d|md5|arn:|ssh-|projects/|utf|v\d)|\.(?:json|ya?ml|pem|txt|key|crt|go|py|md|js|ts|html|com|org|net|io)\b"
)

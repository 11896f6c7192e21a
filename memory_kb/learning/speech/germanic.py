"""How people word instructions in German and in Dutch."""

from __future__ import annotations

from memory_kb.learning.speech.phrases import any_of
from memory_kb.learning.speech.tongues import NAMED, REST, asking, tongue

# -- German --------------------------------------------------------------------------------

_DE_DO = (
    r"(?:(?:ver|be)?nutze?|verwende?|benütze?|nimm|nehmt|schreibe?|mache?|committe?|commite|pushe?|lasse?|halte?|lege?|setze?|füge?|"
    r"rufe?|führe?|teste?|vermeide|achte?|"
    r"frage?|beachte?|bevorzuge|benenne?|nenne?|speichere?|logge?|merge|prüfe?|gib|antworte|erstelle|arbeite|ändere|lösche|packe?|"
    r"baue?|wirf|mocke|starte|"
    r"\w{2,}(?:iere?|isiere))"
)
_DE_WE = (
    r"(?:verwenden|benutzen|nutzen|schreiben|nehmen|setzen|arbeiten|committen|pushen|testen|loggen|speichern|deployen|mergen|halten|"
    r"machen|bauen|werfen|mocken|\w+ieren)"
)
_DE_ALWAYS = r"(?:immer(?! (?:noch|wieder|wenn|mehr|gern\w*|noch)\b)|stets|grundsätzlich|ausnahmslos|prinzipiell|generell|nur noch|ausschließlich)"
_DE_NEVER = r"(?:nie(?! wieder\b)|niemals|nie wieder|auf (?:gar )?keinen fall|keinesfalls|unter keinen umständen)"
_DE_INFINITIVE = r"[a-zäöüß]+(?:en|ern|eln|sein|tun)"
_DE_HERE = r"(?:hier|in diesem (?:projekt|repo\w*)|im (?:ganzen )?(?:projekt|repo|code|team)|bei uns|überall|in der codebase|projektweit)"
_DE_OBJECT = r"(?!(?:ich|du|er|sie|es|wir|ihr|man|das|dies\w*|den|dem|die|der)\b)"
_DE_END = r"(?:[,.!;]|\s*$|,? (?:bitte|danke|weil|da|sonst))"
GERMAN = tongue(
    lead=any_of(
        "also und ok okay gut bitte übrigens passt(?:_so)? danke ach so ja hinweis wichtig achtung noch_(?:was|eins) btw hey hm+ super "
        "prima genau aber nochmal "
        "wie_gesagt zur_info fyi denk_(?:bitte_)?dran stimmt richtig"
    ),
    objection="nein|nö|nee|falsch|stimmt nicht|eigentlich",
    request=asking(
        r"(?:bitte |und )*(?:merke?|notiere?|schreibe?) dir(?! das\b)|(?:bitte )?denke? (?:bitte |in zukunft |künftig )*(?:dran|daran)|"
        r"(?:bitte )?behalte? (?:bitte )?im (?:kopf|hinterkopf)|(?:bitte )?nicht vergessen|vergiss (?:bitte )?nicht|"
        r"bitte (?:merken|beachten|notieren)|"
        r"beachte für (?:später|die zukunft)",
        "bitte|mal|auf|gut|einfach|für später|für (?:die zukunft|das nächste mal|nächstes mal|alle fälle)|folgendes|eins|noch",
        "dass|daß",
        "für die zukunft|für später|für's nächste mal|fürs nächste mal|notiz(?: an dich)?",
    )
    + r"|merke? dir(?: bitte| mal)*,\s*",
    request_back=r"(?:(?:und|bitte|also)[, ]+)*(?:merk dir das|merke dir das|behalt das im kopf|denk dran|vergiss das nicht|notier dir das)\b",
    doubt=(
        (
            r"\b(?:heute|morgen|gestern|diesmal|vorerst|erst ?mal|zunächst|fürs erste|momentan|gerade|vorläufig|jetzt gerade|dieses mal|für "
            r"den moment|solange|früher|damals|"
            r"ausnahmsweise|kurz|(?<!ab )(?<!von )jetzt|noch nicht|immer noch|noch immer|schon wieder|warum|wieso|weshalb|vielleicht|"
            r"angenommen|nehmen wir an|haha|sicher doch|würde\w*|hätte\w*)\b"
        ),
        (
            r"\bbis (?:\d|(?:zu[mr]?|auf|an?) |(?:nächste|ende|mitte|anfang|diese)\w*|mo\w*tag|dienstag|mittwoch|donnerstag|freitag|samstag|"
            r"sonntag|januar|februar|märz|april|mai|juni|"
            r"juli|august|september|oktober|november|dezember|der|die|das|wir|ich)\b|\b(?:diese|nächste) (?:woche|sprint|tage)\b|\bam wochenende\b"
        ),
        (
            r"\b(?:ich|mir|mich|mein\w*)\b(?<!ich)(?!.{0,3}\bbevorzug)|\b(?:ich) (?!bevorzuge|möchte|will|ziehe|mag)|\b(?:war|waren|hat|hatte|"
            r"hatten|wurde|wurden|habe|bin|ging)\b"
        ),
        (
            r"\b(?:diese[nrsm]?|jene[nrsm]?) (?!projekt|repo|codebase|team|modul|paket|schicht)\w|\b(?:den|das|die|der) (?:andere|linke|rechte|"
            r"zweite|erste|letzte|nächste|alte|"
            r"neue|obere|untere)\w* |\b(?:knopf|knöpfe|button\w*|seite|überschrift|titel|spalte|menü|dialog|farbe|schrift|symbol|formular)\b"
        ),
        (
            r"\b(?:steht|sagt|meint|behauptet|schreibt|heißt es)\b|\bman soll\b|\b(?:kaputt|fehl\w*schlägt|schlägt|stürzt|hängt|zweimal|"
            r"doppelt|fehler ?haft|leer|falsch\w*|angezeigt|klick\w*|nutzer\w*|kunde\w*|besucher\w*|grün|blau|rot|gelb|schwarz|weiß|"
            r"durchlaufen|bestehen|problem\w*)\b"
        ),
        r"\bkeine (?:änderung\w*|tests?|commits?|lust|zeit|ahnung|frage\w*|sorge\w*|probleme?|fehler|angst|eile)\b",
    ),
    ways=(
        (
            "preference",
            rf"(?:bitte )?{_DE_DO} (?:hier |bitte |in \w+ |dafür )*{_DE_OBJECT}(?:[^,.;?!\n]{{0,40}} )?(?:{_DE_ALWAYS}|{_DE_NEVER})\b{REST}",
        ),
        (
            "preference",
            (
                rf"(?:bitte )?(?:{_DE_ALWAYS}) (?:auf |mit |in |im )?{_DE_OBJECT}(?=[^?\n]*(?:\b{_DE_INFINITIVE}{_DE_END}|\bstatt\b|, (?:nie|nicht|"
                rf"kein)))[^?\n]{{4,160}}"
            ),
        ),
        ("preference", rf"(?:bitte )?{_DE_NEVER} {_DE_OBJECT}(?=[^?\n]*\b{_DE_INFINITIVE}{_DE_END})[^?\n]{{4,160}}"),
        (
            "preference",
            (
                rf"(?:ab (?:jetzt|sofort|heute|nun)|künftig|zukünftig|in zukunft|von (?:jetzt|nun) an|fortan)[,:]? (?!(?:wird|geht|ist|"
                rf"kommt|kommen|werden|wollen|will|möchte\w*|können)\b)(?=[^?\n]*(?:{_DE_INFINITIVE}{_DE_END}|\b{_DE_DO}\b|\bnur\b|\bkein)){REST}"
            ),
        ),
        (
            "preference",
            (
                rf"(?:{_DE_HERE} )?wir {_DE_WE} (?=[^?\n]*(?:\bkeine?n?\b[^?\n]*\bmehr\b|\b(?:{_DE_ALWAYS}|{_DE_NEVER}|nur)\b|\b{_DE_HERE}\b|"
                rf"\bstatt\b|, nicht |, nie|kein))(?!(?:hier )?(?:das|es|die|den)\b){REST}"
            ),
        ),
        (
            "preference",
            (
                rf"{_DE_HERE} (?:wird|werden|{_DE_WE} wir|gilt|heißen|verwenden wir) (?=[^?\n]*(?:\bnie\b|\bnicht\b|\bnur\b|\bkein|\bimmer\b|\bals\b|"
                rf"\bmit\b|\bin\b|:)){REST}"
            ),
        ),
        (
            "preference",
            (
                rf"(?:bitte )?keine?n? (?!neue\w* )[\w-]+(?: [\w-]+)? mehr(?: (?:verwenden|benutzen|in|im|nach|mit|schreiben|"
                rf"nutzen)\b[^?\n]{{0,80}})?{_DE_END}"
            ),
        ),
        (
            "preference",
            (
                rf"(?:ich bevorzuge|wir bevorzugen|ich (?:möchte|will|hätte gern\w*) (?:immer|nie|grundsätzlich)|mir (?:ist|sind) [^?,\n]{{3,60}} "
                rf"lieber|lieber [^?,\n]{{3,40}} als) {REST}"
            ),
        ),
        (
            "preference",
            rf"(?:bitte )?(?:nimm|verwende|benutze?|nutze) {NAMED} (?:statt|anstelle von|anstatt) {NAMED}{_DE_END}",
        ),
        (
            "preference",
            (
                rf"(?:bitte )?(?:vor|nach|bei) (?:jede[mrn]|allen) [\w-]+ (?!(?:wird|werden|ist|sind|soll\w*|kommt|geht|läuft|muss|hat)\b)(?:bitte |"
                rf"immer |erst )?(?=[^?\n]*(?:{_DE_INFINITIVE}{_DE_END}|"
                rf"\b{_DE_DO}\b)){REST}"
            ),
        ),
        (
            "preference",
            rf"(?:jedes mal,? wenn|immer,? wenn|wenn) du (?:eine?n? )[^,?\n]{{3,60}}, (?:dann |bitte )*{_DE_DO}\b{REST}",
        ),
        ("preference", rf"(?:hör (?:bitte )?auf,?|lass es,) [^?\n]*\b(?:nach|vor|bei|in) (?:jede[mrn]) {REST}"),
        (
            "preference",
            (
                rf"[^,?\n]{{3,60}}\b(?:in diesem projekt|im ganzen projekt|überall|projektweit|grundsätzlich) (?:bitte )?(?:nur "
                rf")?[^,?\n]{{2,60}}\b{_DE_INFINITIVE}[.!]*\s*$"
            ),
        ),
        (
            "constraint",
            rf"(?:alle|jede[rs]?|sämtliche|neue) (?:neue\w* )?[\w-]+(?: [\w-]+)? (?:müssen|muss|dürfen|darf) {REST}",
        ),
        (
            "constraint",
            rf"(?:in |im |an |am )?(?:die |der |das |den )?[\w-]+(?: [\w-]+)? (?:darf|dürfen) (?:{_DE_NEVER}|nicht ohne|auf keinen fall) {REST}",
        ),
        (
            "constraint",
            (
                r"(?!das\b|es\b|die\b|der\b)[\w.+#-]+ (?:ist|sind) (?:bei uns |hier |im projekt )?(?:verboten|tabu|pflicht|nicht erlaubt|untersagt|"
                r"vorgeschrieben)\b[^?\n]{0,80}"
            ),
        ),
        (
            "statement",
            (
                r"(?:alle |unsere |die )?(?:zeitstempel|beträge|preise|daten|datumsangaben|uhrzeiten|ids?|summen|passwörter|secrets|werte)(?: in "
                r"[^\s?]+)? (?:sind|werden|liegen|stehen) "
                r"(?:immer |alle |stets )?(?:in|als|im|mit|auf) (?!der\b|dem\b|einer\b)[^?\n]{2,80}"
            ),
        ),
        (
            "statement",
            r"(?:auf|in|bei) (?:den|der|dem|unseren?) [\w-]+ (?:gibt es|haben wir|läuft|laufen) (?:nur|kein\w*|ausschließlich) [^?\n]{2,140}",
        ),
        (
            "statement",
            (
                r"(?:das |der |die |unser\w* )?(?:[\w-]*(?:system|server|staging|umgebung|datenbank|api|produktion|cluster|demo|gateway|registry)) "
                r"(?:ist|sind|liegt|läuft|lauscht|erreichst du|erlaubt|akzeptiert) "
                r"(?:nur |maximal |höchstens )?(?:über|hinter|auf|unter|per|mit|nur|\d)[^?\n]*(?:vpn|proxy|port \d+|\d+ \w+ (?:pro|/) \w+|"
                r"\w+\.\w+\.\w+|jump)[^?\n]{0,60}"
            ),
        ),
    ),
)

# -- Dutch ---------------------------------------------------------------------------------

_NL_DO = (
    r"(?:gebruik|schrijf|maak|zet|voer|draai|houd|hou|commit|push|test|noem|vermijd|vraag|voeg|log|neem|geef|merge|deploy|installeer|"
    r"formatteer|bewaar)"
)
DUTCH = tongue(
    lead=any_of(
        "en maar dus ok oké goed prima bedankt dank_je let_op trouwens belangrijk ja graag alsjeblieft nog_iets"
    ),
    objection="nee|fout|klopt niet|eigenlijk",
    request=asking(
        "(?:en )?(?:onthoud|vergeet niet|bedenk|denk eraan|noteer|schrijf op)",
        "goed|even|alsjeblieft|aub|voor (?:later|de toekomst|de volgende keer)|het volgende",
        "dat",
        "voor de toekomst|voor later|let op voor later|ter info voor later",
    ),
    request_back=r"(?:en )?(?:onthoud dat|vergeet dat niet|hou dat in gedachten)\b",
    doubt=(
        (
            r"\b(?:hetzelfde|probleem|gebruikers?|vandaag|morgen|gisteren|voorlopig|voor nu|deze keer|dit keer|tijdelijk|deze week|nog altijd|"
            r"nog steeds|nog niet|waarom|misschien|stel dat|even|ik|mij|mijn|was|"
            r"waren|had|hebben|heb|werkt|faalt|crasht|leeg|twee keer)\b(?! geef de voorkeur)"
        ),
        (
            r"\btot (?:de|het|en met|we|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|morgen|\d)|\b(?:dit|deze|die|dat) "
            r"(?!project|repo|codebase|team)\w|\b(?:knop|knoppen|titel|pagina|menu|kleur)\b|\b(?:de|het) (?:andere|oude|nieuwe|linker|rechter)\b"
        ),
    ),
    ways=(
        ("preference", rf"{_NL_DO} (?:[^,.;?!\n]{{0,30}} )?(?:altijd|nooit) {REST}"),
        ("preference", rf"(?:altijd|nooit) (?=[^?\n]*\w+en[.!]*\s*$){REST}"),
        ("preference", rf"(?:vanaf nu|voortaan|in het vervolg|in de toekomst),? {REST}"),
        (
            "preference",
            (
                rf"(?:(?:in dit project|hier|bij ons) (?:gebruiken|schrijven|doen) we|we gebruiken (?:hier |alleen |altijd |geen |nooit )|we "
                rf"(?:schrijven|doen) (?:altijd|nooit|alleen) ){REST}"
            ),
        ),
        (
            "preference",
            r"ik geef de voorkeur aan (?!de\b|het\b|die\b|dat\b)[^?\n]{3,120}|wij? geven de voorkeur aan [^?\n]{3,120}",
        ),
        ("preference", rf"{_NL_DO} {NAMED} in plaats van {NAMED}(?:[,.!;]|\s*$)"),
        ("preference", rf"(?:voor|na) (?:elke|iedere|elk) [\w-]+,? {_NL_DO}\b{REST}"),
        ("constraint", rf"(?:alle|elke|iedere) [\w-]+(?: [\w-]+)? (?:moeten|moet|mogen|mag) {REST}"),
        (
            "statement",
            (
                r"(?:alle |de |onze )?(?:datums|bedragen|prijzen|ids|tijdstempels|timestamps|wachtwoorden) (?:zijn|worden|staan)(?: altijd)? (?:in|"
                r"als) [^?\n]{2,80}"
            ),
        ),
    ),
)

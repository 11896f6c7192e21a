"""What may be cut off what somebody tells: orders for the work at hand.

An order is known by how it begins, in Japanese and Chinese by how it ends. What would hold for
longer too, as it bears a condition, a limit or a choice, is none. Sentences are masked as for `phrases`.
"""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.phrases import any_of

_I = re.IGNORECASE

# Verbs that are names of things too, and what shows that they are none.
_EN_BOTH = (
    r"(?:add|fix|drop|put|swap|bump|merge|rebase|push|commit|check|look|open|close|mask|split|cut|skip|try|run|start|ping|show|paste|reset|restore"
    r"|clean|pull|switch|turn|set|park|patch|test|tag|change|update|move|file|branch|write|send|leave|give|tell|ask)"
    r" (?=(?:the|an?|it|them|that|this|those|these|my|your|his|her|him|me|us|both|one|some|to|in|on|for|from|with|at|into|back|out|up|off|down|again"
    r"|what|how|why|everything|\d)\b)"
)
_EN = (
    any_of(
        "rename rerun re-run redo remove delete revert undo rework rewrite replace squash amend strip restart convert correct adjust clean_up "
        "regenerate retry wrap get_rid assign gitignore make_(?:it|them|that|this|the|sure) let_me"
    )
    + rf"(?!\w)|{_EN_BOTH}"
)
_EN_SHORT = any_of(
    "fix add drop put swap bump merge rebase push commit check open close mask move run tag write send leave tell ask change"
)
_EN_ANY = rf"(?:{_EN_SHORT}|{_EN})"
_EN_SURE = r"(?:please|pls|bitte|(?:please |pls )?(?:can|could|would) (?:you|u)|let'?s(?! (?:stay|keep|use|go with|stick|not)\b))"
_DE = any_of(
    "mach nimm schreib bau änder lösch entfern zieh stell setz pack schau guck prüf korrigier schmeiß wirf tausch benenn verschieb häng hol schick "
    "zeig füg trag leg stell_um ersetz dreh kürz kannst_du können_sie machst_du"
)
_FR = any_of(
    "refais refaites mets mettez enl[eè]ve enlevez vire virez retire retirez changez corrige corrigez ajoute ajoutez regarde regardez supprime "
    "supprimez renomme renommez remets remettez relance relancez vise convertis fais faites tag prévois prends reprends vérifie tu_peux pouvez-vous"
)
# Where a verb reads the same of a third one, a clause behind another may tell what that one does.
_ROMANCE = any_of(
    "pon haz hazl[oa]s? ponl[oa]s? rehaz quítal[oa]s? quítale cámbial[oa]s? mételo bórral[oa]s? cópial[oa]s? exclúyel[oa]s? pásame déjal[oa]s? "
    "compáral[oa]s? puedes podrías refaz faz põe refaça faça troque apague mude "
    "togli toglil[oa] metti mettil[oa] cambial[oa] rifai rifall[oa] fai fanne correggi correggil[oa] aggiungi rimuovi spostal[oa] girale potresti"
)
_ROMANCE_BOTH = any_of(
    "quita cambia mete borra prueba mira revisa arregla corrige añade agrega renombra mueve saca copia reescala reutiliza deja dale vuelve compara "
    "tira troca coloca apaga muda corrija arruma adiciona testa confere confirma deixa marca manda roda cambia sposta prova cancella rinomina lascia"
)
_NL = any_of("haal doe zet verwijder verander maak schrijf voeg kijk probeer zoek kun_je kan_je wil_je graag")
_ROMANCE_SURE = rf"{_ROMANCE_BOTH} [^.]*\b{any_of('has te tu tus a_ver ahí aí eso isso esto')}\b"
_PLAIN = rf"(?:{_EN}|{_ROMANCE_SURE}|(?:{_DE}|{_FR}|{_ROMANCE}|{_NL})\b)"
_VERB = rf"(?:{_EN_ANY}|{_PLAIN}|{_ROMANCE_BOTH})"
_SO = any_of(
    "so,? so_please so_pls so_just so_now then so_then therefore hence and_please also dann deshalb also_bitte also_mach drum donc alors du_coup "
    "así_que entonces o_sea então portanto quindi allora dus"
)
_AND = any_of("and und et y e en und_dann and_then et_puis y_luego")
_POLITE = any_of("please pls bitte mal stp s'il_te_plaît por_favor porfa per_favore graag alsjeblieft just now")
_PLEASED = (
    rf"[^.]*\b{any_of('please pls plz bitte stp svp por_favor porfa per_favore alsjeblieft s.il_te_plaît')}[\s.!]*$"
)
_HERE = any_of("it them that those these this one both back again there everything what_you you_just your out")
_DONE_TO = rf"(?:{_EN}) ?(?:\w+ ){{0,4}}?{_HERE}\b"
#: An order for the work at hand; the group `so` where it is said to follow from what stands before it.
ORDER = lazy_compile(
    rf"(?:(?P<so>(?:{_SO})\s+(?:{_POLITE}\s+)*)(?:{_VERB}|{_EN_SURE})\b"
    rf"|(?P<polite>(?:{_AND} )?(?:{_EN_SURE}\b|(?=(?:{_POLITE} )*{_VERB}\b{_PLEASED})))"
    rf"|(?P<here>(?:{_AND} )?{_DONE_TO})|(?P<plain>(?:{_POLITE}\s+)*{_PLAIN}))",
    _I,
)
_AT_IT = (
    r"(?:(?:and|und|et|y|e|en) )?(?:(?:while|since) (?:you'?re|you are|ur|u are|we'?re) (?:at it|there|on it)|(?:wo|wenn) du schon (?:dabei|da) bist|"
    r"(?:tant que|pendant que) tu y es|ya que (?:estás|estamos)|já que (?:você )?(?:está|tá) (?:aí|nisso)|già che ci sei|"
    r"(?:nu|als) je toch bezig bent)"
    r",? (?!(?:the|we|our|i|it|its|it's|they|there|this|that|das|die|der|wir|le|la|les|on|el|los|las|o|a|il|het|de)\b)"
)
_NEVER_MIND = any_of(
    "never_?mind nvm forget_(?:it|about_it) no_worries vergiss_es egal schon_gut laisse_tomber tant_pis pas_grave da_igual no_importa déjalo "
    "deixa_(?:pra_lá|quieto) esquece lascia_(?:stare|perdere) non_importa fa_niente laat_maar maakt_niet_uit"
)
#: What is asked for, or done without, at this moment, in so many words.
FOR_NOW = lazy_compile(
    rf"(?:(?:please|pls|and|also|hey|bitte) )*(?:can|could|would|will) (?:you|u|ya)\b|{_AT_IT}|{_NEVER_MIND}\b"
    r"|ついでに|気にしないで|やっぱりいい|顺手|算了|没关系",
    _I,
)
#: What would hold for the next time too.
LASTS = lazy_compile(
    r"\b(?:always|never(?! ?mind)|from now on|every time|each time|in (?:the )?future|immer|nie|niemals|ab jetzt|künftig|toujours|jamais|désormais|"
    r"siempre|nunca|de ahora en adelante|sempre|d'ora in poi|altijd|nooit|voortaan)\b|必ず|いつも|毎回|今後|总是|每次|以后|永远|一律|必须",
    _I,
)
#: What leads to what follows from something.
FOLLOWING = lazy_compile(
    r"(?:so|therefore|hence|also|deshalb|daher|drum|darum|donc|alors|du coup|así que|por eso|entonces|então|por isso|quindi|perciò|dus|daarom) ",
    _I,
)
#: It ends by pointing at something.
POINTS_AT = lazy_compile(
    r"\b(?:it|that|this|those|these|them|there|das|dies|da|ça|cela|là|eso|esto|ahí|isso|isto|aí|quello|questo|lì|dat|dit|daar)"
    r"(?: (?:any ?more|again|now|too|yet|either))?\W*$",
    _I,
)
#: How an answer to something else begins, behind what is told.
ANSWER = lazy_compile(rf"(?:{_AND}) {any_of('no non nein nee não yes oui ja sí sim')}[,:] ", _I)
#: The same where it is known by its end.
EASTERN_ORDER = lazy_compile(
    r"(?:[てで](?:ください|下さい|くれる|くれます?か|もらえる|もらえますか|もらえます|ほしい(?:です)?|欲しい(?:です)?|おいて|頂けますか|いただけますか)|といて|どいて|"
    r"お願い(?:します|できますか|です)?|して|直して|足して|消して|投げて|通して|試して|見て|出そう|書いて)(?:ね|よ)?[。.!！]*$"
    r"|^(?:所以)?(?:麻烦|麻煩|请|顺手|顺便|你看|你把|你先|把|去(?![年掉])|换(?!不)|改(?!不)|删(?!不)|挪(?!不)|撤(?!不)|拿(?!不))|(?:一下|拿掉|去掉|删掉|撤掉|挪出去|改掉|换掉|重来|重写)吧?[。.!！]*$|吧[。.!！]*$"
)
#: Why it is so, in a language in which the reason stands before the order.
REASON = lazy_compile(r"(?:から|ので|んで|ため|し|けど|が)$")
#: What holds for longer than the work at hand may be worded as an order too.
HOLDS = lazy_compile(
    r"\b(?:always|never|ever|every|each|any|all|only|not|no|none|nothing|nobody|unless|except|if|when|whenever|wherever|instead|otherwise|"
    r"or|and (?:they|we|he|she)|because|since|until|before|after|don't|dont|doesn't|can't|cannot|must|should|"
    r"immer|nie|niemals|jede\w*|alle\w*|nur|nicht|kein\w*|wenn|falls|außer|sonst|statt|weil|bevor|erst|oder|"
    r"toujours|jamais|chaque|tous|toutes|pas|plus|seulement|sauf|sinon|quand|lorsque|parce|avant|ou|"
    r"siempre|nunca|cada|todos|todas|solo|sólo|sino|salvo|excepto|cuando|porque|antes|"
    r"sempre|todas|só|não|nem|quando|senão|ogni|tutti|tutte|mai|non|solo|tranne|perché|prima|"
    r"altijd|nooit|elke|iedere|niet|geen|alleen|tenzij|als|omdat|anders|voordat)\b|n't\b"
    r"|必ず|いつも|常に|毎回|(?<!そこ)だけ|以外|場合|とき|時は|禁止|ないで|しない|一律|必须|总是|每次|不要|不能|不许|只能|除非|如果|否则|别",
    _I,
)
#: What an order behind it belongs to: a case, or why.
CASE = lazy_compile(
    r"(?:and |but |und |et |y |e |en )?(?:if|when|whenever|wherever|where|once|before|after|until|unless|as soon as|as long as|in case|every time|"
    r"each time|while|for|to|in order to|since|because|as|given|how|wenn|falls|sobald|bevor|nachdem|immer wenn|um|weil|solange|wie|"
    r"da (?:die|der|das|wir|es|er|sie|man|in|im|auf)|si|quand|lorsque|dès que|avant|après|pour|tant que|comme|puisque|cuando|antes|después|para|"
    r"siempre que|como|en cuanto|porque|se|quando|depois|assim que|prima|dopo|appena|per|als|zodra|wanneer|voordat|nadat|om|omdat)\b"
    r"|もし|如果|要是|.*(?:たら|とき|時|場合|前に|後は|なら|れば|えば|すると)は?$|.*(?:时|的时候|的话|之前|之后|以后|前|后)$",
    _I,
)
#: What points at something that was named before, or says why.
LEANING = lazy_compile(
    r"(?:not|but|nor|it|its|it's|that|that's|this|those|these|they|them|he|she|so|then|which|who|because|since|as|when|if|unless|except|or|nor|than|"
    r"nicht|aber|kein\w*|pas|mais|pero|non|ma|não|mas|niet|maar|geen|das|die|der|dies\w*|es|sie|er|dann|weil|da|denn|sonst|oder|wenn|ça|c'est|ce|cela|il|elle|ils|elles|parce|car|sinon|qui|que|"
    r"eso|esto|es|lo|la|los|las|porque|ya|que|si|sino|isso|isto|ele|ela|pois|quello|questo|lo|perché|che|dat|dit|die|het|want|omdat|anders)\b"
    r"|(?:それ|これ|あれ|そこ|ここ|その|この|那|这|它|因为)",
    _I,
)

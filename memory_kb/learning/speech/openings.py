"""Words that lead to what is said and say nothing themselves: answers, interjections, what was chosen, what something is announced with."""

from __future__ import annotations

import re

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.phrases import any_of

# What a pause follows.
_ANSWER = any_of(
    "no+ nope nah yes yeah yep yup ok okay okey sure right correct exactly true agreed good great fine nice perfect cool thanks thx thank_you "
    "careful uh_careful watch_out heads_up attention important note fyi hm+ uh+ oh+ ah+ oops wait hold_on well please pls of_course indeed "
    "(?:just_)?one_(?:more_|small_|quick_|little_|last_|other_)*(?:thing|note|point|request) "
    "(?:a_couple_of_|two_|three_|some_|a_few_)(?:more_|small_|quick_|little_|other_)*(?:things|notes|points|requests) "
    "no_no non_non nein_nein no_wait wait_no (?:oh_)?god_no oh_no oh_wait hmm+_no uh_no yes_please no_thanks that_won't_(?:work|fly) "
    "that'?s_(?:wrong|right|fine|expected) not_quite not_really by_the_way btw yeah_no (?:no){2,} wow whoa aha+ aah+ ooh+ omg lol (?:ha){2,} "
    "eh+ pff+ ugh argh duh meh yess+ gr8 sweet awesome excellent wonderful lovely super finally whatever there_we_go uh_wait "
    "(?:that'?s_)?(?:much_)?(?:more_like_it|better) (?:(?:no|uh|hm+|ah|oh)_)?actually (?:no_)?on_second_thoughts? good_enough "
    "nein nö nee+ ne ja jo genau stimmt richtig gut prima passt gerne? moment halt stopp achtung vorsicht übrigens wichtig ach_so ach geht_nicht "
    "(?:das_)?geht_(?:so_)?nicht (?:das_)?stimmt_(?:so_)?nicht bloß_nicht lieber_nicht ja_(?:bitte|genau) noch_(?:was|eins) eins_noch "
    "klasse schön toll na_(?:gut|ja|toll) warte(?:_mal)? (?:ja_)?(?:natürlich|klar) (?:yes_)?of_course(?:_not)? (?:oui_)?bien_sûr sorry my_bad "
    "non oui si ouais d'accord attention exact voilà surtout_pas pas_du_tout au_fait ah_(?:oui|non|bon) (?:ah_)?oui_normal non_merci hmm+_non "
    "euh bon bah ben parfait merci attend(?:s|ez) nickel génial tant_mieux ah_non_pas "
    "sí vale de_acuerdo claro ojo exacto perfecto gracias cuidado atención espera por_cierto así_no uy ay bueno no_hace_falta ah_claro uy_no "
    "dale genial bárbaro listo "
    "sim não isso certo claro perfeito obrigad[oa] cuidado espera aliás a_propósito opa ah_não ó peraí calma beleza isso_mesmo "
    "sì esatto giusto perfetto grazie attenzione aspetta no_guarda guarda ecco a_proposito va_bene ottimo "
    "klopt precies goed prima bedankt dank_je let_op wacht overigens trouwens niet_doen mooi ho fijn oeps"
)
# What needs none, as nothing that is told begins so.
_BARE = any_of(
    "(?:oh_|yeah_|yes_|ok_|okay_|no_|and_)*(?:btw|by_the_way|fyi) (?:oh_|yeah_|yes_|ok_|okay_)*(?:and|also|but)(?:_also)?(?:_please|_pls)? "
    "(?:please|pls)(?=_(?:always|never|no|don't)\\b) hey hm+ uh+ oh ah ugh und(?:_außerdem|_bitte)? außerdem übrigens ach_ja au_fait "
    "(?:(?:oh|uh|no|ah|hm+)_)?wait(?=_(?:that'?s?|this|it'?s?|no|we|you|don'?t|never|is|are|did)\\b) oh_wait whoa wow omg lol (?:ha){2,} eh+ pff+ "
    "ok(?:ay)?(?=_(?:this|that'?s?|so|we|it'?s?|the|there|they|you|das|die|der|wir|es|dus|donc|on|c'est|ça|het|de|dat|eso|isso)\\b) "
    "(?:yes|yeah|yep)(?=_(?:we|i|they|you|it|its|it's|that|that's|there|this|always|never|don'?t|every|the|our)\\b) "
    "no(?=_(?:we|they|its|it's|that's)_) no(?=_(?:don'?t|do_not|never|actually|wait)\\b) no(?:_no)+ (?:no){2,} noo+ nope nah nee(?:_nee)* "
    "(?:no_)?actually(?=_(?:revert|undo|no|that|we|it)\\b) "
    "attend(?:s|ez)(?=_(?:ne|non|c'est|on|ça|il|elle)\\b) warte(?=_(?:nicht|das|da|die|wir)\\b) espera(?=_(?:no|eso|pero)\\b) "
    "wacht(?=_(?:niet|dat|dit|we)\\b) aspetta(?=_(?:non|no|questo)\\b) peraí "
    "oui(?!_(?:et|ou)\\b) non(?=_(?:on|c'est|nous|ça)\\b) "
    "(?:ja|nein|nee|nö)(?=_(?:wir|das|die|der|es|ich|da|hier|bei|we|dat|het|ik)\\b) par_contre ok_mais "
    "et_aussi por_cierto además aliás a_proposito inoltre trouwens overigens"
)
_EASTERN = (
    r"(?:いやいや|いや|いえいえ|いえ|いいえ|はい|うん|ええ|ああ|あー|あっ|あ|えっと|えー|そうそう|違う違う|違います|違う|おけ|了解(?:です)?|わかりました|"
    r"それはそう|待って|ちょっと待って|あと|それと|すみません|ごめん)[、，,。！!…]+\s*"
    r"|(?:ちなみに|そういえば|余談(?:ですが|だけど)|先にお伝えしておくと)[、，,]?\s*"
    r"|(?:不用了?|不对|不行|不是|不要|不|好的|好|对了|对|嗯+|是的|可以|行|哦|哎|等等|等一下|另外|顺便说一下|顺便|注意|还有|没事)[，,。、！!]+\s*"
)
_NOTED = (
    r"(?:(?:also|and|so|please|pls|bitte|und|por favor|per favore|s'il te plaît) )*(?:remember|keep in mind|merken? sie sich|merke? dir|"
    r"souviens-toi|souvenez-vous|retiens|note bien|recuerda|ten en cuenta|lembre?(?:-se)?|lembra|ricorda(?:ti)?|tieni presente|onthoud)"
    r"\b[^,:;.\n]{0,40}:\s+"
)
# What somebody took of what was offered, by its letter or its place.
_THEN = any_of("then please pls bitte dann alors entonces então allora dan it_is")
_PLACE = any_of(
    "neither both the_(?:first|second|third|last|latter|former|other)(?:_(?:one|option|way))? "
    "(?:das|die|der)_(?:erste|zweite|dritte|letzte)(?:_variante)? (?:la|le)_(?:première|premier|deuxième|seconde?|troisième|dernière) "
    "(?:la|el)_(?:primera|segunda|tercera|última) a_(?:primeira|segunda|terceira|última) la_(?:prima|seconda|terza|ultima) "
    "de_(?:eerste|tweede|derde|laatste)"
)
_CHOSEN = (
    r"(?:(?:(?:option|variante?|opción|opção|opzione|optie|plan) )?(?:(?-i:[A-H])\d?|\d))"
    rf"(?:(?: {_THEN})+\s*[,.;:!–—]+|\s*[.;!](?=\s+[^\W\d]{{2}}))\s+"
    rf"|{_PLACE}(?: {_THEN})*\s*[,.;!–—]+\s+"
    r"|(?:[A-H\d]で|[12一二三]つ目(?:の方)?で|后者|前者|选 ?[A-H\d]|第[一二三]个)[、，,。！!]+\s*"
)
# What is said before something is explained.
_SO = any_of("so ok also donc alors dus entonces então quindi")
_HOW = any_of(
    "(?:here'?s_|this_is_)?how_(?:it|this|that)_works (?:some_|for_|more_)?(?:background|context) (?:the_)?way_it_works "
    "(?:so|wie)_(?:funktioniert|geht|läuft)_(?:das|es) wie_(?:das|es)_funktioniert (?:zum_)?hintergrund kontext "
    "(?:voilà_)?comment_ça_(?:marche|fonctionne) (?:pour_le_)?contexte (?:así|cómo)_funciona contexto "
    "(?:é_assim_que|como)_funciona (?:ecco_)?come_funziona funziona_così contesto (?:hoe_het|zo)_werkt(?:_het)? achtergrond"
)
_EXPLAINING = (
    rf"(?:{_SO}[, ]+)*{_HOW}\s*[:：]\s+|(?:背景|仕組み|経緯)(?:は|として|を言うと|ですが)?[：:、，]\s*"
    r"|(?:说一下背景|背景|情况)(?:是这样的?)?[：:，]\s*"
)
_SMILE = r"[:;]-?[)D]+\s+"
#: What leads to what is said, as many pieces as there are.
OPENING = lazy_compile(
    rf"(?:(?:{_ANSWER})\b(?:\s*[,:;.!…]+\s+|\s+[–—-]+\s+|\s+{_SMILE})|(?:{_BARE})\s*[,:]?\s+(?=\w)(?!(?:then|if|when|that)\b)"
    rf"|{_NOTED}|{_CHOSEN}|{_EXPLAINING}|{_EASTERN})+",
    re.IGNORECASE,
)

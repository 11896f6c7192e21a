"""How people word instructions in French, Spanish, Portuguese and Italian."""

from __future__ import annotations

from memory_kb.learning.speech.phrases import any_of
from memory_kb.learning.speech.tongues import NAMED, REST, asking, tongue

# -- French --------------------------------------------------------------------------------

_FR_DO = (
    r"(?:utilise[sz]?|utilisez|emploie|mets|mettez|écris|écrivez|fais|faites|prends|prenez|lance|lancez|exécute|garde|gardez|préfère|"
    r"évite[sz]?|pousse[sz]?|committe|teste[sz]?|"
    r"nomme[sz]?|ajoute[sz]?|appelle|vérifie[sz]?|formate[sz]?|respecte[sz]?|demande[sz]?|réponds|répondez|commente[sz]?|stocke[sz]?|"
    r"passe[sz]?|laisse[sz]?|commence[sz]?)"
)
_FR_NEVER = r"(?:jamais|plus jamais|en aucun cas)"
_FR_HERE = r"(?:ici|dans (?:ce|notre|le) (?:projet|dépôt|repo|code|module)|chez nous|partout|dans cette (?:équipe|base de code))"
_FR_DATA = r"(?:dates?|montants?|prix|horodatages?|identifiants?|ids?|horaires|timestamps?|sommes|valeurs|mots de passe|secrets)"
_ALL = r"[^?\n]{0,120}"
#: What is written in some language or by some rule.
_WRITTEN_FR = r"(?:commits|messages de commit|commentaires|noms de (?:variables?|branches?|tests?)|branches|pull requests|tests|docs?)"
_WRITTEN = (
    r"(?:commits|mensajes(?: de commit)?|mensagens(?: de commit)?|messaggi(?: di commit)?|comentarios|comentários|commenti|nombres|nomes|nomi|ramas|"
    r"branches|tests|testes|test|pruebas|migraciones|migrações|migrazioni|pull requests|prs)"
)
FRENCH = tongue(
    lead=any_of(
        "et mais alors ok bon bien parfait merci attention au_fait important note super oui d'accord s'il_te_plaît stp svp donc aussi "
        "rappel pour_info déjà_dit"
    ),
    objection="non|faux|pas du tout|en fait",
    request=asking(
        r"(?:pour la suite,? )?(?:souviens[- ]toi|rappelle[- ]toi|retiens|retenez|n'oublie(?:z)? pas|garde(?:z)?(?: bien)? en (?:tête|mémoire)|"
        r"notez?|mémorise|sache)(?! (?:ça|cela|le) (?!pour|:))",
        "bien|de ceci|de ça|ceci|ça|pour (?:plus tard|la suite|la prochaine fois|l'avenir)|s'il te plaît|stp",
        "que|qu'",
        "à retenir|pour la suite|pour plus tard|pour l'avenir|note|à noter",
    ),
    request_back=(
        r"(?:et )?(?:garde(?: bien)? (?:ça|cela) en tête|retiens[- ](?:le|ça|bien ça)|souviens[- ]t'en|n'oublie pas (?:ça|cela)|retiens "
        r"ça)\b"
    ),
    doubt=(
        (
            r"\b(?:aujourd'hui|demain|hier|pour l'instant|pour le moment|cette fois|temporairement|provisoirement|en attendant|cette semaine|"
            r"ce soir|toujours pas|encore|pourquoi|"
            r"peut-être|supposons|imaginons|disons|si on|bug|échoue|plante|marche|fonctionne pas|deux fois|vide)\b"
        ),
        (
            r"\bjusqu'(?:à|au|en|à ce)|\b(?:j'ai|je n'|je ne|j'avais|il a|elle a|on a|nous avons|était|étaient|avait)\b|\bje (?!préfère|veux "
            r"toujours|veux|souhaite|fais|pousse)"
        ),
        (
            r"\b(?:ce|cet|cette|ces) (?!projet|dépôt|repo|code|module|équipe|base)\w|\bl'autre\b|\b(?:le|la|les) (?:premi|deuxi|second|derni|"
            r"ancien|nouve|autre)\w*"
        ),
        (
            r"\b(?:même|problème|erreur|vu|eu|compris|passer|utilisateurs?|clients?|bleu|rouge|vert|bouton|boutons|page|titre|menu|couleur|"
            r"icône|formulaire|gras|italique|écran|colonne)\b|\bplus de (?:questions?|problèmes?|temps|soucis?)\b|\bdit que\b"
        ),
    ),
    ways=(
        ("preference", rf"(?:ne |n')(?:pas )?\w+(?:[ -]\w+)? (?:{_FR_NEVER})\b{REST}"),
        ("preference", rf"{_FR_DO} (?:[^,.;?!\n]{{0,30}} )?toujours {REST}"),
        ("preference", rf"(?:toujours|jamais) (?:de |des |d'|du |en |sur |avec |les |le |la )?(?=[\w`]){REST}"),
        (
            "preference",
            rf"(?:désormais|dorénavant|à partir de maintenant|à l'avenir|dès maintenant),? (?!(?:ça|c'est|il|elle)\b){REST}",
        ),
        ("preference", rf"(?:{_FR_HERE},? )?(?:on|nous) (?:n'|ne )?\w+ (?:plus|jamais|toujours|que)\b{REST}"),
        (
            "preference",
            (
                rf"(?:{_FR_HERE},? )?(?:on|nous) (?:ne |n')(?!(?:a|est|voit|sait|peut|veut|arrive|comprend|trouve|avait|était|doit)\b)\w+ pas "
                rf"(?:de |d'|les |nos |directement |en ){REST}"
            ),
        ),
        (
            "preference",
            (
                rf"pour (?:les|des|nos) [\w-]+(?: [\w-]+)?,? (?:plutôt|utilise|prends|préfère) (?!\d){NAMED} "
                rf"(?:que|au lieu d[e']|plutôt que|à la place d[e'])\s?"
                rf"{NAMED}(?:[,.!;]|\s*$){_ALL}"
            ),
        ),
        (
            "preference",
            rf"(?:les |nos )?{_WRITTEN_FR} (?:sont|se font|s'écrivent|restent) (?:toujours )?(?:en|au) {REST}",
        ),
        (
            "preference",
            rf"(?:{_FR_HERE},? )(?:on|nous) (?:utilise|emploie|écrit|met|fait|utilisons|écrivons|mettons) {REST}",
        ),
        (
            "preference",
            (
                rf"(?:on|nous) (?:utilise|emploie|écrit|met|utilisons|écrivons) (?=[^?\n]*(?:\b{_FR_HERE}\b|, (?:pas|jamais) |au lieu|plutôt "
                rf"que)){REST}"
            ),
        ),
        (
            "preference",
            (
                rf"(?:je préfère|nous préférons|on préfère) (?!celui|celle|l'autre|la (?:premi|deuxi|second)|le (?:premi|deuxi|second)|ça|que tu "
                rf"m'expliques){REST}"
            ),
        ),
        ("preference", rf"{_FR_DO} {NAMED} (?:au lieu d[e']|plutôt que|à la place d[e'])\s?{NAMED}(?:[,.!;]|\s*$)"),
        ("preference", rf"(?:avant|après|à) (?:chaque|tout) [\w-]+,? {_FR_DO}\b{REST}"),
        (
            "preference",
            rf"(?:chaque fois que|quand) (?:tu|vous) [^,?\n]{{3,60}}\bune? [^,?\n]{{3,60}}, {_FR_DO}\b{REST}",
        ),
        (
            "preference",
            r"plus (?:de |d')[^,?\n]{3,60}?(?:, s'il te plaît|, merci|, stp| stp| svp|,? s'il vous plaît)[.!]*\s*$",
        ),
        (
            "constraint",
            rf"(?:tous les|toutes les|chaque|tout|toute) [\w-]+(?: [\w-]+)? (?:doit|doivent|ne doit|ne doivent) {REST}",
        ),
        (
            "constraint",
            r"(?:les |la |le |l')?[\w-]+ (?:est|sont) (?:interdit|interdite|interdits|interdites|obligatoire|obligatoires|proscrit)\w*\b[^?\n]{0,80}",
        ),
        ("constraint", rf"il (?:ne faut jamais|est interdit de|faut toujours) {REST}"),
        (
            "statement",
            (
                rf"(?:tous |toutes )?(?:les |nos )?{_FR_DATA}(?: (?:de|du|dans|des) [^\s?]+)? (?:sont|est|se calcule\w*|sont stockées?|sont "
                rf"enregistré\w+)(?: toujours| tous)? (?:stocké\w* |enregistré\w* )?(?:en|sur|au format|comme) [^?\n]{{2,80}}"
            ),
        ),
        (
            "statement",
            (
                r"(?:le |la |l'|les )[\w' -]{3,50}? (?:se \w+|est \w+e?|sont \w+e?s?) toujours (?:sur|en|par|avec|dans|via) [^?\n]{2,100}(?:, "
                r"jamais [^?\n]{2,60})?"
            ),
        ),
    ),
)

# -- Spanish, Portuguese, Italian ----------------------------------------------------------

_IBERIAN_DATA = r"(?:fechas|importes|precios|ids?|marcas de tiempo|montos|timestamps?|datas|preços|valores|importi|prezzi|date|horas|contraseñas|secretos)"
SPANISH = tongue(
    lead=any_of(
        "y pero entonces ok vale bueno bien perfecto gracias atención por_cierto importante nota sí claro además también por_favor oye recuerda"
    ),
    objection="no|nop|falso|incorrecto|en realidad",
    request=asking(
        "(?:por favor,? )?(?:recuerda|recuérdalo|ten en cuenta|ten presente|no olvides|acuérdate(?: de)?|"
        "toma nota(?: de)?|apunta|anota|guarda(?= esto))",
        "bien|esto|lo siguiente|para (?:luego|después|más tarde|el futuro|la próxima(?: vez)?)|por favor",
        "que",
        "para el futuro|a tener en cuenta|para la próxima|para luego|nota",
    ),
    request_back=r"(?:y )?(?:tenlo en cuenta|recuérdalo|no lo olvides|acuérdate de (?:eso|esto)|ten esto en cuenta)\b",
    doubt=(
        (
            r"\b(?:hoy|mañana|ayer|por ahora|de momento|por el momento|esta vez|temporalmente|mientras tanto|esta semana|todavía|aún|"
            r"supongamos|imagina|digamos|quizás?|tal vez|"
            r"por qué|falla|funciona|termina|carga|roto|vacío|dos veces|entendí|era|eran|había|he|hemos|fue|fueron|hice|tuve|acaba de)\b"
        ),
        (
            r"\bhasta (?:el|la|los|las|que|mañana|nuevo|finales|\d|lunes|viernes)\b|\b(?:este|esta|estos|estas|ese|esa|aquel|aquella) "
            r"(?!proyecto|repo|repositorio|código|equipo|módulo)\w"
        ),
        (
            r"\b(?:el|la|los|las) (?:otr|primer|segund|últim|viej|nuev|izquierd|derech)\w* (?!pantallas|funciones|clases)|\b(?:mismo|error|"
            r"pasar|usuarios?|clientes?|azul\w*|roj[oa]s?|verdes?|botón|botones|título|página|menú|color|icono|formulario|negrita|cursiva|"
            r"columna)\b"
        ),
        r"\b(?:no pasa nada|no te preocupes|no hay problema|gracias)\b|\b(?:dice|dijo|dicen) que\b",
    ),
    ways=(
        (
            "preference",
            rf"(?:los |las |nuestr[oa]s )?{_WRITTEN} (?:van|son|se escriben|se hacen|están) (?:siempre )?(?:en|al) {REST}",
        ),
        (
            "preference",
            (
                rf"(?:siempre|nunca|jamás) (?!(?:he|hemos|me|se|fue|es|está|están|que|lo|la|te|nos|tuve|había)\b)(?=\w+(?:a|e|as|es|ar|er|ir|á|"
                rf"é)\b){REST}"
            ),
        ),
        (
            "preference",
            (
                rf"(?:usa|utiliza|escribe|haz|pon|ejecuta|prefiere|mantén|añade|llama|nombra|guarda|evita|sube|prueba|pregunta|responde|comenta) "
                rf"(?:[^,.;?!\n]{{0,30}} )?siempre\b{REST}"
            ),
        ),
        (
            "preference",
            rf"no (?:uses|utilices|hagas|escribas|pongas|subas|añadas|toques|metas|cambies|guardes|hagáis) (?:nunca|jamás|más)\b{REST}",
        ),
        (
            "preference",
            (
                rf"no uses (?!(?:el|la|los|las|ese|esa|este|esta|eso|esto)\b)[\w.+#-]+ (?:en (?:las|los|el|la) [^,?\n]{{3,50}})?, (?:aquí |ya |"
                rf"nosotros )?(?:usamos|tenemos|utilizamos)\b{REST}"
            ),
        ),
        (
            "preference",
            rf"(?:a partir de ahora|de ahora en adelante|en adelante|desde ahora|en el futuro),? (?!(?:va|será|es)\b){REST}",
        ),
        (
            "preference",
            (
                rf"(?:en (?:este|nuestro) (?:proyecto|repo|repositorio|código|equipo)|aquí),? (?:siempre |nunca |no |solo |sólo |ya no )?(?:usamos|"
                rf"utilizamos|escribimos|ponemos|hacemos|tenemos|se usa|se usan|se escriben?) {REST}"
            ),
        ),
        (
            "preference",
            rf"(?:ya no|nunca|siempre|solo|sólo|no) (?:usamos|utilizamos|escribimos|hacemos|subimos|ponemos) {REST}",
        ),
        ("preference", rf"(?:prefiero|preferimos) (?!(?:el|la|los|las|ese|esa|este|esta|eso|esto|que me)\b){REST}"),
        ("preference", rf"(?:usa|utiliza|pon|escribe) {NAMED} (?:en lugar de|en vez de) {NAMED}(?:[,.!;]|\s*$)"),
        (
            "preference",
            rf"(?:antes|después) de (?:cada|todo) [\w-]+,? (?:siempre )?(?:ejecuta|usa|haz|pon|corre|pasa|lanza|revisa|actualiza|formatea)\b{REST}",
        ),
        (
            "preference",
            (
                rf"(?:cada vez que|siempre que|cuando) (?:cambies|añadas|agregues|toques|modifiques|crees|edites|renombres) una? [^,?\n]{{3,60}}, "
                rf"(?:usa|ejecuta|haz|pon|añade|actualiza|regenera)\b{REST}"
            ),
        ),
        (
            "constraint",
            rf"(?:todos los|todas las|cada|todo|toda|ningún|ninguna) [\w-]+(?: [\w-]+)? (?:debe|deben|tiene que|tienen que|puede|pueden) {REST}",
        ),
        (
            "constraint",
            r"(?:el |la |los |las )?[\w.+#-]+ (?:está|están) (?:prohibid[oa]s?|terminantemente prohibid[oa]s?)\b[^?\n]{0,80}",
        ),
        (
            "statement",
            (
                rf"(?:todos |todas )?(?:los |las |nuestr[oa]s )?{_IBERIAN_DATA}(?: de [^\s?]+| en [^\s?]+)? (?:están|son|se guardan|se almacenan|"
                rf"van)(?: siempre| todos| todas)? (?:en|como) [^?\n]{{2,80}}"
            ),
        ),
    ),
)
PORTUGUESE = tongue(
    lead=any_of("e mas então ok bom bem perfeito obrigad[oa] atenção aliás importante nota sim por_favor também"),
    objection="não|errado|na verdade",
    request=asking(
        "(?:por favor,? )?(?:lembre-se(?: de)?|lembra-te(?: de)?|lembra(?: de)?|não (?:se )?esqueça(?: de)?|"
        "tenha em mente|anote|anota|guarde?(?= isso| isto))",
        "bem|aí|isso|isto|o seguinte|para (?:depois|mais tarde|o futuro|a próxima(?: vez)?)|por favor",
        "que",
        "para o futuro|para depois|para a próxima|nota",
    ),
    request_back=r"(?:e )?(?:lembre-se disso|tenha isso em mente|não esqueça disso)\b",
    doubt=(
        (
            r"\b(?:mesmo|erro|problema|usuários?|clientes?|hoje|amanhã|ontem|por enquanto|por agora|desta vez|dessa vez|temporariamente|esta "
            r"semana|ainda|talvez|suponha\w*|imagine|por que|falha|funcionou|funciona|vazio|"
            r"era|eram|fui|foi|tive|tinha|minha|meu)\b|\baté (?:o|a|que|sexta|segunda|terça|quarta|quinta|sábado|domingo|amanhã|\d)"
        ),
        (
            r"\b(?:este|esta|estes|estas|esse|essa|deste|desta|neste|nesta) (?!projeto|repositório|repo|código|equipe)\w|\b(?:botão|botões|"
            r"título|página|menu|cor|ícone)\b|\b[oa] (?:outr|antig|nov)\w+"
        ),
    ),
    ways=(
        (
            "preference",
            rf"(?:use|utilize|escreva|faça|coloque|execute|mantenha|rode|usa) (?:[^,.;?!\n]{{0,30}} )?sempre {REST}",
        ),
        (
            "preference",
            rf"(?:sempre|nunca|jamais) (?!(?:me|se|é|foi|está|que|o|a|te|nos)\b)(?=\w+(?:a|e|as|es|ar|er|ir)\b){REST}",
        ),
        ("preference", rf"não (?:use|utilize|faça|escreva|coloque|suba) (?:nunca|mais|jamais)\b{REST}"),
        ("preference", rf"(?:a partir de agora|de agora em diante|daqui em diante|daqui para a frente),? {REST}"),
        (
            "preference",
            (
                rf"(?:(?:neste|nesse|em nosso) (?:projeto|repositório|código)|aqui),? (?:sempre |nunca |não |só )?(?:usamos|utilizamos|escrevemos|"
                rf"fazemos) {REST}"
            ),
        ),
        ("preference", rf"(?:(?:já )?não|nunca|sempre|só) (?:usamos|utilizamos|escrevemos|fazemos) {REST}"),
        ("preference", rf"nada de (?!(?:mais|errado|novo|especial|grave|mal)\b){NAMED}(?:[,.!;]|\s*$){_ALL}"),
        (
            "preference",
            rf"(?:os |as |nossos |nossas )?{_WRITTEN} (?:são|vão|ficam|se escrevem) (?:sempre )?(?:em|no) {REST}",
        ),
        ("preference", rf"(?:prefiro|preferimos) (?!(?:o|a|os|as|esse|essa|este|esta|isso|que me)\b){REST}"),
        ("preference", rf"(?:use|usa|utilize) {NAMED} (?:em vez de|ao invés de|no lugar de) {NAMED}(?:[,.!;]|\s*$)"),
        ("preference", rf"antes de cada [\w-]+,? (?:execute|rode|use|faça)\b{REST}"),
        (
            "constraint",
            rf"(?:todos os|todas as|cada|todo|toda) [\w-]+(?: [\w-]+)? (?:deve|devem|tem que|têm que|precisa|precisam) {REST}",
        ),
        (
            "statement",
            (
                r"(?:todos |todas )?(?:os |as |nossos )?(?:datas|preços|valores|ids?|timestamps?|senhas)(?: de [^\s?]+)? (?:estão|são|ficam|é)(?: "
                r"sempre| todos| todas)? (?:guardad[oa]s |armazenad[oa]s |salv[oa]s )?(?:em|como) [^?\n]{2,80}"
            ),
        ),
    ),
)
ITALIAN = tongue(
    lead=any_of("e ma allora ok bene perfetto grazie attenzione comunque importante nota sì per_favore inoltre"),
    objection="no|sbagliato|in realtà",
    request=asking(
        "(?:per favore,? )?(?:ricorda(?:ti)?|tieni presente|non dimenticare|non dimenticarti|tieni a mente|segnati|annota(?:ti)?|memorizza)",
        "bene|questo|quanto segue|per (?:dopo|il futuro|la prossima(?: volta)?)|per favore",
        "che",
        "per il futuro|per dopo|per la prossima volta|nota",
    ),
    request_back=r"(?:e )?(?:tienilo a mente|ricordatelo|non dimenticarlo|tienilo presente)\b",
    doubt=(
        (
            r"\b(?:stesso|errore|problema|utenti|oggi|domani|ieri|per ora|per adesso|stavolta|questa volta|temporaneamente|questa settimana|"
            r"ancora|forse|supponiamo|immagina|perché|fallisce|funziona\w*|vuoto|"
            r"era|erano|ho|ha|hanno|abbiamo|aveva)\b|\bfino a|\bfinché\b"
        ),
        (
            r"\b(?:questo|questa|questi|queste|quel|quella) (?!progetto|repo|repository|codice|team)\w|\b(?:pulsante|pulsanti|bottone|titolo|"
            r"pagina|menu|colore|icona)\b|\bl'altr[oa]\b"
        ),
    ),
    ways=(
        (
            "preference",
            rf"(?:usa|utilizza|scrivi|metti|esegui|mantieni|aggiungi|chiama) (?:[^,.;?!\n]{{0,30}} )?sempre {REST}",
        ),
        ("preference", rf"(?:sempre|mai) (?=\w+(?:are|ere|ire|arsi)\b|(?:il|la|i|le|gli|un|una) )\w{REST}"),
        ("preference", rf"non (?:\w+(?:are|ere|ire)|us\w+|scriv\w+|fare) mai {REST}"),
        ("preference", rf"(?:d'ora in poi|da ora in poi|da adesso in poi|in futuro),? {REST}"),
        (
            "preference",
            rf"(?:(?:in questo|nel nostro) (?:progetto|repo|codice)|qui),? (?:non |solo )?(?:usiamo|utilizziamo|scriviamo|facciamo) {REST}",
        ),
        ("preference", rf"(?:non usiamo (?:più|mai)|usiamo (?:sempre|solo)|scriviamo (?:sempre|solo)) {REST}"),
        (
            "preference",
            (
                r"(?:qui|in questo progetto|nel nostro codice|da noi),? (?=[^?\n]*(?:\b(?:tutt[oaie]|sempre|solo|soltanto|ovunque)\b|da nessuna "
                r"parte|, non ))"
                r"(?!(?:c'è|non c'è|manca|sotto|sopra)\b)[^?\n]{6,160}"
            ),
        ),
        (
            "preference",
            rf"(?:i |gli |le |nostri )?{_WRITTEN} (?:sono|vanno|si scrivono) (?:sempre |scritti )?(?:in|al) {REST}",
        ),
        ("preference", rf"(?:preferisco|preferiamo) (?!(?:il|la|i|le|quello|quella|questo|questa|che)\b){REST}"),
        ("preference", rf"(?:usa|utilizza) {NAMED} (?:invece di|al posto di|anziché) {NAMED}(?:[,.!;]|\s*$)"),
        ("preference", rf"prima di ogni [\w-]+,? (?:esegui|lancia|usa|fai)\b{REST}"),
        ("constraint", rf"(?:tutti i|tutte le|ogni|tutti gli) [\w-]+(?: [\w-]+)? (?:deve|devono) {REST}"),
        (
            "statement",
            (
                r"(?:tutti |tutte )?(?:gli |i |le |nostri )?(?:date|importi|prezzi|id|timestamp|password)(?: di [^\s?]+)? sono(?: sempre| tutti| "
                r"tutte)? (?:salvat[ei] |espress[ei] )?(?:in|come) [^?\n]{2,80}"
            ),
        ),
    ),
)

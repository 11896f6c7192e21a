"""What a sentence is made of, as far as it tells its kind: what is so, what must be, what somebody wants, or what was chosen.

The words of ten languages that say the same stand for each other here, so that what is learned in one language holds in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_kb.expressions import lazy_compile
from memory_kb.learning.speech.traits import traits

#: By what they say: words, and pairs of words, in languages with spaces.
_WORDS: Mapping[str, str] = {
    "must": """must has_to have_to need_to needs_to shall should ought required mandatory muss müssen soll sollen sollte pflicht zwingend
        gehört gehören doit doivent devra faut obligatoire debe deben tiene_que tienen_que hay_que obligatorio ha_de han_de deve devem tem_que
        têm_que precisa precisam obrigatório devono bisogna obbligatorio va vanno moet moeten dient dienen verplicht hoort horen""",
    "never": """never not_allowed forbidden forbids banned off_limits taboo nobody no_one niemals nie verboten tabu niemand jamais interdit
        interdite nunca jamás prohibido prohibida nadie proibido proibida ninguém mai vietato vietata vietati nessuno nooit verboden""",
    "not": "don't dont do_not doesn't not nothing nicht kein keine keinen nichts nix ne n' pas no não nao non niet geen nada ni niente rien",
    "always": """always every each all any everything everybody immer jede jeder jedes jeden alle allen alles stets toujours tous toute toutes
        tout chaque siempre todo todos toda todas cada sempre tutto tutti tutte ogni altijd elk elke iedere ieder""",
    "only": """only exclusively nothing_but nur ausschließlich allein seulement uniquement solo sólo solamente únicamente só somente apenas
        soltanto esclusivamente alleen uitsluitend slechts""",
    "may": """may allowed can can't cant cannot darf dürfen kann können peut peuvent puede pueden pode podem può possono mag mogen kan kunnen
        permitted erlaubt autorisé permitido""",
    "me": """i i'm i'd i'll i've im my mine me ich mir mich mein meine meinen meiner meins je j'ai moi mon ma mes yo mi mis eu mim meu minha
        meus minhas io mio mia miei ik mij mijn""",
    "want": """want wants prefer prefers rather like likes love hate hates please pls annoying annoys tired möchte mag lieber bitte nervt
        hasse préfère veux voudrais aime aimerais plutôt plaît stp svp déteste prefiero quiero gusta gustan mejor favor porfa odio molesta
        prefiro quero gosto melhor detesto preferisco voglio vorrei piace piacciono meglio favore liever wil graag vind alsjeblieft""",
    "we": """we we're we've our ours us wir uns unser unsere unseren nous notre nos on nosotros nuestro nuestra nós a_gente nosso nossa noi
        nostro nostra nostri wij ons onze here hier ici aquí acá aqui qui""",
    "they": """they their them he she his her sie ihr ihre er ils elle elles il leur leurs ellos ellas su sus eles elas seu seus loro ze zij
        hun hij""",
    "why": """because cause cuz since so_that otherwise or_else else weil denn damit sonst wegen car sinon puisque parce_que pour_que porque
        ya_que si_no para_que pois senão perché perche sennò altrimenti want omdat anders zodat vanwege""",
    "chosen": """decided settled chose chosen went going stick sticking stay stays stayed keep keeping kept dropped drop gave given abandoned
        agreed picked opted switched moved migrated replaced rejected scrapped ditched entschieden beschlossen bleiben bleibt geeinigt gewählt
        verworfen umgestiegen behalten fliegt rausgeworfen nehmen wechseln décidé choisi gardé garde reste restons part parti partis abandonné
        tranché retenu décidons decidimos decidido elegimos quedamos queda descartado descartamos dejamos optamos cambiamos pasamos escolhemos
        ficamos fica desistimos largamos trocamos decidiu deciso scelto restiamo resta teniamo scartato abbandonato passiamo passati tolto
        besloten gekozen blijven blijft houden afgestapt gestopt kiezen gaan afgesproken stappen""",
    "instead": "instead rather over than vs versus statt stattdessen anstatt als lieu plutôt vez lugar invece posto piuttosto plaats dan",
    "tried": """tried bit burned burnt too overkill unmaintained worth enough probiert versucht zu reicht lohnt essayé trop suffit probamos
        demasiado basta sobra muy tentamos caro cara demais chega provato troppo geprobeerd te genoeg""",
    "was": """was were had did been got came broke made war waren hatte hatten wurde wurden gab kam était étaient avait avaient été fue fueron
        era eran estaba había foi foram eram estava tinha fu erano aveva avevano stato stata werd werden hadden""",
    "is": """is are it's its there's ist sind liegt liegen steht stehen heißt est sont c'est es son está están hay é são sao estão há tem è
        sono c'è zijn staat staan ligt""",
    "has": """has have hat haben a ont avons tiene tienen tenemos têm temos ha hanno heeft hebben needs takes costs sends runs uses comes gets
        knows works reads writes returns braucht läuft kommt schickt nutzt macht dauert envoie tourne vient utilise met prend manda usa viene
        tarda llega corre roda vem chega arriva gira draait komt stuurt gebruikt duurt""",
    "time": """until till ago last year years month yesterday seit bis depuis desde hasta até da dal dalla fino sinds tot january february
        march april june july august september october november december januar februar märz juni juli oktober dezember janvier février mars
        avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio septiembre octubre noviembre
        diciembre""",
    "goes": """go goes belong belongs live lives end ends start starts begin begins called named carry carries kommt kommen heißen va vont van
        vai vão sta stanno entra entran entram komen written geschrieben écrit escrito scritto geschreven wird worden wordt se si""",
    "case": """before after when whenever unless without if bevor vor nach wenn sobald ohne avant après quand dès sans antes después cuando
        sin depois quando sem prima dopo senza voor na zodra zonder""",
    "talk": """answer answers reply replies explain summary summarise comment comments diff diffs table short shorter sentence sentences
        emojis emoji tone show tell ask antwort antworten erklär zusammenfassung kommentar kommentare kurz zeig frag sag réponse réponses
        explique résumé commentaire commentaires court courte montre demande dis respuesta respuestas explica explícame resumen comentario
        comentarios corto corta enséñame pregunta dime resposta respostas resumo mostra risposta risposte spiega spiegami riassunto commenti
        breve brevi fammi chiedi chiedimi antwoord uitleg samenvatting kort laat vraag zeg read lese lis leo leio leggo lees phone review""",
    "rule": """policy rule rules convention standard regel vorschrift vorgabe konvention règle norme regla norma convenio regra convenção
        regola afspraak law gdpr audit auditor auditors legal compliance contract license licence dsgvo gesetz vertrag recht loi contrat rgpd
        ley contrato lei lgpd legge contratto wet avg ci pr prs commit commits branch merge mr""",
}
#: The same in scripts without spaces: parts of what is written.
_PARTS: Mapping[str, str] = {
    "must": """必ず 必須 べき なければ なきゃ ねば 必要 ないと こと。 ことになって 必须 一定 应该 应当 一律 统一 都要 得先 要先 要求 规定
        ルール 規約 規定 決まり 約束 方針""",
    "never": """禁止 不可 ダメ だめ NG 使わない 使いません しない しません 入れない 書かない 触らない ません 不准 不能 不许 严禁 不得 不要 别
        不让 不用 不允许 勿""",
    "always": "全部 すべて 全て 毎 各 常に いつも 都 全 每 所有 总是",
    "only": "だけ のみ しか 限 只 仅 才",
    "may": "可以 できる よい OK いい 能 可 できない できません 無理 届かない 不了 没法 不支持 跑不",
    "me": "私 俺 僕 自分 わたし 我",
    "want": "ほしい 欲しい お願い 助かる 好き 嫌 苦手 くれ ください 頼む がいい 方が ほうが 喜欢 希望 想 最好 麻烦 宁可 给我 看着 习惯 烦 请",
    "we": "うち 弊社 当社 我々 チーム 我们 咱们 这边 组里 公司 团队",
    "they": "さん 先方 客 顧客 担当 他们 客户 对方 厂商 老师 那边",
    "why": "ので から ため ように 理由 因为 所以 不然 否则 免得 为了 怕 由于",
    "chosen": """決め 決ま 採用 やめ にした にする にします ことにし 乗り換え 見送 変え 選 で行 でいく 合意 决定 定了 定为 选 换成 改用 放弃
        就用 敲定 改成 保留 维持 继续 沿用 不再""",
    "instead": "代わり より ではなく じゃなく 而不是 代替 比 不是",
    "was": "だった ました された た。 了 过 曾",
    "is": "です だ である ている てる ある います なって 是 有 在 归 叫",
    "time": "以降 まで 以前 年 月 昨 以后 之前 之后",
    "case": "前 後 とき 時 たら 場合 ば 如果 的时候 先",
    "talk": "説明 回答 コメント 要約 箇条書き 表 短 結論 日本語 解释 回复 注释 结论 总结 表格 图 标题 语气",
    "rule": "レビュー マージ ブランチ PR CI 監査 法 規制 契約 合规 监管 审计 上线 评审 提交 分支 等保",
}
_SAID_BY: Mapping[str, tuple[str, ...]] = {
    word: tuple(cue for cue, words in _WORDS.items() if word in words.split())
    for words in _WORDS.values()
    for word in words.split()
}
_PARTS_OF = tuple((cue, tuple(parts.split())) for cue, parts in _PARTS.items())
_NO_SPACES = lazy_compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_TOKEN = lazy_compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[,;:(—–，、。]|(?<=\s)-(?=\s)")
_PAUSE = lazy_compile(r"[,;:(—–，、。]|ので|から")
_NUMBER = lazy_compile(r"\d+")
_NAME = lazy_compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_MOST_NUMBERS, _MOST_NAMES, _MOST_CLAUSES = 3, 2, 4


def kind_traits(sentence: str) -> frozenset[str]:
    """Return the traits of a sentence of a masked text that may tell its kind: its words, and what is said by them in its first clause and after.

    Example:
        >>> sorted(one for one in kind_traits("never touch dist, we sign it") if one[0] == "#")
        ['#1 never', '#2 we', '#clauses 2', '#names 0', '#numbers 0']
    """
    found = set(traits(sentence))
    found.update(_cues(sentence))
    found.add(f"#numbers {min(_MOST_NUMBERS, len(_NUMBER.findall(sentence)))}")
    found.add(f"#names {min(_MOST_NAMES, len(_NAME.findall(sentence)))}")
    return frozenset(found)


def _cues(sentence: str) -> Iterator[str]:
    """Yield what is said in the first clause of a sentence and in the others, and how many there are."""
    clauses, said = _clauses_without_spaces(sentence) if _NO_SPACES.search(sentence) else (0, ())
    clauses_with_spaces, more = _clauses(sentence)
    yield from said
    yield from more
    yield f"#clauses {min(_MOST_CLAUSES, max(clauses, clauses_with_spaces))}"


def _clauses(sentence: str) -> tuple[int, list[str]]:
    said, clause, last = list[str](), 1, ""
    for found in _TOKEN.finditer(sentence.lower()):
        word = found[0].replace("’", "'")
        if not (word[0].isalpha() or word.isdigit()):
            clause += bool(last)
            last = ""
            continue
        cues = (*_SAID_BY.get(word, ()), *_SAID_BY.get(f"{last}_{word}", ()))
        if "why" in cues and last:
            clause += 1
        said += [f"#{min(2, clause)} {cue}" for cue in cues]
        last = word
    return clause, said


def _clauses_without_spaces(sentence: str) -> tuple[int, list[str]]:
    clauses = [one for one in _PAUSE.split(sentence) if one.strip()]
    said = [
        f"#{min(2, place)} {cue}"
        for place, clause in enumerate(clauses, 1)
        for cue, parts in _PARTS_OF
        if any(part in clause for part in parts)
    ]
    whole = [f"#0 {cue}" for cue, parts in _PARTS_OF if any(part in sentence for part in parts)]
    return len(clauses), [*said, *whole]

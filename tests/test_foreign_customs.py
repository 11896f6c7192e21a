"""How things are done, told in other languages in the present tense."""

from __future__ import annotations

import pytest

from memory_kb.learning.speech.capture import read_all

TOLD = """
On ne pousse pas directement sur main, la CI ne suit pas.
Chez nous on n'écrit pas les migrations à la main.
Les messages de commit sont en anglais.
Pour les tests, plutôt vitest que jest.
Los commits van en inglés y en imperativo.
Nuestros comentarios se escriben en español, sin emojis.
Não, nada de moment. A gente formata com date-fns.
Os comentários são em português.
Qui la configurazione passa tutta da variabili d'ambiente.
I commenti vanno in inglese, non in italiano.
Auf den Messknoten gibt es nur Python 3.8, kein pip.
このリポジトリではブランチ名は英語で書いています。
検証のために本番のキューへ直接送るのはやめてください。
我们仓库统一用 bun,不用 npm。
""".strip().splitlines()
NOT_TOLD = """
On ne voit pas le bouton.
On n'a pas de tests pour ça.
Pour les marges, plutôt 12 que 16.
Los botones van en azul.
Nada de mais, obrigado!
Qui c'è un errore.
Qui il bottone è tutto a sinistra.
Auf der Seite gibt es nur einen Knopf.
このボタンを押すのはやめてください。
这次用红色,不用蓝色。
Les tests sont rouges depuis ce matin.
I test sono falliti tutti.
""".strip().splitlines()


@pytest.mark.parametrize("text", TOLD)
def test_a_custom_is_kept(text: str) -> None:
    assert read_all(text)


@pytest.mark.parametrize("text", NOT_TOLD)
def test_what_is_about_the_moment_is_not(text: str) -> None:
    assert read_all(text) == ()

"""A request to remember something is heard however it is worded, and what is remembered is what follows it."""

from __future__ import annotations

import pytest

from memory_kb.learning.speech.capture import read_all

ASKED = """
Remember for next time: the proxy needs a restart after each deploy.
Please remember: the proxy needs a restart after each deploy.
Remember this for later: staging uses port 8081.
For the record, staging uses port 8081.
Note to self: staging uses port 8081.
Keep in mind that staging uses port 8081.
Make a note that staging uses port 8081.
Note for the future: staging uses port 8081.
Write this down: staging uses port 8081.
Don't forget that staging uses port 8081.
Save this to memory: staging uses port 8081.
Add to memory: staging uses port 8081.
Please memorize that staging uses port 8081.
Bitte merken: Staging läuft auf Port 8081.
Merk dir für später: Staging läuft auf Port 8081.
Merk dir mal bitte, Staging läuft auf Port 8081.
Notier dir bitte: Staging läuft auf Port 8081.
Schreib dir auf, dass Staging auf Port 8081 läuft.
Denk in Zukunft daran: Staging läuft auf Port 8081.
Für die Zukunft: Staging läuft auf Port 8081.
Retiens bien que le staging tourne sur le port 8081.
Note pour plus tard : le staging tourne sur le port 8081.
À retenir : le staging tourne sur le port 8081.
N'oublie pas que le staging tourne sur le port 8081.
Pour la suite, souviens-toi que le staging tourne sur le port 8081.
Recuerda para luego: staging usa el puerto 8081.
Ten en cuenta que staging usa el puerto 8081.
Apunta esto: staging usa el puerto 8081.
No olvides que staging usa el puerto 8081.
Para el futuro: staging usa el puerto 8081.
Lembre-se para depois: o staging usa a porta 8081.
Anota aí: o staging usa a porta 8081.
Não esqueça que o staging usa a porta 8081.
Ricordati per dopo: lo staging usa la porta 8081.
Tieni a mente che lo staging usa la porta 8081.
Segnati che lo staging usa la porta 8081.
Onthoud voor later: staging draait op poort 8081.
Onthoud dat staging op poort 8081 draait.
Vergeet niet dat staging op poort 8081 draait.
覚えておいてください：ステージングはポート8081です。
メモしておいて：ステージングはポート8081です。
请记住：预发布环境用8081端口。
记一下，预发布环境用8081端口。
""".strip().splitlines()
NOT_ASKED = """
Remember when we had this with the old queue?
I don't remember that the queue was slow.
He wrote it down: the queue is slow.
This goes to memory and not to disk.
Merk dir das nicht, war nur ein Beispiel.
Ich merke mir das schon.
Guarda: il bottone è rosso.
Nota que el botón está en rojo.
Recuerdo que ayer funcionaba.
Je retiens mon souffle.
Ik onthoud het wel.
""".strip().splitlines()


@pytest.mark.parametrize("text", ASKED)
def test_what_follows_a_request_is_kept(text: str) -> None:
    (found,) = read_all(text)
    assert found.pattern == "request"
    assert text.endswith(found.text)
    assert len(found.text) < len(text) - 3


@pytest.mark.parametrize("text", NOT_ASKED)
def test_what_is_no_request_is_not(text: str) -> None:
    assert [one for one in read_all(text) if one.pattern == "request"] == []

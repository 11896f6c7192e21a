"""Stand in for `python -m memory_kb ARGUMENTS`: a process that a fork server runs, with our streams, signals and end.

usage: python -S -E forked.py ADDRESS ARGUMENTS...   It imports little, for it is started often.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys

_STREAMS = [0, 1, 2]
_PASSED_ON = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Have the command run, and end as it ends."""
    # The command may have begun to talk before we know its number: a signal to it waits for that.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        request = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode() + b"\n"
        socket.send_fds(connection, [request[:1]], _STREAMS)
        connection.sendall(request[1:])
        answers = connection.makefile("r")
        pid = int(answers.readline())
        for number in _PASSED_ON:
            signal.signal(number, lambda given, _: _pass_on(pid, given))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        # The other ends shall notice when the command closes its own.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in _STREAMS:
            os.dup2(nothing, stream)
        code = int(answers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _pass_on(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)


if __name__ == "__main__":
    main()

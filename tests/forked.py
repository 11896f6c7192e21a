"""Stand in for `python -m memory_kb ARGUMENTS`: a process that a fork server runs, with our streams, signals and end.

usage: python -S -E forked.py ADDRESS ARGUMENTS...   It imports little, for it is started often.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

_STREAMS = [0, 1, 2]


def main() -> None:
    """Have the command run, and end as it ends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        request = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode() + b"\n"
        socket.send_fds(connection, [request[:1]], _STREAMS)
        connection.sendall(request[1:])
        answers = connection.makefile("r")
        pid = int(answers.readline())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda given, _: os.kill(pid, given))
        # The other ends shall notice when the command closes its own.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in _STREAMS:
            os.dup2(nothing, stream)
        code = int(answers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()

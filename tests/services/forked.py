"""A Python that imports a program once and forks for each call of it: many calls pay for its imports once.

`forked.py SOCKET ARGUMENT...` calls it: the program runs with these arguments, the caller's environment, folder, output
and errors, and the caller ends with its exit code. This file imports only the standard library, so that `python -I -S`
starts it quickly.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable


def serve(place: str, program: Callable[[], int]) -> None:
    """Fork for each call that comes to the socket `place`, until this process is killed."""
    with socket.socket(socket.AF_UNIX) as calls:
        calls.bind(place)
        calls.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the caller learns how its child ended
        while True:
            call, _ = calls.accept()
            if os.fork() == 0:
                calls.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _run(call, program)
            call.close()


def _run(call: socket.socket, program: Callable[[], int]) -> None:
    """Run the program as its caller wants, tell the exit code, and end this process."""
    code = 1
    try:
        _, outputs, _, _ = socket.recv_fds(call, 1, 2)
        with call.makefile("rb") as message:
            sys.argv[1:], environ, folder = json.load(message)
        for output, number in zip(outputs, (1, 2), strict=True):
            os.dup2(output, number)
        os.environ.clear()
        os.environ.update(environ)
        os.chdir(folder)
        code = program()
    except BaseException:  # noqa: BLE001  # whatever it is, the caller's output has it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        call.send(bytes([code]))
        os._exit(code)


def main() -> int:
    """Call the program; 1 where it was killed."""
    place, *arguments = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as call:
        call.connect(place)
        socket.send_fds(call, [b"\0"], [1, 2])
        call.sendall(json.dumps([arguments, dict(os.environ), os.path.abspath(os.curdir)]).encode())  # noqa: PTH100  # pathlib takes long
        call.shutdown(socket.SHUT_WR)
        return (call.recv(1) or b"\1")[0]


if __name__ == "__main__":
    sys.exit(main())

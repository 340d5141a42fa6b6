"""The socket: on this machine alone."""

import errno
import socket

from clew.ports.fault import Fault

_LOOPBACK = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}


class NotLoopback(Fault):
    code = "server:not-loopback"


class PortTaken(Fault):
    code = "server:port-taken"


class CannotListen(Fault):
    code = "server:cannot-listen"


def bind(host: str, port: int) -> socket.socket:
    """Whoever connects from now on waits until everything is ready."""
    family = _LOOPBACK.get(host.strip("[]"))
    if family is None:
        raise NotLoopback(
            f"Clew listens on this machine alone, and {host} is not it: whoever reaches it can run programs.",
            "Leave --host out; from another machine, forward the port over SSH.",
        )
    if not 0 <= port <= 65535:
        raise CannotListen(f"{port} is no port.", "Choose one from 1 to 65535, or 0 for any that is free.")
    where = "::1" if family is socket.AF_INET6 else "127.0.0.1"
    try:
        # By its full name: asyncio lets small answers out at once only where it sees that it is TCP.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as fault:
        raise CannotListen(f"{where} cannot be listened on: {fault.strerror}.", "Leave --host out.") from fault
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((where, port))
        # Two may be bound to one port until the first of them listens.
        bound.listen(128)
    except OSError as fault:
        bound.close()
        if fault.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"Port {port} of {where} is used by another program.",
                "Stop that one, or choose another port with --port; 0 takes any that is free.",
            ) from fault
        raise CannotListen(
            f"Port {port} of {where} cannot be listened on: {fault.strerror}.",
            "Choose another with --port; 0 takes any that is free.",
        ) from fault
    return bound

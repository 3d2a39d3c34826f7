"""`listen`: the address of a server, taken before a model is loaded for it."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address

from ..errors import ResourceError


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket bound there; `port` 0 takes a free one. Raises `ResourceError`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # A name for both, as localhost often is: programs that know one of the two try IPv4 first.
        family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _refused(host, port, error) from None
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _refused(host, port, error) from None
    return bound


def is_local(host: str) -> bool:
    """Whether an address is reached from this computer alone."""
    return ip_address(host.partition("%")[0]).is_loopback


def _refused(host: str, port: int, error: OSError) -> ResourceError:
    return ResourceError(f"cannot listen at {host} port {port}: {error.strerror or error}; take another host or port")

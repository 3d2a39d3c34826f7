"""HTTP by hand: what no client library would send."""

from __future__ import annotations

import json
import socket


class Raw:
    """A connection to a server."""

    def __init__(self, server, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(10)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((server.host, server.port))

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, body: bytes, path="/v1/completions", *more: str) -> None:
        head = [f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/json", *more]
        if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in more):
            head.append(f"content-length: {len(body)}")
        self.send("\r\n".join([*head, "", ""]).encode() + body)

    def until(self, mark: bytes) -> bytes:
        """What comes, until `mark` has or the end."""
        got = b""
        while mark not in got:
            piece = self.socket.recv(65536)
            if not piece:
                break
            got += piece
        return got

    def rest(self) -> bytes:
        """What comes until the server closes; a connection cut off ends it too."""
        got = b""
        try:
            while piece := self.socket.recv(65536):
                got += piece
        except ConnectionError:
            pass
        return got


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def error_of(answer: bytes) -> dict:
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]

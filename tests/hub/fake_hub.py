"""The few answers of a Hugging Face endpoint that fetching a model needs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REVISION = "0123456789abcdef0123456789abcdef01234567"


class _Handler(BaseHTTPRequestHandler):
    repositories: Mapping[str, Mapping[str, bytes]]
    sizes: Mapping[str, int]
    asked: list[str]

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(f"{self.command} {path}")
        for repo, files in self.repositories.items():
            if path in (f"/api/models/{repo}", f"/api/models/{repo}/revision/{REVISION}"):
                return self._send(json.dumps(self._listing(repo, files)).encode(), {}, body)
            name = path.removeprefix(f"/{repo}/resolve/{REVISION}/")
            if name in files:
                digest = hashlib.sha256(files[name]).hexdigest()
                return self._send(files[name], {"ETag": f'"{digest}"', "X-Repo-Commit": REVISION}, body)
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound" if path.startswith("/api/models/") else "EntryNotFound")
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def _listing(self, repo: str, files: Mapping[str, bytes]) -> dict[str, object]:
        siblings = []
        for name, data in files.items():
            size = self.sizes.get(name, len(data))
            lfs = {"sha256": hashlib.sha256(data).hexdigest(), "size": size, "pointerSize": 130}
            siblings.append({"rfilename": name, "size": size, "blobId": "0" * 40, "lfs": lfs})
        return {"id": repo, "modelId": repo, "sha": REVISION, "private": False, "tags": [], "siblings": siblings}

    def _send(self, data: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(200)
        for name, value in {"Content-Length": str(len(data)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)


@contextmanager
def fake_hub(
    repositories: Mapping[str, Mapping[str, bytes]], sizes: Mapping[str, int] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """An endpoint's address and the list of what it is asked; `sizes` are lies about the sizes of files."""
    asked: list[str] = []
    handler = type("Handler", (_Handler,), {"repositories": repositories, "sizes": sizes or {}, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

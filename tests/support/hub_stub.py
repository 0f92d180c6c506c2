"""A stub of the Hub on loopback: real HTTP, and as much of its API as `huggingface_hub` and `datasets` use to publish
and load a dataset.

Memory holds whole commits. Parquet files are large files (LFS, with sha256), as on the Hub; other files are in the
commit. The log has every request and whether it had a token. `failing` makes requests fail on purpose.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_stubSecretThatMustNeverBePrinted"
Files = dict[str, bytes]


@dataclass
class Repo:
    """One dataset repository: commits oldest first, and what `main` and the tags point to."""

    commits: dict[str, Files] = field(default_factory=dict[str, Files])
    main: str = ""
    tags: dict[str, str] = field(default_factory=dict[str, str])

    def commit(self, files: Files) -> str:
        """Adds a commit to main; its id is a hash of its parent and content."""
        listing = "".join(f"{name}{hashlib.sha1(data).hexdigest()}" for name, data in sorted(files.items()))
        self.main = hashlib.sha1(f"{self.main}{listing}".encode()).hexdigest()
        self.commits[self.main] = files
        return self.main

    def sha(self, revision: str) -> str | None:
        name = unquote(revision)
        return self.main if name == "main" else self.tags.get(name) or (name if name in self.commits else None)


class Hub(ThreadingHTTPServer):
    """The server and its repositories."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repos: dict[str, Repo] = {}
        self.large: Files = {}
        self.log: list[tuple[str, str, bool]] = []  # method, path, with a token
        self.failing: dict[str, tuple[int, str]] = {}  # regular expression over "METHOD path" -> status, message

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def create(self, name: str) -> Repo:
        """A new repository with the file that the Hub adds to each."""
        repo = self.repos[name] = Repo()
        repo.commit({".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"})
        return repo

    def writes(self) -> list[str]:
        """Every request so far that changed something or tried to."""
        return [
            f"{method} {path}"
            for method, path, _ in self.log
            if method in ("POST", "PUT", "DELETE") and not path.endswith(("/preupload/main", "paths-info"))
        ]


@contextmanager
def start() -> Iterator[Hub]:
    """A running stub on a free port."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _entry(name: str, data: bytes) -> dict[str, Any]:
    large = (
        {"lfs": {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}}
        if name.endswith(".parquet")
        else {}
    )
    return {"type": "file", "path": name, "oid": _blob(data), "size": len(data), **large}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: tests read `Hub.log`."""

    def _send(
        self, status: int, value: Any = None, headers: dict[str, str] | None = None, raw: bytes | None = None
    ) -> None:
        body = raw if raw is not None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self, code: str, **headers: str) -> None:
        self._send(404, {"error": code}, {"X-Error-Code": code, "X-Error-Message": code, **headers})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self) -> None:
        body, url = self._body(), urlsplit(self.path)
        self.server.log.append((self.command, url.path, "Authorization" in self.headers))
        for pattern, (status, message) in self.server.failing.items():
            if re.search(pattern, f"{self.command} {url.path}"):
                return self._send(status, {"error": message}, {"X-Error-Message": message})
        writes = (
            self.command in ("POST", "PUT", "DELETE")
            and not url.path.startswith("/_large/")
            and "paths-info" not in url.path
        )
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send(401, {"error": "Invalid username or password."})
        if url.path == "/api/repos/create":
            return self._create(json.loads(body))
        if url.path == "/api/validate-yaml":
            return self._send(200, {"errors": [], "warnings": []})
        if url.path.startswith("/_large/"):
            self.server.large[url.path.rsplit("/", 1)[1]] = body
            return self._send(200, raw=b"")
        if match := re.fullmatch(r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch", url.path):
            return self._batch(json.loads(body))
        if match := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(.*))?", url.path):
            repo = self.server.repos.get(match[1])
            return (
                self._api(repo, match[1], match[2] or "revision/main", body, url.query)
                if repo
                else self._missing("RepoNotFound")
            )
        if match := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", url.path):
            repo = self.server.repos.get(match[1])
            return self._resolve(repo, match[2], unquote(match[3])) if repo else self._missing("RepoNotFound")
        return self._missing("Unrouted")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        url = f"{self.server.url}/datasets/{name}"
        if name in self.server.repos:
            return self._send(409, {"error": "You already created this dataset repo", "url": url})
        self.server.create(name)
        return self._send(200, {"url": url, "name": name, "id": name})

    def _batch(self, wanted: dict[str, Any]) -> None:
        """Where to upload large files; those already stored need no upload."""

        def place(o: dict[str, Any]) -> dict[str, Any]:
            upload = {"actions": {"upload": {"href": f"{self.server.url}/_large/{o['oid']}"}}}
            return {"oid": o["oid"], "size": o["size"]} | ({} if o["oid"] in self.server.large else upload)

        self._send(200, {"transfer": "basic", "objects": [place(o) for o in wanted["objects"]]})

    def _api(self, repo: Repo, name: str, rest: str, body: bytes, query: str) -> None:
        verb, _, argument = rest.partition("/")
        if verb == "refs":
            tags = [{"name": t, "ref": f"refs/tags/{t}", "targetCommit": sha} for t, sha in repo.tags.items()]
            branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": repo.main}]
            return self._send(200, {"branches": branches, "converts": [], "tags": tags})
        sha = repo.sha(argument.split("/")[0])
        if sha is None:
            return self._missing("RevisionNotFound")
        files = repo.commits[sha]
        if verb == "preupload":
            wanted = [f["path"] for f in json.loads(body)["files"]]
            modes = [(path, "lfs" if path.endswith(".parquet") else "regular") for path in wanted]
            known = {path: _blob(files[path]) if path in files else None for path in wanted}
            return self._send(
                200, {"files": [{"path": p, "uploadMode": m, "shouldIgnore": False, "oid": known[p]} for p, m in modes]}
            )
        if verb == "commit":
            return self._commit(repo, name, files, [json.loads(line) for line in body.splitlines()])
        if verb == "tag" and self.command == "POST":
            tag = json.loads(body)["tag"]
            if tag in repo.tags:
                return self._send(409, {"error": "Tag reference exists already"})
            repo.tags[tag] = sha
            return self._send(200, {})
        if verb == "revision":
            siblings = [{"rfilename": path} for path in sorted(files)]
            info = {"_id": "0", "id": name, "sha": sha, "private": False, "gated": False, "disabled": False}
            info |= {"downloads": 0, "likes": 0, "tags": [], "siblings": siblings}
            return self._send(200, info | dict.fromkeys(("lastModified", "createdAt"), "2026-01-01T00:00:00.000Z"))
        if verb == "tree":
            recursive = parse_qs(query).get("recursive", [""])[0].lower() in ("true", "1")
            return self._tree(files, unquote(argument.partition("/")[2]), recursive)
        if verb == "paths-info":
            paths = json.loads(body)["paths"] if body[:1] == b"{" else parse_qs(body.decode())["paths"]
            return self._send(200, [_entry(path, files[path]) for path in paths if path in files])
        return self._missing("Unrouted")

    def _commit(self, repo: Repo, name: str, before: Files, lines: list[dict[str, Any]]) -> None:
        files = dict(before)
        for line in lines:
            value = line["value"]
            if line["key"] == "header" and value.get("parentCommit") not in (None, repo.main):
                return self._send(412, {"error": "A commit has happened since. Please refresh and try again."})
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        sha = repo.commit(files)
        url = f"{self.server.url}/datasets/{name}/commit/{sha}"
        return self._send(200, {"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})

    def _tree(self, files: Files, folder: str, recursive: bool) -> None:
        inside = {path: data for path, data in sorted(files.items()) if path.startswith(f"{folder}/" if folder else "")}
        if folder and not inside:
            return self._missing("EntryNotFound")
        depth = len(folder.split("/")) if folder else 0
        parts = [path.split("/") for path in inside]
        folders = {"/".join(p[:n]) for p in parts for n in range(depth + 1, len(p)) if recursive or n == depth + 1}
        listed = [_entry(path, data) for path, data in inside.items() if recursive or len(path.split("/")) == depth + 1]
        hashed = {f: hashlib.sha1(f.encode()).hexdigest() for f in sorted(folders)}
        found = [{"type": "directory", "path": f, "oid": oid, "size": 0} for f, oid in hashed.items()]
        return self._send(200, found + listed)

    def _resolve(self, repo: Repo, revision: str, path: str) -> None:
        sha = repo.sha(revision)
        if sha is None:
            return self._missing("RevisionNotFound")
        data = repo.commits[sha].get(path)
        if data is None:
            return self._missing("EntryNotFound", **{"X-Repo-Commit": sha})
        tag = hashlib.sha256(data).hexdigest() if path.endswith(".parquet") else _blob(data)
        headers = {"ETag": f'"{tag}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        headers["Content-Type"] = "application/octet-stream"
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            low, high = int(wanted[1]), int(wanted[2] or len(data) - 1)
            part = data[low : high + 1]
            headers["Content-Range"] = f"bytes {low}-{low + len(part) - 1}/{len(data)}"
            return self._send(206, headers=headers, raw=part)
        return self._send(200, headers=headers, raw=data)

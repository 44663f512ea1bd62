"""
The page of a growing store, served on this machine alone, with events sent as they are found.

Routes, all beneath a secret path, so that no other user of the machine and no page of the web can read them:

- ``/``: the page.
- ``/events?feed=F&after=N``: server-sent events of all runs; ``id`` is the position in the feed. A page whose
  feed is another, or that was away for too long, is sent ``reset`` and loads itself anew.
- ``/events?run=RUN&after=N``: server-sent events of one run; ``id`` is the seq, ``data`` the canonical event.
  After ``run.finished`` comes ``end``.

``Last-Event-ID`` takes the place of ``after`` where a client sends it, as browsers do when they come back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from attrs import frozen

from ethogram.canonical import serialise_event
from ethogram.clock import Clock
from ethogram.errors import EthogramError
from ethogram.page.build import build_page
from ethogram.page.content import content
from ethogram.page.feed import Feed
from ethogram.places import RunStore
from ethogram.vocabulary import RUN_FINISHED

LOOPBACK = "127.0.0.1"
"""The only address that is listened on."""

_HEARTBEAT_SECONDS = 15.0


@frozen
class LivePage:
    """
    What is served.

    Args:
        feed: The events of all runs as they come.

        open_store: Opens the runs for reading: each reader of one run has a store of its own.

        title: The page's title.

        secret: The first part of each path, and the feed's name: unguessable, other for each process.

        clock: Gives the time at which a page is made.
    """

    feed: Feed
    open_store: Callable[[], RunStore]
    title: str
    secret: str
    clock: Clock

    def page(self) -> bytes:
        """
        Make the page.

        Returns:
            The page with everything found so far, UTF-8.
        """
        runs, position = self.feed.page_runs()
        address = f"events?feed={self.secret}&after={position}"
        shown = content(runs, made=self.clock(), live={"events": address})
        return build_page(shown, title=self.title, live=True)


class LiveServer(ThreadingHTTPServer):
    """
    Serves a `LivePage` on loopback. ``serve_forever`` runs it and ``shutdown`` stops it.

    Args:
        live: What is served.

        port: The port; 0 for any that is free.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, live: LivePage, port: int) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.live = live

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.live.secret}/"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say nothing of clients that went away; anything else is a fault of ours, and is told in one line."""
        fault = sys.exception()
        if not isinstance(fault, ConnectionError):
            sys.stderr.write(f"a request failed: {type(fault).__name__}\n")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    @property
    def _live(self) -> LivePage:
        return cast(LiveServer, self.server).live

    def do_GET(self) -> None:
        if not _names_loopback(self.headers.get("Host", "")):
            # A page of the web could have its own name lead here.
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        address = urlsplit(self.path)
        route = address.path.removeprefix(f"/{self._live.secret}/")
        query = {name: values[-1] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        if route == "":
            self._send_page()
        elif route == "events" and "run" in query:
            self._send_run(query["run"], self._after(query))
        elif route == "events":
            self._send_feed(query.get("feed", ""), self._after(query))
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Say nothing: requests are no news, and a path holds the secret."""

    def _after(self, query: dict[str, str]) -> int:
        text = self.headers.get("Last-Event-ID", query.get("after", "0"))
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 16 else 0

    def _send_page(self) -> None:
        page = self._live.page()
        self.send_response(HTTPStatus.OK)
        self._send_headers("text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.end_headers()
        self.wfile.write(page)

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self._send_headers("text/plain; charset=utf-8")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send_headers(self, content_type: str) -> None:
        self.send_header("Content-Type", content_type)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")

    def _start_stream(self) -> None:
        self.send_response(HTTPStatus.OK)
        self._send_headers("text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        # Browsers say that a stream is open when its first bytes come.
        self._send(b"retry: 1000\n\n")

    def _send(self, text: bytes) -> None:
        self.wfile.write(text)
        self.wfile.flush()

    def _send_feed(self, feed_name: str, after: int) -> None:
        feed = self._live.feed
        self._start_stream()
        while not feed.closed:
            known = feed_name == self._live.secret
            messages = feed.after(after, _HEARTBEAT_SECONDS) if known else None
            if messages is None:
                self._send(b"event: reset\ndata:\n\n")
                return
            for message in messages:
                self._send(b"id: %d\nevent: event\ndata: %s\n\n" % (message.position, message.data))
                after = message.position
            if not messages:
                self._send(b":\n\n")

    def _send_run(self, run_id: str, after: int) -> None:
        feed = self._live.feed
        self._start_stream()
        try:
            with self._live.open_store() as store:
                while not feed.closed:
                    position = feed.position
                    for event in store.read_from(run_id, after):
                        self._send(b"id: %d\ndata: %s\n\n" % (event.seq, serialise_event(event)))
                        after = event.seq
                        if event.type == RUN_FINISHED:
                            self._send(b"event: end\ndata:\n\n")
                            return
                    # Any run's news wake this one: a poll of one run more costs next to nothing.
                    if feed.after(position, _HEARTBEAT_SECONDS) == []:
                        self._send(b":\n\n")
        except EthogramError:
            self._send(b"event: fault\ndata: the run could not be read\n\n")


def _names_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if ":" in host else host
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False

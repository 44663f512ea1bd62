"""
A headless Chromium, driven over its own pipe: real keys, real pictures, every request and every complaint.

The browser reads commands of the DevTools protocol from descriptor 3 and answers on descriptor 4, each message
ended by a NUL. That needs no port, no driver and no package.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
_LOADS = ("http:", "https:", "ws:", "wss:", "ftp:")
_SECONDS = 60.0

Message = dict[str, Any]


class Browser:
    """
    One browser with one page.

    Args:
        profile: A directory of its own, that need not be there yet.
    """

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()

        def descriptors() -> None:
            # High copies first: 3 and 4 may be among the originals.
            high_in, high_out = os.dup(from_us), os.dup(to_us)
            high_in, high_out = max(high_in, os.dup(high_in)), max(high_out, os.dup(high_out))
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=descriptors,  # noqa: PLW1509 - no thread of a test holds a lock here
        )
        os.close(from_us)
        os.close(to_us)
        self._to_browser = to_browser
        self._from_browser = from_browser
        self._rest = b""
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        with suppress(OSError, EOFError):
            self._call("Browser.close")
        os.close(self._to_browser)
        os.close(self._from_browser)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(
        self, address: str, *, width: int = 1280, height: int = 800, dark: bool = False, ready: bool = True
    ) -> None:
        """Load a page, and wait until it says that it is ready where it does."""
        self.resize(width, height)
        self.colours(dark=dark)
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url=address)
        if ready:
            self.wait_for("document.documentElement?.dataset.ready === 'true'")

    def resize(self, width: int, height: int) -> None:
        """Give the page another size, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def colours(self, *, dark: bool = False, media: str = "screen") -> None:
        """Say what the system prefers, and whether the page is being printed."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def run(self, expression: str) -> Any:
        """Give the value of a JavaScript expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript expression holds."""
        until = time.monotonic() + _SECONDS
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < until, f"{condition} never held; {self.complaints}"
            time.sleep(0.03)

    def press(self, key: str, text: str = "") -> None:
        """Press a key as a person does."""
        code = _KEYS.get(key, ord(key[0].upper()))
        typed = text or (key if len(key) == 1 else "\r" if key == "Enter" else "")
        for kind in ("keyDown", "keyUp"):
            event: Message = {"type": kind, "key": key, "windowsVirtualKeyCode": code}
            if typed and kind == "keyDown":
                event["text"] = typed
            self.call("Input.dispatchKeyEvent", **event)

    def type(self, text: str) -> None:
        """Write into what has the focus."""
        self.call("Input.insertText", text=text)

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        """Move, press or turn the mouse."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path: Path) -> None:
        """Save what is shown."""
        answer = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """Print the page."""
        self.colours(media="")
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def spoken(self) -> list[tuple[str, str]]:
        """What a screen reader is given: roles and names."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored")
        ]

    def call(self, method: str, **parameters: object) -> Message:
        """Send a command to the page and give its result."""
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str = "", /, **parameters: object) -> Message:
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: Message = answer["result"]
                return result
            self._note(answer)
        raise EOFError(method)

    def _messages(self) -> Iterator[Message]:
        while True:
            while (end := self._rest.find(b"\0")) >= 0:
                message, self._rest = self._rest[:end], self._rest[end + 1 :]
                yield json.loads(message)
            piece = os.read(self._from_browser, 1 << 20)
            if not piece:
                return
            self._rest += piece

    def _note(self, message: Message) -> None:
        parameters = message.get("params", {})
        notes: dict[str, Callable[[], None]] = {
            "Runtime.exceptionThrown": lambda: self.complaints.append(json.dumps(parameters)),
            "Log.entryAdded": lambda: self.complaints.append(parameters["entry"]["text"]),
            "Runtime.consoleAPICalled": lambda: self.complaints.append(json.dumps(parameters["args"])),
            "Page.javascriptDialogOpening": lambda: self.complaints.append("a dialog opened"),
            "Network.requestWillBeSent": lambda: self._note_request(parameters["request"]["url"]),
        }
        notes.get(message.get("method", ""), lambda: None)()

    def _note_request(self, address: str) -> None:
        if address.startswith(_LOADS):
            self.requests.append(address)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser and end it."""
    found = Browser(profile)
    try:
        yield found
    finally:
        found.close()

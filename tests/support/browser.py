"""A headless Chromium, driven through its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
START_SECONDS = 120.0


class Page:
    """One page: what it logged, what it asked for, and a hand to touch it with."""

    def __init__(self, width: int = 1200, height: int = 900, dark: bool = False):
        self.size, self.dark = (width, height), dark

    def __enter__(self) -> Page:
        with contextlib.ExitStack() as stack:  # whatever fails here, the browser goes away
            self.profile = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            command = [CHROMIUM, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
            nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            self.process = subprocess.Popen(command, **nowhere, start_new_session=True)
            stack.callback(self._kill)
            self.socket = stack.enter_context(connect(self._address(), max_size=None))
            self.count, self.events = 0, []
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
            width, height = self.size
            screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            self.ask("Emulation.setDeviceMetricsOverride", **screen)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
            self.ask("Emulation.setEmulatedMedia", features=[scheme])
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stack.close()

    def _kill(self) -> None:
        """The browser and every process it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _address(self) -> str:
        port_file, deadline = self.profile / "DevToolsActivePort", time.monotonic() + START_SECONDS
        while not port_file.is_file() or not port_file.read_text().strip():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("Chromium did not start")
            time.sleep(0.05)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            pages = [tab for tab in json.load(answer) if tab["type"] == "page"]
        return pages[0]["webSocketDebuggerUrl"]

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command and its answer; events that come in between are kept."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=120))
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, path: Path) -> None:
        """Open a file and wait until it has loaded."""
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while self.run("document.readyState") != "complete" or self.run("location.href") == "about:blank":
            time.sleep(0.05)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def hover(self, selector: str) -> None:
        """Move the mouse to the middle of an element."""
        where = self.run(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)}); "
            "node.scrollIntoView({block: 'center', behavior: 'instant'}); const box = node.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=where[0], y=where[1])

    def picture(self, path: Path, whole: bool = True) -> None:
        """A screenshot."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings that the page logged, exceptions included."""
        found = []
        for event in self.events:
            detail = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(detail["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and detail["entry"]["level"] in ("error", "warning"):
                found.append(detail["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and detail["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(json.dumps(detail["args"]))
        return found

    def requests(self) -> list[str]:
        """Everything the page asked for, apart from itself and what it carries inside."""
        urls = [
            e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("file:", "data:", "about:"))]

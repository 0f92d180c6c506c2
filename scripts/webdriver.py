"""Headless Chromium, driven over WebDriver by the standard library: for tests of pages, and to walk through them.

There may be none: then `CHROMIUM` or `DRIVER` is None. The accessibility check also needs axe-core, which isn't kept
here: npm install --prefix DIR axe-core; HELMBENCH_AXE=DIR/node_modules/axe-core/axe.min.js pytest -k browser
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
AXE = os.environ.get("HELMBENCH_AXE", "")
RUN_AXE = (
    "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(r => "
    "done(r.violations.map(v => [v.impact, v.id, v.nodes[0].html])))"
)
VIEWS = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (390, "light"), "dark phone": (390, "dark")}
# Nothing listens on port 9 of this machine: whatever the page might fetch fails, and is seen to.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
]


class Browser(NamedTuple):
    """One WebDriver session. `driver`: the process that all of the browser's descend from."""

    url: str
    driver: int

    def call(self, path: str, body: dict[str, Any] | None = None, method: str = "POST") -> Any:
        """What the driver answers.

        Raises:
            RuntimeError: the driver or a script in the page failed; with its message.
        """
        request = Request(
            self.url + path,
            json.dumps(body or {}).encode() if method == "POST" else None,
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:  # its body says what went wrong in the page
            raise RuntimeError(f"WebDriver {path}: {json.load(error)['value']['message']}") from error

    def script(self, source: str) -> Any:
        return self.call("/execute/sync", {"script": source, "args": []})

    def later(self, source: str) -> Any:
        """What the script hands to its last argument."""
        return self.call("/execute/async", {"script": source, "args": []})

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def show(self, path: Path, view: str = "light") -> None:
        width, scheme = VIEWS[view]
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.devtools(
            "Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self.call("/url", {"url": path.as_uri()})

    def choose(self, selector: str, path: Path) -> None:
        element = self.call("/element", {"using": "css selector", "value": selector})
        self.call(f"/element/{next(iter(element.values()))}/value", {"text": str(path)})

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.call("/se/log", {"type": "browser"})]

    def requested(self) -> set[str]:
        """Every address that was asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.call("/se/log", {"type": "performance"})]
        return {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}

    def element(self, selector: str) -> str:
        """The address of the one element that is meant."""
        found = self.call("/element", {"using": "css selector", "value": selector})
        return f"/element/{next(iter(found.values()))}"

    def click(self, selector: str) -> None:
        """A real click, which only what is on the page and not covered gets; scrolled to first, as a person does."""
        self.script(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        self.call(f"{self.element(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        """Clicks a field and types."""
        self.click(selector)
        self.call(f"{self.element(selector)}/value", {"text": text})

    def press(self, key: str) -> None:
        """One real key stroke, to whatever has the focus."""
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self.call("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def downloads(self, folder: Path) -> None:
        """From now on what is downloaded is saved there."""
        folder.mkdir(parents=True, exist_ok=True)
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))


@contextmanager
def driven(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, for as long as the block runs.

    Raises:
        FileNotFoundError: there is no Chromium with its chromedriver on this machine.
    """
    if not (CHROMIUM and DRIVER):
        raise FileNotFoundError("no Chromium with chromedriver on this machine (Debian: chromium, chromium-driver)")
    with subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        try:
            assert driver.stdout
            port = next(
                line.split("port ")[-1].strip(" .\n") for line in driver.stdout if "started successfully" in line
            )
            root = Browser(f"http://127.0.0.1:{port}", driver.pid)
            options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}"]}
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            session = root.call("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            one = Browser(f"{root.url}/session/{session}", driver.pid)
            yield one
            one.call("", method="DELETE")
        finally:
            driver.terminate()


def until(ready: Callable[[], bool]) -> None:
    """Waits for the page; a file is read in its own time."""
    deadline = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < deadline, "the page didn't answer in 20 seconds"
        time.sleep(0.05)

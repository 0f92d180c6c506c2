"""Headless Chromium, driven by selenium, for the tests of HTML pages.

The accessibility checks also need axe-core:
npm install --prefix DIR axe-core; HELMBENCH_AXE=DIR/node_modules/axe-core/axe.min.js pytest -k browser
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
VIEWS = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (390, "light"), "dark phone": (390, "dark")}
# Nothing listens on port 9, so every request that a page makes fails and is logged.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
)


class Browser(NamedTuple):
    """A Chromium session, with shortcuts for what the tests do most."""

    driver: webdriver.Chrome

    def script(self, source: str) -> Any:
        return self.driver.execute_script(source)

    def later(self, source: str) -> Any:
        """Runs a script and returns what it passes to its last argument, a callback."""
        return self.driver.execute_async_script(source)

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def show(self, path: Path, view: str = "light") -> None:
        width, scheme = VIEWS[view]
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.devtools(
            "Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        # On a busy machine `get` can return while the earlier page is still there.
        self.script("window.testedBefore = true")
        self.driver.get(path.as_uri())
        until(lambda: bool(self.script("return !window.testedBefore && document.readyState === 'complete'")))

    def show_anew(self, path: Path, view: str = "light") -> None:
        """Shows a page as a browser does that has kept nothing; what it keeps is cleared some time after it is told."""

        def empty() -> bool:
            self.show(path, view)
            return bool(self.script("const empty = !localStorage.length; localStorage.clear(); return empty"))

        until(empty)

    def choose(self, selector: str, path: Path) -> None:
        """Chooses a file in a file field."""
        self.driver.find_element(By.CSS_SELECTOR, selector).send_keys(str(path))

    def press(self, *keys: str) -> None:
        """Types `keys` into the focused element."""
        webdriver.ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def downloads(self, folder: Path) -> None:
        """Saves downloads in `folder` from now on."""
        folder.mkdir(parents=True, exist_ok=True)
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def console(self) -> list[str]:
        """Console messages since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def requested(self) -> set[str]:
        """Addresses requested since the last call, without those of the browser's start page."""
        log = self.driver.get_log("performance")  # type: ignore[no-untyped-call]
        events = [json.loads(entry["message"])["message"] for entry in log]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return {p["request"]["url"] for p in sent if not p["documentURL"].startswith("chrome")}

    def overflow(self) -> int:
        """By how many pixels the page scrolls sideways."""
        return int(self.script("const e = document.documentElement; return e.scrollWidth - e.clientWidth"))

    def violations(self) -> list[list[str]]:
        """What axe-core finds, as [impact, rule, first element]; skips the test if there is no axe-core."""
        if not (axe := os.environ.get("HELMBENCH_AXE")):
            pytest.skip("HELMBENCH_AXE does not name an axe.min.js")
        self.script(Path(axe).read_text(encoding="utf-8"))
        return list(
            self.later(
                "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(r => "
                "done(r.violations.map(v => [v.impact, v.id, v.nodes[0].html])))"
            )
        )


@contextmanager
def driven(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile in the folder `profile`, for the duration of the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(DRIVER)) as driver:
        driver.set_script_timeout(110)  # axe-core on the whole book takes half a minute on a busy machine
        yield Browser(driver)


def until(ready: Callable[[], bool]) -> None:
    """Waits until `ready()`; fails after 20 seconds."""
    deadline = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < deadline, "the page did not answer in 20 seconds"
        time.sleep(0.05)

"""Debian's chromium through its driver, by the WebDriver protocol: a few commands, no library."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for a reference
KEYS = {"enter": "\ue007", "escape": "\ue00c"}


class Browser:
    """A window without a screen."""

    def __init__(self, address: str, width: int, height: int, dark: bool) -> None:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        flags += [f"--window-size={width},{height}", "--force-dark-mode"][: 2 if dark else 1]
        options = {
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        self._address = address
        created = self._send("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self._address = f"{address}/session/{created['sessionId']}"
        self._send(
            "POST",
            "/goog/cdp/execute",
            {
                "cmd": "Emulation.setDeviceMetricsOverride",
                "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
            },
        )
        self._send(
            "POST",
            "/goog/cdp/execute",
            {
                "cmd": "Emulation.setEmulatedMedia",
                "params": {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
            },
        )

    def open(self, url: str) -> None:
        self._send("POST", "/url", {"url": url})

    @property
    def url(self) -> str:
        return self._send("GET", "/url")

    def back(self) -> None:
        self._send("POST", "/back", {})

    def run(self, script: str):
        """The value of an expression on the page."""
        return self._send("POST", "/execute/sync", {"script": f"return {script}", "args": []})

    def type(self, selector: str, text: str) -> None:
        self._on(selector, "value", {"text": text})

    def clear(self, selector: str) -> None:
        self._on(selector, "clear", {})

    def click(self, selector: str) -> None:
        self._on(selector, "click", {})

    def press(self, key: str) -> None:
        """On whatever has the focus."""
        pressed = KEYS.get(key, key)
        keys = [{"type": "keyDown", "value": pressed}, {"type": "keyUp", "value": pressed}]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def text(self, selector: str) -> str:
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def texts(self, selector: str) -> list[str]:
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

    def wait(self, condition: str, seconds: float = 20) -> None:
        """Until an expression on the page is true."""
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < deadline, f"{condition} did not become true: {self.text('body')[:500]}"
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def problems(self) -> list[str]:
        """What the browser complained of: scripts, policies, files that are not there."""
        return [
            one["message"] for one in self._send("POST", "/se/log", {"type": "browser"}) if one["level"] == "SEVERE"
        ]

    def quit(self) -> None:
        self._send("DELETE", "")

    def _on(self, selector: str, command: str, content: dict) -> None:
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        self._send("POST", f"/element/{found[ELEMENT]}/{command}", content)

    def _send(self, method: str, path: str, content: dict | None = None):
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            self._address + path, body, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from error


@contextmanager
def browser(width: int = 1200, height: int = 900, dark: bool = False) -> Iterator[Browser]:
    """Fails, and does not skip, where there is no chromium: `make test-browser` installs it."""
    assert shutil.which("chromium") and shutil.which("chromedriver"), "chromium and chromium-driver are not installed"
    with tempfile.TemporaryFile("w+") as log:
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=log, stderr=subprocess.STDOUT)
        try:
            window = Browser(f"http://127.0.0.1:{_port(log)}", width, height, dark)
            try:
                yield window
            finally:
                window.quit()
        finally:
            driver.terminate()
            driver.wait()


def _port(log) -> int:
    for _ in range(600):
        log.seek(0)
        if found := re.search(r"started successfully on port (\d+)", log.read()):
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError("chromedriver does not start")

"""Chromium, driven by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

WAIT_S = 90.0
_KEYS = {
    "Enter": (13, "\r"),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "Tab": (9, ""),
}


class Browser:
    """A page of a headless Chromium.

    Args:
        folder: of its profile and its downloads.
        width, height: of the page, in CSS pixels.
    """

    def __init__(self, folder: Path, *, width: int = 1280, height: int = 900) -> None:
        import websocket

        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        assert chromium, "there is no chromium on $PATH"
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True)
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        words += ["--disable-features=IsolateSandboxedIframes"]  # to look into them
        words += ["--no-first-run", "--hide-scrollbars", f"--user-data-dir={folder / 'user'}"]
        self._process = subprocess.Popen(
            [chromium, *words, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port = _when(lambda: (folder / "user/DevToolsActivePort").read_text().split()[0])
        pages = _when(lambda: _json_at(f"http://127.0.0.1:{port}/json/list"))
        address = next(it["webSocketDebuggerUrl"] for it in pages if it["type"] == "page")
        self._socket = websocket.create_connection(address, timeout=WAIT_S, suppress_origin=True)
        self._n_sent = 0
        self.requested: list[str] = []
        self.failures: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        self.resize(width, height)

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def dark(self, is_dark: bool = True) -> None:
        value = "dark" if is_dark else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def send(self, method: str, **params: object) -> dict:
        """The result of a command of the protocol; what comes meanwhile is noted."""
        self._n_sent += 1
        self._socket.send(json.dumps({"id": self._n_sent, "method": method, "params": params}))
        while True:
            news = json.loads(self._socket.recv())
            if news.get("id") == self._n_sent:
                assert "error" not in news, (method, news)
                return news["result"]
            self._note(news)

    def _note(self, news: dict) -> None:
        params = news.get("params", {})
        if news.get("method") == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])
        elif news.get("method") == "Runtime.exceptionThrown":
            self.failures.append(str(params["exceptionDetails"]))
        elif news.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.failures.append(params["entry"]["text"])

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def value(self, expression: str) -> object:
        """What an expression of the page is, awaited."""
        result = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, expression: str, wait_s: float = WAIT_S) -> object:
        """The value of an expression as soon as it is true."""
        until_s = time.monotonic() + wait_s
        while not (value := self.value(expression)):
            assert time.monotonic() < until_s, (
                f"never: {expression}\n{self.value('document.body.innerText')}"
            )
            time.sleep(0.1)
        return value

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a pointer does."""
        where = f"""(() => {{ const it = document.querySelector({json.dumps(selector)});
            it.scrollIntoView({{block: "center"}});
            const box = it.getBoundingClientRect();
            const within = (side) => Math.min(side / 2, 10);
            return [box.left + within(box.width), box.top + within(box.height)]; }})()"""
        before = None
        while (at := self.value(where)) != before:  # what loads meanwhile may move it
            before = at
            time.sleep(0.15)
        x, y = at
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        for key in keys:
            code, text = _KEYS[key]
            down = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
            self.send("Input.dispatchKeyEvent", type="keyDown", **down)
            self.send("Input.dispatchKeyEvent", type="keyUp", **down)

    def drag(self, selector: str, share: float) -> None:
        """Drag the knob of a slider to a share of its way."""
        where = f"""(() => {{ const it = document.querySelector({json.dumps(selector)});
            it.scrollIntoView({{block: "center"}});
            const box = it.getBoundingClientRect(), knob = 8;
            const at = (part) => box.left + knob + part * (box.width - 2 * knob);
            return [at(it.value / it.max), at({share}), box.top + box.height / 2]; }})()"""
        x0, x1, y = self.value(where)
        self.send(
            "Input.dispatchMouseEvent", type="mousePressed", x=x0, y=y, button="left", clickCount=1
        )
        for i in range(1, 9):
            x = x0 + (x1 - x0) * i / 8
            self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left")
        self.send(
            "Input.dispatchMouseEvent", type="mouseReleased", x=x1, y=y, button="left", clickCount=1
        )

    def type(self, selector: str, text: str) -> None:
        """Write into a field in place of what it has."""
        self.value(f"document.querySelector({json.dumps(selector)}).select()")
        self.send("Input.insertText", text=text)

    def picture(self, path: Path | str, *, is_whole: bool = False) -> None:
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=is_whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def downloaded(self, name: str) -> Path:
        """A file that was downloaded, whole."""
        return _when(lambda: next(it for it in self.downloads.iterdir() if it.name == name))

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()


def _json_at(url: str) -> list[dict]:
    with urlopen(url) as response:
        return json.load(response)


def _when(get, wait_s: float = 20.0):
    """What a call returns as soon as it does."""
    until_s = time.monotonic() + wait_s
    while True:
        try:
            return get()
        except (OSError, IndexError, StopIteration):
            assert time.monotonic() < until_s
            time.sleep(0.05)

"""A headless Chromium, driven over WebDriver with the standard library alone."""

import base64
import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import urllib.request


class Browser:
    """One browser; opens pages, runs scripts, moves the mouse, takes pictures."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lipscope-browser-")
        # port 0: the driver takes a free one and says which
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True
        )
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("chromedriver did not start")
        self.base = f"http://127.0.0.1:{found[1]}"
        # as root there is no sandbox, and in a container little shared memory
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
            "--hide-scrollbars", "--force-device-scale-factor=1",
            "--disable-background-networking", f"--user-data-dir={self.folder.name}/profile",
        ]
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "args": arguments,
                "prefs": {
                    "download.default_directory": self.folder.name,
                    # several downloads of one page, without asking
                    "profile.default_content_setting_values.automatic_downloads": 1,
                },
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}})
        self.session = f"/session/{answer['sessionId']}"
        self.size(1200, 900)

    def close(self):
        with contextlib.suppress(Exception):
            self._call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.folder.cleanup()

    def _call(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + path, method=method,
            data=json.dumps(body or {}).encode() if method == "POST" else None,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def cdp(self, command, **params):
        """A command of the browser's own protocol."""
        return self._call(
            "POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": params}
        )

    def open(self, path):
        self._call("POST", f"{self.session}/url", {"url": pathlib.Path(path).resolve().as_uri()})

    def run(self, script, *arguments):
        """What the body of a JavaScript function returns."""
        return self._call(
            "POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)}
        )

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride",
                 width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", kind=""):
        """Light or dark; kind "print" for paper."""
        self.cdp("Emulation.setEmulatedMedia", media=kind,
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def settle(self):
        """Waits until the page has drawn what it was told."""
        self.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def hover(self, x, y):
        self._call("POST", f"{self.session}/actions", {"actions": [{
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": [{"type": "pointerMove", "duration": 0, "x": round(x) - 5, "y": round(y)},
                        {"type": "pointerMove", "duration": 20, "x": round(x), "y": round(y)}],
        }]})

    def press(self, *keys):
        down_up = [a for k in keys
                   for a in ({"type": "keyDown", "value": k}, {"type": "keyUp", "value": k})]
        self._call("POST", f"{self.session}/actions",
                   {"actions": [{"type": "key", "id": "keys", "actions": down_up}]})

    def picture(self, path, whole=False):
        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"],
                               "height": min(size["height"], 12000), "scale": 1}
        pathlib.Path(path).write_bytes(
            base64.b64decode(self.cdp("Page.captureScreenshot", **options)["data"]))

    def complaints(self):
        """What the console has said since it was last asked."""
        return [entry["message"]
                for entry in self._call("POST", f"{self.session}/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that the page asked for since it was last asked."""
        log = self._call("POST", f"{self.session}/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [e["params"]["request"]["url"] for e in events
                if e["method"] == "Network.requestWillBeSent"]

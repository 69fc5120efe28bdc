"""A headless Chromium for tests: pages, what they say, their errors and their pictures. Speaks the DevTools protocol over
two pipes."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium")
PATIENCE = float(os.environ.get("RDMAQUOTA_PATIENCE", "300"))  # seconds


def program():
    """Its path, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp()
        to_child, self.to = os.pipe()
        self.from_, from_child = os.pipe()

        def place_pipes():  # it reads requests from 3 and writes answers to 4
            reading, writing = os.dup(to_child), os.dup(from_child)
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate((reading, writing))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--force-color-profile=srgb",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(3, 4), preexec_fn=place_pipes, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.number = 0
        self.unread = b""
        self.pages = {}

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = dict(id=self.number, method=method, params=parameters, **({"sessionId": session} if session else {}))
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.take(60)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def take(self, seconds):
        """The next message; events are noted on the way."""
        end = time.monotonic() + seconds
        while b"\0" not in self.unread:
            if not select.select([self.from_], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            got = os.read(self.from_, 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self.unread += got
        text, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(text)
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.note(message["method"], message["params"])
        return message

    def page(self):
        """A page of a new profile, without any cookie."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.call(f"{domain}.enable")
        page.call("Performance.enable", timeDomain="threadTicks")
        return page

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.from_)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors = []    # of scripts and of the console
        self.requests = []  # addresses

    def note(self, method, given):
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"] + " " + given["entry"].get("url", ""))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.errors.append(str(given["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def go(self, address):
        self.call("Page.navigate", url=address)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def text(self):
        return self.now("document.body.innerText") or ""

    def wait(self, expression, seconds=PATIENCE):
        """How long it took until this was true; None: too long."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if self.now(expression):
                return time.monotonic() - begin
            time.sleep(0.03)
        return None

    def now(self, expression):
        """Its value; None while the page is only being loaded."""
        try:
            return self.value(f"document.documentElement && document.body && ({expression})")
        except RuntimeError:
            return None

    def wait_for(self, text, seconds=PATIENCE):
        return self.wait(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def work_ms(self):
        """What its scripts and their effects have taken of a processor so far, however busy that is."""
        metrics = {metric["name"]: metric["value"] for metric in self.call("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"] * 1000

    def look(self, width=1280, height=900, dark=False, zoom=1):
        """As on a screen of this width, in this colour scheme; zoom 2: as at 200 %."""
        self.call("Emulation.setDeviceMetricsOverride", width=width // zoom, height=height // zoom, deviceScaleFactor=zoom, mobile=width < 640)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, tallest=4000):
        """All of the page, not only what is on the screen."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = dict(x=0, y=0, width=size["width"], height=min(size["height"], tallest), scale=1)
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def press(self, key):
        """Tab or Enter."""
        code = {"Tab": 9, "Enter": 13}[key]
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def nameless(self):
        """What a screen reader would meet without a name: links, buttons, fields, images."""
        roles = ("link", "button", "combobox", "searchbox", "image", "table")
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [node["role"]["value"] for node in nodes if not node.get("ignored") and node.get("role", {}).get("value") in roles
                and not node.get("name", {}).get("value")]

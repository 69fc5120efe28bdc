#!/usr/bin/python3
"""The sidecar's page in a real browser, without RDMA. Pictures of it are written to BUILD_DIRECTORY/web. The last line is
'N passed, N failed'.

    web_test.py BUILD_DIRECTORY [ordinary|hostile|kernel|contained|many]...
    web_test.py BUILD_DIRECTORY docs        writes the pictures of docs/images
    web_test.py BUILD_DIRECTORY axe FILE    axe-core, which is in FILE, checks each page
"""
import json
import os
import pwd
import sys
import time
import traceback

sys.dont_write_bytecode = True
import web_access  # noqa: E402
import web_tables  # noqa: E402
from browser import Browser, program  # noqa: E402
from web_http import requests_from_anyone  # noqa: E402
from web_node import Node  # noqa: E402
from web_pictures import pictures as make_pictures  # noqa: E402
from web_scene import ADDED, POLICY, delay, eventually, opened, populate, updated, visit  # noqa: E402

build = os.path.realpath(sys.argv[1])
pictures = f"{build}/web"
user = pwd.getpwuid(os.geteuid()).pw_name
counts = {True: 0, False: 0}


def check(name, condition, seen=""):
    counts[bool(condition)] += 1
    print(("ok - " if condition else "not ok - ") + name, flush=True)
    if not condition:
        for line in str(seen).splitlines()[:60]:
            print(f"    # {line}")


# --- a node as it may be --------------------------------------------------------------------------

def live(browser, node):
    crowds = populate(node)
    train, cms, astro = crowds
    astro.do("deny astro mlx5_0 cq=200")
    page = opened(browser, node)
    check("the page opens by the address that rdmaquota web prints", page.wait_for("What needs attention") is not None,
          page.text())
    check("the address then has neither token nor secret", page.value("location.href") == f"http://127.0.0.1:{node.port}/#/",
          page.value("location.href"))
    page.wait_for("is full")
    page.wait_for("Within that: physics 4,944 of 5,000")
    page.wait_for(f"ask {user} to end gpt_train")  # its name comes after its number
    text = page.text()
    check("it says which device is full, of what, and what that means", "mlx5_0 is full: 5,500 of 5,500 qp" in text
          and "Every program that wants another fails now" in text, text)
    check("and who fills it, tenants and processes",
          "Most of it: physics/atlas 4,244 (77 %)" in text and f"gpt_train (pid {train.pid}, {user}) with 3,544" in text, text)
    check("and whom to ask, or what to type", f"To make room: ask {user} to end gpt_train" in text and f"kill {train.pid}" in text
          and "rdmaquota set node mlx5_0 qp=6875" in text, text)
    check("a higher limit is offered before a program's end", text.index("rdmaquota set node mlx5_0 qp=6875") < text.index(f"kill {train.pid}"), text)
    check("that nobody goes around the quota is not said where it is not known",
          "Whether anybody goes around the quota is not known" in text and "obody goes" not in text, text)
    check("no limit is offered that would not help", "set physics " not in text and "set physics/atlas" not in text, text)
    check("one cause is one alert", "Within that: physics 4,944 of 5,000" in text and text.count("mlx5_0 is full") == 1
          and "Tenant physics" not in text, text)
    check("a soft limit has its command", "rdmaquota set astro mlx5_0 qp=520 --soft" in text, text)
    check("a denial is there with what helps", page.wait_for("set astro mlx5_0 cq=201") is not None, page.text())

    took = delay(page, "denial", "hepsim (pid", lambda: cms.do("deny_share physics/cms mlx5_0 qp=700"))
    check("a denial is shown by one of the next updates", took <= 3, took)
    check("with its reason, and no limit that would not help", "700 of 700 (its share of what a tenant above may use)" in page.text()
          and "mlx5_0 is full of qp" in page.text() and "--guarantee" not in page.text(), page.text())
    took = delay(page, "again", "denied ×2", lambda: astro.do("again astro mlx5_0 cq=200"))
    check("so is its repetition", took <= 3, took)
    check("the last minutes' denials are counted", page.wait_for("1 was denied since") is not None, page.text())
    took = delay(page, "limit", "of 7,777", lambda: node.run("set", "node", "mlx5_1", "qp=7777"))
    check("a limit's change is shown by one of the next updates", took <= 3, took)
    node.run("set", "node", "mlx5_1", "qp=6000")
    page.value("location.reload(), true")
    check("each resource has its last hour", page.wait("document.querySelector('.hour')?.ariaLabel === "
                                                       "'The last hour: from 5,500 to 5,500, at most 5,500'") is not None, page.text())
    return page, train


def places(node, page, train):
    visit(page, "#/tenants")
    text = page.text()
    check("the tree has used, limit, guarantee, soft limit and grace",
          all(word in text for word in ("physics/atlas", "4,244", "1,000", "300", "119 min")), text)
    visit(page, "#/device/mlx5_0")
    check("a device shows its tenants and processes", "Tenants by qp" in page.value("document.body.textContent")
          and f"gpt_train (pid {train.pid}, {user})" in page.text(), page.text())
    visit(page, "#/tenant/physics%2Fatlas")
    page.wait_for("gpt_train")
    check("a tenant can be linked to", "Trend of qp on mlx5_0" in page.text() and "Processes (2)" in page.text(), page.text())
    check("its chart is drawn", page.value("document.querySelector('canvas').width") > 100)
    page.value("document.querySelector('details').open = true")
    updated(page)
    check("with a table behind it, that stays open", page.value("document.querySelector('details[open] table').innerText").count("4,244") > 1,
          page.text())
    node.run("set", "physics/atlas", "mlx5_0", "commands_per_s=2500")
    check("a tenant's rates are there", page.wait_for("mlx5_0 commands_per_s") is not None and "2,500" in page.text(), page.text())
    node.run("unset", "physics/atlas", "mlx5_0", "commands_per_s")
    visit(page, f"#/tenant/physics%2Fatlas/pid/{train.pid}")
    check("so can a process, which is asked for alone", page.wait("document.querySelectorAll('#pid-' + %d).length === 1" % train.pid) is not None
          and any(address.endswith(f"&pid={train.pid}") for address in page.requests), page.requests[-9:])
    check("with what may have been denied to it", f"rdmaquota explain --pid {train.pid}" in page.text() and "gpt_eval" not in page.text(), page.text())
    visit(page, "#/tenant/physics")
    page.wait("document.querySelectorAll('details tbody tr').length > 1")
    check("the trend of an inner tenant is the sum of those below", "4,944" in page.value("document.querySelector('details').textContent"),
          page.value("document.querySelector('details').textContent"))
    visit(page, "#/node")
    check("what doctor finds is there", page.wait_for("policy-5 is in force") is not None, page.text())
    check("and what the sidecar does not see", "What the sidecar does not see" in page.text(), page.text())


def as_user(browser, node):
    if os.geteuid() != 0:
        return
    node.run("set", "default", "mlx5_0", "qp=50")
    page = opened(browser, node, user=65534)
    check("a user sees what is left of its own limit", page.wait("/36 of \\d+/.test(document.body.innerText)") is not None
          and " free" in page.text() and "is full" not in page.text(), page.text())
    node.run("unset", "default", "mlx5_0", "qp")


def reached_by_keyboard(page):
    """The links and buttons that the tabulator leads to, from the top."""
    page.value("document.getElementById('skip').focus(), true")
    reached = []
    for _ in range(12):
        reached.append(page.value("document.activeElement.textContent.trim()"))
        page.press("Tab")
    return reached


def readable(page):
    for place in ("#/", "#/tenants", "#/tenant/physics%2Fatlas", "#/device/mlx5_0", "#/events", "#/node"):
        visit(page, place)
        check(f"each control, image and table of {place} has a name", page.nameless() == [], page.nameless())
    visit(page, "#/")
    reached = reached_by_keyboard(page)
    check("the keyboard leads through the page", reached[0] == "Skip to the content" and reached[2:4] == ["Overview", "Tenants"]
          and "mlx5_0" in reached, reached)
    page.value("document.querySelector('nav a[href=\"#/tenants\"]').focus(), true")
    page.press("Enter")
    updated(page, 2)
    page.value("document.querySelector('input').focus(), true")
    page.call("Input.insertText", text="cms")
    updated(page, 2)
    check("what is typed stays while the page goes on", page.value("document.activeElement.value") == "cms"
          and "astro" not in page.value("document.querySelector('tbody').innerText"), page.text())
    check("the status is not read out every second", page.value("document.querySelector('[role=status]').textContent") == "All tenants")


def photographed(page):
    looks = (("light", "#/", {}), ("dark", "#/", {"dark": True}), ("narrow", "#/", {"width": 390, "height": 844}),
             ("tenant", "#/tenant/physics%2Fatlas", {}), ("tenants", "#/tenants", {}))
    for name, place, look in looks:
        page.value("document.querySelector('input')?.value && (document.querySelector('input').value = '', "
                   "document.querySelector('input').oninput({target: {value: ''}})), true")
        page.look(**look)
        visit(page, place)
        page.picture(f"{pictures}/{name}.png")
        wide = page.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(f"{name}: nothing is wider than the screen", wide <= 0, wide)
    page.look()


def nothing_from_elsewhere(node, page):
    own = f"http://127.0.0.1:{node.port}/"
    elsewhere = [address for address in page.requests if not address.startswith((own, "data:"))]
    check("nothing was asked of anyone else", elsewhere == [], elsewhere)
    check("there was no error in the console", page.errors == [], page.errors)


def ordinary():
    node, browser = Node(build, POLICY), Browser()
    try:
        page, train = live(browser, node)
        places(node, page, train)
        readable(page)
        as_user(browser, node)
        photographed(page)
        nothing_from_elsewhere(node, page)
        requests_from_anyone(check, node)
        kept(node, page)
        restarted(node, page)
    finally:
        browser.end()
        node.end()


def kept(node, page):
    """Where systemd keeps the socket, nobody else could listen at the port meanwhile."""
    address, secrets = node.address(), f"{node.directory}/web-sessions.json"
    check("what opens the page is kept for root alone", oct(os.stat(secrets).st_mode & 0o777) == "0o600", os.stat(secrets))
    node.stop(kept=True)
    page.value("delete document.documentElement.dataset.place, location.hash = '#/events'")
    node.start(kept=True)
    check("a new sidecar with the same socket goes on with it", page.wait("document.documentElement.dataset.place === '#/events'") is not None
          and node.address() == address, (page.text(), node.said()))
    new = node.run("web", "--renew").stdout.strip()
    check("until the token is renewed", new.startswith(address[:-32]) and new != address and
          page.wait_for("This page needs an address with a token") is not None, (new, page.text()))
    check("which opens the page again", node.address() == new, node.address())
    page.go(new)
    page.wait("document.documentElement.dataset.place")


def restarted(node, page):
    check("the sidecar ends in order", node.stop() == 0, node.said())
    check("the page says that nobody answers", page.wait_for("No answer from rdmaquotad") is not None, page.text())
    node.start()
    check("after a new start its address is no longer good, since another user could have got its port meanwhile",
          page.wait_for("This page needs an address with a token") is not None, page.text())
    page.value("location.hash = '#/tenant/astro', true")
    page.wait("localStorage.getItem('wanted') === '#/tenant/astro'")
    page.go(node.address())
    check("and a new one is, and leads to what was wanted", page.wait_for("Tenant astro") is not None, page.text())
    page.go(node.address() + "#/events")
    check("an address may say what it is for", page.wait_for("The newest first") is not None
          and page.value("location.href") == f"http://127.0.0.1:{node.port}/#/events", page.text())
    node.set_policy(POLICY, web="all")
    page.value("localStorage.clear(), true")
    open_to_all = f"http://127.0.0.1:{node.port}/"
    check("with web = \"all\" there is no token", eventually(lambda: node.address() == open_to_all), node.address())
    page.go(node.address())
    page.value("location.reload(), true")
    check("and everyone may look", page.wait_for("What needs attention") is not None and page.wait_for("All tenants") is not None,
          page.text())
    node.release()
    node.set_policy(POLICY, port=0)
    page.wait_for("No answer from rdmaquotad")
    without = node.run("web")
    check("without web_port there is no page, and rdmaquota web says how to get one",
          without.returncode == 1 and "write web_port = 9838 below [sidecar]" in without.stderr
          and "No answer from rdmaquotad" in page.text(), (without, page.text()))


# --- hostile names --------------------------------------------------------------------------------

HOSTILE = ("<b>bold</b>", "\"'&amp;<i>", "\x1b[31mred", "moc\u202egpj.x", "a\u200bb\u2066c", "$(reboot)")


# What can be seen or heard: texts, and the attributes that are shown.
SHOWN = """document.documentElement.textContent + [...document.querySelectorAll('*')].map((node) =>
    [node.title, node.ariaLabel, node.dataset.title, document.title].join(' ')).join(' ')"""


def hostile():
    """A tenant may write any bytes into its ledger: names of devices and programs."""
    node, browser = Node(build, POLICY), Browser()
    try:
        crowd = node.crowd()
        for name in HOSTILE:
            crowd.do(f"as {name}", f"charge astro {name.replace(' ', '')} qp=1500", f"deny astro {name.replace(' ', '')} qp=1500")
        page = opened(browser, node)
        page.wait_for("$(reboot)")
        shown = ""
        for place in ("#/", "#/events", "#/tenant/astro", "#/tenants", "#/device/%3Cb%3Ebold%3C%2Fb%3E"):
            visit(page, place)
            shown += page.value(SHOWN)
            check(f"{place}: no name becomes markup", page.value("document.querySelectorAll('main b b, main i, main script').length") == 0)
        check("names with markup are shown as they are", "<b>bold</b>" in shown and "\"'&amp;<i>" in shown, shown[:2000])
        check("what hides or turns text is named instead", all(word in shown for word in ("\\u{1b}[31mred", "moc\\u{202e}gpj.x", "a\\u{200b}b\\u{2066}c")),
              shown[-2000:])
        check("and never reaches the screen", not set(shown) & set("\x1b\u202e\u200b\u2066"), shown)
        typed = page.value("[...document.querySelectorAll('.command')].map((one) => one.textContent).join('\\n')")
        visit(page, "#/")
        typed += page.value("[...document.querySelectorAll('.command')].map((one) => one.textContent).join('\\n')")
        check("no such name is in a command to copy", not set(typed) & set("$<>\"'&\\;|`"), typed)
        check("nor is there an error", page.errors == [], page.errors)
    finally:
        browser.end()
        node.end()


# --- what only a kernel with RDMA can tell ------------------------------------------------------------

def kernel():
    node, browser = Node(build, POLICY), Browser()
    try:
        cms = populate(node)[1]
        cms.do("charge default invented7 qp=5")
        page = browser.page()
        page.look()
        page.call("Page.addScriptToEvaluateOnNewDocument", source=ADDED)
        page.go(node.address())
        page.wait_for("goes around the quota")
        text = page.text()
        check("who goes around the library is named, with what to write", "Process <b>raw</b> (pid 4711) of tenant astro goes around the quota on mlx5_0"
              in text and "qp 1,200 in the kernel, 3 charged" in text and 'guard = "deny"' in text, text)
        check("what a device can have bounds it where that is less", "1,230 of 5,000" in text and "3,770 free: the device has no more" in text, text)
        bars = page.value("[...document.querySelectorAll('.bar')].map((one) => one.ariaLabel)")
        check("also where the node has no limit", "1,230 of 1,280, 96 %" in bars and "50 free: the device has no more" in text, (bars, text))
        check("bytes without a limit are compared with the node's memory", "61 GiB of 244 GiB, 25 %" in bars and "25 % of the node's memory" in text,
              (bars, text))
        check("and is warned of, without a limit that would help", "mlx5_1 is nearly full: 1,230 of 1,280 cq (completion queues) in use" in text
          and "No limit helps: mlx5_1 cannot have more than 1,280" in text, text)
        check("who makes and destroys most comes first", text.index("2,100.5") < text.index("not known") < text.index("0.4"), text)
        check("devices that the node lacks are counted only", "Ledgers name 1 more" in text and "invented7" not in text, text)
        check("a node's limit is raised no further than the device goes", "rdmaquota set node mlx5_0 qp=6000" in text, text)
        page.picture(f"{pictures}/kernel.png")
        visit(page, "#/node")
        text = page.text()
        check("the node's page has bypasses and coverage", "<b>raw</b> (pid 4711)" in text and "sees all that the kernel makes" in text, text)
        visit(page, "#/tenant/astro/pid/4711")
        check("a link to who goes around leads to what is known of it",
              page.wait_for("goes around the quota on mlx5_0: qp 1,200 in the kernel") is not None and "no device open" not in page.text(), page.text())
        visit(page, "#/tenant/bio")
        check("a tenant's page has its churn only", "2,100.5" in page.text() and "0.4" not in page.text(), page.text())
        visit(page, "#/")
        page.value("window.more.bypasses = [], true")
        check("that nobody goes around is said where the kernel's objects are counted", page.wait_for("Nobody goes around the quota.") is not None,
              page.text())
        page.value("window.more.node.kernel.not_seen = ['mr'], true")
        check("with what is not seen, where there is any", page.wait_for("Nobody is seen to go around the quota. What the") is not None, page.text())
        check("nor is there an error here", page.errors == [], page.errors)
    finally:
        browser.end()
        node.end()


# --- containers --------------------------------------------------------------------------------------

def contained():
    """A process in a pid namespace of its own: it says that it is pid 1 or so."""
    if os.geteuid() != 0:
        return
    node, browser = Node(build, POLICY), Browser()
    try:
        crowd = node.crowd("unshare", "--pid", "--fork", "--mount-proc")
        crowd.do("as boxed", "charge astro mlx5_0 qp=1500", "deny astro mlx5_0 qp=1500")
        with open(f"/proc/{crowd.pid}/task/{crowd.pid}/children", encoding="ascii") as children:
            pid = int(children.read())
        page = opened(browser, node)
        check("a container's process has the node's pid, and its user", page.wait_for(f"boxed (pid {pid}, {user}) with 1,500") is not None, page.text())
        check("its denial has the container's, and leads nowhere", page.wait_for(f"boxed (pid 1 of a container, {user})") is not None
              and page.value("document.querySelectorAll('a[href$=\"pid/1\"], a[href$=\"pid/null\"]').length") == 0, page.text())
        check("nothing is offered for the node's pid 1", "pid 1)" not in page.text() and "kill 1\n" not in page.text(), page.text())
        visit(page, f"#/tenant/astro/pid/{pid}")
        check("the link leads to it", page.wait_for("1 in its container") is not None and "boxed" in page.text(), page.text())
        check("with its cgroup", "Cgroup" in page.text(), page.text())
    finally:
        browser.end()
        node.end()


def many():
    web_tables.many(check, build)


def attempt(part):
    """Whatever goes wrong in one part, the others follow."""
    try:
        part()
    except Exception as error:  # pylint: disable=broad-except
        check(f"{part.__name__}: {type(error).__name__}: {error}", False, traceback.format_exc())


def main():
    if program() is None or not os.path.exists(f"{build}/tools/rdmaquotad/rdmaquotad"):
        print("SKIP: package chromium-headless-shell; a build with rdmaquotad", file=sys.stderr)
        return 77
    os.makedirs(pictures, exist_ok=True)
    if sys.argv[2:] == ["docs"]:
        make_pictures(build, os.path.realpath(f"{os.path.dirname(__file__)}/../../docs/images"))
        return 0
    def axe():
        web_access.axe(check, build, sys.argv[3])
    for part in (axe,) if sys.argv[2:3] == ["axe"] else (ordinary, hostile, kernel, contained, many):
        if part.__name__ in sys.argv[2:] or len(sys.argv) == 2:
            attempt(part)
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 0 if counts[False] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

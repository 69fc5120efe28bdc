"""The page as people use it who see little, or have no mouse: looks, zoom, and axe-core, a checker of accessibility."""
from browser import Browser
from web_node import Node
from web_scene import ADDED, POLICY, populate, visit

PLACES = ("#/", "#/tenants", "#/tenants?sort-tenants=tenant&find-tenants=a", "#/tenant/physics%2Fatlas", "#/tenant/nobody", "#/device/mlx5_0",
          "#/events", "#/node")
LOOKS = {"light": {}, "dark": {"dark": True}, "narrow": {"width": 390, "height": 844}, "zoomed": {"zoom": 2}}
FOUND = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations.map(({id, help, nodes}) =>
    `${id}: ${help}: ${nodes.slice(0, 4).map(({html, failureSummary}) => `${html.slice(0, 150)} (${failureSummary})`).join("; ")}`))"""


def checked(check, page, name):
    found = page.value(FOUND)
    check(f"axe finds nothing: {name}", found == [], "\n".join(found))


def axe(check, build, script):
    with open(script, encoding="utf-8") as file:
        text = file.read()
    node, browser = Node(build, POLICY), Browser()
    try:
        populate(node)[2].do("deny astro mlx5_0 cq=200")
        page = browser.page()
        page.call("Page.addScriptToEvaluateOnNewDocument", source=ADDED)
        page.look()
        page.go(node.address())
        page.wait_for("goes around the quota")
        page.value(text + "; true")
        for name, look in LOOKS.items():
            page.look(**look)
            for place in PLACES:
                visit(page, place)
                checked(check, page, f"{name}, {place}")
                page.picture(f"{build}/web/axe-{name}-{PLACES.index(place)}.png")
        page.value("localStorage.clear(), true")
        node.run("web", "--renew")
        page.wait_for("This page needs an address")
        checked(check, page, "without a token")
        check("nor is there an error", [error for error in page.errors if "401" not in error] == [], page.errors)
    finally:
        browser.end()
        node.end()

"""The pictures of docs/images, made anew: the page with the tests' scene, and rdmaquota top beside it."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import termios
import time
import urllib.parse

from browser import Browser
from web_node import Node
from web_scene import POLICY, opened, populate, updated, visit

# Whose programs they are for the reader; all of them are really this user's, and the quota directory is the tests'.
USERS = {"gpt_train": "alice", "gpt_eval": "alice", "hepsim": "carol", "skymap": "erin", "blast": "bob"}
NAMED = """
    const real = window.fetch, users = USERS;
    window.fetch = async (path) => {
        const answer = await real(path);
        const grown = (used) => used.map((_, i) => Math.round(used.at(-1) * (0.55 + 0.45 * i / 59 - 0.08 * Math.sin(i / 4))));
        if (answer.ok && path.endsWith("/hours"))
            return new Response(JSON.stringify((await answer.json()).map(([who, device, what, used]) => [who, device, what, grown(used)])));
        if (!answer.ok || !/state|tenant/.test(path))
            return answer;
        const state = JSON.parse((await answer.text()).replaceAll(" --dir DIRECTORY", ""));
        for (const use of state.top ?? []) use[6] = users[use[4]] ?? use[6];
        for (const one of [...state.events ?? [], ...state.processes ?? []]) one.user = users[one.comm] ?? one.user;
        if (state.host) Object.assign(state, {host: "node17", capacity: [["mlx5_0", "qp", 6000]]});
        if (state.node) Object.assign(state.node, {memory: 549755813888, kernel: {...state.node.kernel, attached: true, not_seen: [], looks: 9}});
        if (state.churn) state.churn = [["bio", "mlx5_1", "mr", 21.4, 20.9], ["physics/cms", "mlx5_0", "qp", 0.6, 0.6]];
        return new Response(JSON.stringify(state));
    };
"""
LOOKS = (("light", "#/", {}), ("dark", "#/tenant/physics%2Fatlas", {"dark": True}), ("narrow", "#/", {"width": 390, "height": 844}))


def screen(node, rows=20, columns=120):
    """What `rdmaquota top` shows on a terminal, with its colours."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(node.cli, [node.cli, "top"], dict(node.environment, TERM="xterm-256color", LINES=str(rows), COLUMNS=str(columns)))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    shown, end = b"", time.monotonic() + 4
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536)
    os.write(terminal, b"q")
    os.close(terminal)
    os.waitpid(child, 0)
    return shown.decode(errors="replace").split("\x1b[H")[-1]


def markup(text):
    """The same as HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    text = re.sub(r"\x1b\[([0-9;]+)m", lambda code: "</b>" if code[1] == "0" else f'<b class="c{code[1].replace(";", "-")}">', text)
    text = re.sub(r"\x1b[^A-Za-z]*[A-Za-z]", "", text).replace("\r", "").rstrip()
    style = ("body{margin:0;background:#14171c;color:#d6dae0;display:inline-block}pre{margin:12px;font:15px/1.35 'DejaVu Sans Mono',monospace}"
             "b{font-weight:normal}.c1{font-weight:bold}.c2{color:#8c95a1}.c31{color:#ff8a80}.c32{color:#7fd58c}.c33{color:#f2bd57}.c7{background:#d6dae0;color:#14171c}")
    return f"<!doctype html><meta charset=utf-8><style>{style}</style><body><pre>{text}</pre>"


def pictures(build, images):
    node, browser = Node(build, POLICY), Browser()
    try:
        _, cms, astro = populate(node)
        time.sleep(30)  # for a trend
        cms.do("deny_share physics/cms mlx5_0 qp=700")
        astro.do("deny astro mlx5_0 cq=200", *["again astro mlx5_0 cq=200"] * 6)
        page = browser.page()
        page.call("Page.addScriptToEvaluateOnNewDocument", source=NAMED.replace("USERS", json.dumps(USERS)).replace("DIRECTORY", node.directory))
        opened(browser, node, page=page)
        page.wait_for("denied since")
        for name, place, look in LOOKS:
            page.look(**look)
            visit(page, place)
            updated(page, 3)
            page.picture(f"{images}/web-{name}.png")
        page.look(width=1200, height=100)
        page.go("data:text/html;charset=utf-8," + urllib.parse.quote(markup(screen(node))))
        page.wait("document.querySelector('pre')")
        page.picture(f"{images}/top.png")
    finally:
        browser.end()
        node.end()

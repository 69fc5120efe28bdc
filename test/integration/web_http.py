"""Requests to the page's port, as others than its browser make them: other users, other sites, and those who mean ill."""
import json
import os
import re
import select
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from waiting import eventually  # noqa: E402

SAFE = {"content-security-policy": "frame-ancestors 'none'", "x-frame-options": "DENY", "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer", "cache-control": "no-store", "cross-origin-resource-policy": "same-origin"}


class Reply:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/") else 0
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]}"


def raw(node, data, whole=False):
    """What comes back; nothing when the connection is only closed. `whole`: nothing more will be sent."""
    with socket.create_connection(("127.0.0.1", node.port), timeout=300) as client:
        got = b""
        try:
            client.sendall(data)
            if whole:
                client.shutdown(socket.SHUT_WR)
            while part := client.recv(65536):
                got += part
        except OSError:
            pass
    return got


def get(node, path, method="GET", host=None, **headers):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{node.port}'}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Reply(raw(node, ("\r\n".join(lines) + "\r\n\r\n").encode()))


class Visitor:
    """One who has an address from rdmaquota web, with the cookie."""

    def __init__(self, node, user=None):
        self.node = node
        self.token = node.address(user).partition("token=")[2]
        self.entry = get(node, f"/?token={self.token}")
        self.place = self.entry.headers.get("location", "").partition("place=")[2]
        self.cookie = self.entry.headers.get("set-cookie", "").partition(";")[0]

    def get(self, what, **headers):
        return get(self.node, f"/data/{self.place}/{what}", Cookie=f"theme=x; {self.cookie}; a=b", **headers)


def entering(check, node, root):
    entry = root.entry
    check("an address with a token leads to the page", entry.status == 303 and entry.headers["location"].startswith("/?place="), entry)
    cookie = entry.headers["set-cookie"]
    check("and sets a cookie for its data alone, that no script and no other site gets",
          cookie.endswith(f"; Path=/data/{root.place}/; HttpOnly; SameSite=Strict"), cookie)
    check("which gets the data", json.loads(root.get("state").body)["all"] is True)
    check("token, path and cookie have nothing in common", len({root.token, root.place, root.cookie.partition("=")[2]}) == 3)
    wrong = [get(node, f"/?token={token}").status for token in (root.token[:-1], root.token + "0", root.token[:-1] + "x", "0" * 32, root.place)]
    check("a wrong token does not", wrong == [403] * 5, wrong)
    refused = [get(node, f"/data/{place}/state", Cookie=cookie) for place, cookie in
               ((root.place, ""), (root.place, "rdmaquota=" + "0" * 32), ("0" * 32, root.cookie), ("all", root.cookie), ("all", ""),
                (root.place, "xrdmaquota=" + root.cookie.partition("=")[2]), (root.place, f"rdmaquota={root.token}"))]
    check("nor does a wrong cookie or path", [reply.status for reply in refused] == [401] * len(refused), refused)
    check("and who is refused learns nothing", not any(b"physics" in reply.body for reply in refused), refused)
    check("the same address is good again", get(node, f"/?token={root.token}").headers.get("set-cookie") == cookie)


def other_sites(check, node, root):
    hosts = ("evil.example", f"evil.example:{node.port}", f"127.0.0.1.evil.example:{node.port}", f"127.0.0.1@evil.example:{node.port}", "localhost.", " ")
    wrong = [get(node, path, host=host).status for host in hosts for path in ("/", "/app.js", f"/data/{root.place}/state")]
    check("another name that leads here is refused, whatever it asks for", set(wrong) == {421}, wrong)
    check("so is none", Reply(raw(node, b"GET / HTTP/1.0\r\n\r\n")).status == 421)
    check("localhost is not", get(node, "/", host=f"localhost:{node.port}").status == 200)
    own = f"http://127.0.0.1:{node.port}"
    asked = [root.get("state", Origin=origin).status for origin in ("https://evil.example", "null", f"http://127.0.0.1:{node.port + 1}", own)]
    check("data are for no other origin, also not of another port", asked == [403, 403, 403, 200], asked)
    asked = [root.get("state", Sec_Fetch_Site=site).status for site in ("cross-site", "same-site", "same-origin")]
    check("by the browser's word, too", asked == [403, 403, 200], asked)
    check("and a link on another site does not lead in", get(node, f"/?token={root.token}", Sec_Fetch_Site="cross-site").status == 403)


def headers(check, node, root):
    replies = [get(node, "/"), get(node, "/app.js"), get(node, "/style.css"), get(node, "/none"), get(node, "/?token=x"), root.entry,
               root.get("state"), get(node, "/data/x/state"), get(node, "/", host="evil.example")]
    lacking = [(reply.status, name) for reply in replies for name, value in SAFE.items() if value not in reply.headers.get(name, "")]
    check("each reply is guarded against frames, sniffing, referrers and caches", lacking == [], lacking)
    policy = replies[0].headers["content-security-policy"]
    check("and no script or style but the page's own runs", "unsafe" not in policy and "default-src 'none'" in policy, policy)
    markup = replies[0].body.decode()
    check("the page has none inline, and nothing from elsewhere",
          not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|style=|https?:", markup), markup)


def other_users(check, node):
    if os.geteuid() != 0:
        return
    nobody = Visitor(node, user=65534)
    state = json.loads(nobody.get("state").body)
    check("a user sees its own tenants and default", [tenant["name"] for tenant in state["tenants"]] == ["default", "guest"]
          and state["all"] is False, state)
    text = nobody.get("state").body.decode()
    hidden = [word for word in ("physics", "astro", "bio", "gpt_train", "hepsim", "skymap") if word in text]
    check("and nothing of others", hidden == [] and state["node"]["findings"] is None, text)
    own = nobody.get("tenant?name=default")
    check("its own in detail", own.status == 200 and json.loads(own.body)["name"] == "default", own)
    others = ("tenant?name=physics/atlas", "tenant?name=physics", "tenant?name=node", "tenant?name=", "tenant",
              "history?tenant=physics/atlas&device=mlx5_0&resource=qp", "history?tenant=physics&device=mlx5_0&resource=qp",
              "history?tenant=node&device=mlx5_0&resource=qp", "history?tenant=&device=mlx5_0&resource=qp", "state/../../all/state")
    got = [(what, nobody.get(what).status) for what in others]
    check("and none of others'", all(status == 404 for _, status in got), got)
    root = Visitor(node)
    check("root does", root.get("history?tenant=physics/atlas&device=mlx5_0&resource=qp").status == 200
          and root.get("history?tenant=node&device=mlx5_0&resource=qp").status == 200)
    mixed = get(node, f"/data/{root.place}/state", Cookie=nobody.cookie)
    check("one's cookie opens no other's path", mixed.status == 401, mixed)


def garbage(check, node, root):
    paths = ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/data/", "/data", "/data//state", "/app.js/..", "/index.html/",
             f"/data/{root.place}/../all/state", "/\\", "/" + "a" * 3000)
    got = [(path[:40], get(node, path).status) for path in paths]
    check("paths that are none are refused", all(status in (401, 404, 414) for _, status in got), got)
    methods = [(method, get(node, "/", method=method).status) for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW")]
    check("nothing but GET and HEAD is answered", all(status in (0, 405) for _, status in methods), methods)
    posted = Reply(raw(node, f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{node.port}\r\nContent-Length: 100000\r\n\r\n".encode() + b"x" * 100000))
    check("nor is a body taken", posted.status in (0, 405, 413), posted)
    head = get(node, "/", method="HEAD")
    check("HEAD has no body", head.status == 200 and head.body == b"", head)
    raw(node, os.urandom(5000) + b"\r\n\r\n", whole=True)
    raw(node, b"\0" * 100, whole=True)
    raw(node, b"GET / HTTP/1.1\r\n" + b"Host: 127.0.0.1\r\n" * 2000 + b"\r\n", whole=True)
    large = get(node, "/", Cookie="a=" + "b" * 200000)
    check("large headers are refused", large.status in (0, 400, 413, 431), large)
    twice = Reply(raw(node, f"GET /data/{root.place}/state HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nCookie: {root.cookie}\r\n\r\n".encode()))
    check("two hosts are none", twice.status in (400, 421), twice)


def crowds(check, node, root):
    idle = [socket.create_connection(("127.0.0.1", node.port), timeout=300) for _ in range(60)]
    for i, client in enumerate(idle):
        client.sendall(b"GET / HT"[:i % 8])
    reply = root.get("state")
    gone = select.select(idle, [], [], 0)[0]
    check("60 connections that say nothing keep nobody from the page, nor have to go for that", reply.status == 200 and not gone, reply)
    more = []
    for _ in range(100):
        more.append(socket.create_connection(("127.0.0.1", node.port), timeout=300))
    check("nor do more than it takes, for ever", eventually(lambda: root.get("state").status == 200))
    for client in idle + more:
        client.close()
    unread = [socket.create_connection(("127.0.0.1", node.port), timeout=300) for _ in range(20)]
    for client in unread:
        client.sendall(f"GET /chart.min.js HTTP/1.1\r\nHost: 127.0.0.1:{node.port}\r\n\r\n".encode())
    check("nor do those who do not read", root.get("state").status == 200)
    for client in unread:
        client.close()


def requests_from_anyone(check, node):
    root = Visitor(node)
    entering(check, node, root)
    other_sites(check, node, root)
    headers(check, node, root)
    other_users(check, node)
    garbage(check, node, root)
    crowds(check, node, root)
    check("the sidecar has not fallen by any of that", node.sidecar.poll() is None and root.get("state").status == 200, node.said())

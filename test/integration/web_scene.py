"""What there is to see on the page in its tests, and looking at it."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from waiting import eventually  # noqa: E402, F401

GIB = 1 << 30

POLICY = """
[node."mlx5_0"]
qp = 5500
mr_bytes = "512GiB"
[node."mlx5_1"]
qp = 6000
[tenant.physics]
weight = 200
[tenant.physics."*"]
qp = { limit = 5000, guarantee = 1000 }
[tenant."physics/atlas"]
match = [{ cgroup = "/slurm/atlas", members = ["root"] }]
[tenant."physics/atlas"."*"]
qp = 4800
mr_bytes = "400GiB"
[tenant."physics/cms"]
match = [{ cgroup = "/slurm/cms", members = ["root"] }]
[tenant."physics/cms"."*"]
qp = 2000
[tenant.astro]
match = [{ cgroup = "/slurm/astro", members = ["root"] }]
grace = "2h"
[tenant.astro."*"]
qp = { limit = 1500, soft = 300 }
cq = 200
[tenant.bio]
match = [{ cgroup = "/slurm/bio", members = ["root"] }]
mode = "audit"
[tenant.bio."*"]
qp = 400
mr = 3000
[tenant.guest]
match = [{ user = "nobody" }]
"""


def populate(node):
    """What the pictures show: mlx5_0 is full, mostly by physics/atlas."""
    train, evaluate, cms, astro, bio = (node.crowd() for _ in range(5))
    train.do("as gpt_train",
             f"charge physics/atlas mlx5_0 qp=3544 cq=3100 cqe=794000 send_wr=396800 recv_wr=396800 mr=4100 mr_bytes={300 * GIB} pd=64",
             f"charge physics/atlas mlx5_1 qp=800 cq=800 mr=700 mr_bytes={40 * GIB} pd=8")
    evaluate.do("as gpt_eval", f"charge physics/atlas mlx5_0 qp=700 cq=700 mr=500 mr_bytes={32 * GIB} pd=8")
    cms.do("as hepsim", f"charge physics/cms mlx5_0 qp=700 cq=1290 mr=900 mr_bytes={22 * GIB} pd=20",
           f"charge physics/cms mlx5_1 qp=310 cq=310 mr=90 mr_bytes={12 * GIB} pd=4")
    astro.do("as skymap", f"charge astro mlx5_0 qp=520 cq=200 mr=260 mr_bytes={60 * GIB} pd=4", "soft astro mlx5_0 qp=0")
    bio.do("as blast", f"charge bio mlx5_1 qp=120 cq=120 mr=2100 mr_bytes={9 * GIB} pd=2",
           f"charge default mlx5_0 qp=36 cq=36 mr=40 mr_bytes={700 << 20} pd=9")
    return train, cms, astro


# What only a kernel with RDMA can tell, added to what the sidecar says: window.more.
MORE = {
    "bypasses": [{"pid": 4711, "comm": "<b>raw</b>", "tenant": "astro", "device": "mlx5_0", "cgroup": "/slurm/astro",
                  "resources": {"qp": {"kernel": 1200, "ledger": 3}, "mr_bytes": {"kernel": 3 * GIB, "ledger": 0}}}],
    "refused": [["bio", "mlx5_1", "qp", 17]],
    "capacity": [["mlx5_0", "qp", 6000], ["mlx5_1", "qp", 5000], ["mlx5_1", "cq", 1280]],
    "churn": [["astro", "mlx5_0", "qp", 0.4, 0], ["bio", "mlx5_1", "mr", 2100.5, 2099], [None, "mlx5_0", "pd", 3, 3]],
    "node": {"kernel": {"attached": True, "not_seen": [], "looks": 9}, "guard": {"state": "off"}, "devices": ["mlx5_0", "mlx5_1"],
             "memory": 244 * GIB},
}
ADDED = """
    const real = window.fetch;
    window.more = MORE;
    window.fetch = async (path) => {
        const answer = await real(path);
        if (!path.endsWith("/state") || !answer.ok)
            return answer;
        const state = await answer.json();
        const {node, ...rest} = window.more;
        return new Response(JSON.stringify({...state, ...rest, node: {...state.node, ...node}}));
    };
""".replace("MORE", json.dumps(MORE))


def opened(browser, node, user=None, page=None):
    """The page as this user opens it, once it shows something."""
    page = page or browser.page()
    page.look()
    page.go(node.address(user))
    return page if page.wait("Number(document.documentElement.dataset.updates) >= 1") is not None else page


def updated(page, number=1):
    """After so many more updates of what it shows, which begin at once."""
    for _ in range(number):
        page.value("window.before = Number(document.documentElement.dataset.updates), document.dispatchEvent(new Event('visibilitychange'))")
        page.wait("Number(document.documentElement.dataset.updates) > window.before")


def visit(page, place):
    page.value(f"delete document.documentElement.dataset.place, location.hash = {place!r}")
    return page.wait(f"document.documentElement.dataset.place === {place!r}")


WATCH = """
    window.seen = {};
    window.watcher = new MutationObserver(() => {
        for (const [name, text] of Object.entries(window.wanted))
            if (!(name in window.seen) && document.body.innerText.includes(text)) window.seen[name] = Number(document.documentElement.dataset.updates);
    });
    window.watcher.observe(document.body, {subtree: true, childList: true, characterData: true});
    window.wanted = WANTED; window.seen = {}; true
"""


def delay(page, name, text, change):
    """How many updates of the page after `change` it says this, as it counts them itself."""
    page.value(WATCH.replace("WANTED", f"{{{name}: {text!r}}}"))
    begin = page.value("Number(document.documentElement.dataset.updates)")
    change()
    page.wait(f"'{name}' in window.seen")
    return page.value(f"window.seen.{name}") - begin

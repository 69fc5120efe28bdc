#!/usr/bin/python3
"""metrics_test.py BUILD PROMETHEUS: what rdmaquotad tells Prometheus, of real programs and of the guard, and what the example
alerts and the dashboard make of it, in the real Prometheus of the directory PROMETHEUS. Runs as root in the guest, installed.
The last line is 'N passed, N failed'."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

here = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(here))
from waiting import eventually  # noqa: E402

build, prometheus = (os.path.realpath(path) for path in sys.argv[1:3])
programs = f"{build}/test/programs"
examples = "/usr/local/share/doc/rdmaquota"
PORT, SERVER = 9837, 9090
work = tempfile.mkdtemp()
os.chmod(work, 0o755)
os.chdir(work)
counts = {True: 0, False: 0}


def check(name, condition, seen=""):
    counts[bool(condition)] += 1
    print(("ok - " if condition else "not ok - ") + name, flush=True)
    if not condition:
        for line in str(seen).splitlines()[-40:]:
            print(f"    # {line}")


def get(url):
    with urllib.request.urlopen(url, timeout=300) as answer:
        return answer.read().decode()


def scrape():
    try:
        return get(f"http://127.0.0.1:{PORT}/metrics")
    except OSError:
        return ""


def rounds_pass(number=2):
    """Until the sidecar has gone so many rounds from beginning to end."""
    def rounds():
        return int(run(f"{programs}/ask", "status", "rounds").stdout)
    before = rounds()
    eventually(lambda: rounds() > before + number)


def sample(name, **labels):
    """The value of the one sample with these labels, None without."""
    for line in scrape().splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\d+)", line)
        if match and match[1] == name and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', match[2] or "")).items():
            return int(match[3])
    return None


class Program:
    """Holds what it got until it is ended."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = ""
        while "waiting" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line

    def end(self):
        self.process.stdin.close()
        self.process.wait(300)


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def own_figures():
    check("the sidecar tells its version", f'rdmaquota_build_info{{version="{run("rdmaquota", "--version").stdout.split()[-1]}"}} 1' in scrape(),
          scrape())
    check("and when it started", abs(sample("process_start_time_seconds") - time.time()) < 600)
    told = re.search(r"max_qp:\s+(\d+)", run("ibv_devinfo", "-v", "-d", "rxe0").stdout)
    check("a device's capacity is what its attributes tell",
          eventually(lambda: sample("rdmaquota_device_capacity", device="rxe0", resource="qp") == int(told[1])), scrape())
    check("no device is missing", "rdmaquota_missing_device{" not in scrape(), scrape())
    run("rdmaquota", "set", "rxe9", "qp=5")
    check("one that a limit names is", eventually(lambda: sample("rdmaquota_missing_device", device="rxe9") == 1), scrape())
    run("rdmaquota", "unset", "rxe9", "qp")


def denials():
    check("what a limit may deny is 0 before it does",
          sample("rdmaquota_denied_total", tenant="default", device="rxe0", resource="qp", reason="configured") == 0, scrape())
    holder = Program(f"{programs}/verbs_objects", "rc=5", "wait")
    check("usage and room", eventually(lambda: sample("rdmaquota_usage", tenant="default", device="rxe0", resource="qp") == 3)
          and sample("rdmaquota_room", tenant="default", device="rxe0", resource="qp") == 0, scrape())
    check("a denial is counted", eventually(lambda: sample("rdmaquota_denied_total", tenant="default", device="rxe0", resource="qp",
                                                           reason="configured") == 1), scrape())
    run(f"{programs}/verbs_objects", "rc=1")
    check("and the next", eventually(lambda: sample("rdmaquota_denied_total", tenant="default", device="rxe0", resource="qp",
                                                    reason="configured") == 2), scrape())
    check("the device's usage is the node's", sample("rdmaquota_device_usage", device="rxe0", resource="qp") >= 3, scrape())
    check("and the guard's row of the node", sample("rdmaquota_kernel_usage", tenant="node", device="rxe0", resource="qp") == 3, scrape())
    check("by the kernel's count as well", sample("rdmaquota_kernel_usage", tenant="default", device="rxe0", resource="qp") == 3, scrape())
    return holder


def churn():
    def made(resource):
        return sample("rdmaquota_created_total", tenant="default", device="rxe0", resource=resource) or 0
    rounds_pass()
    pds, destroyed = made("mw"), sample("rdmaquota_destroyed_total", tenant="default", device="rxe0", resource="mw") or 0
    holder = Program(f"{programs}/verbs_objects", "mw=7", "wait")
    check("what is made is counted", eventually(lambda: made("mw") == pds + 7), made("mw"))
    holder.end()
    check("and what is destroyed", eventually(lambda: (sample("rdmaquota_destroyed_total", tenant="default", device="rxe0", resource="mw")
                                                       == destroyed + 7)), scrape())
    for _ in range(5):
        run(f"{programs}/verbs_objects", "mw=3")
    check("also of programs that have ended at once", eventually(
        lambda: sum(sample("rdmaquota_created_total", tenant=t, device="rxe0", resource="mw") or 0 for t in ("default", "unknown"))
        == pds + 7 + 15), scrape())


def around():
    raw = run(f"{programs}/raw_uverbs", "ioctl", "10")
    check("the guard's refusals are counted", eventually(lambda: sample("rdmaquota_guard_refused_total", tenant="default", device="rxe0",
                                                                        resource="pd")), raw.stdout + scrape())


def capacity():
    knob = "/sys/kernel/debug/mlx5sim/create_qp/errno"
    told = eventually(lambda: sample("rdmaquota_device_capacity", device="mlx5_0", resource="qp"))
    some = Program(f"{programs}/verbs_objects", "-d", "mlx5_0", "rc=2", "wait")
    with open(knob, "w") as file:
        file.write("12")  # ENOMEM
    run(f"{programs}/verbs_objects", "-d", "mlx5_0", "rc=1")
    check("what a device refuses with less in use is learned",
          eventually(lambda: sample("rdmaquota_device_capacity", device="mlx5_0", resource="qp") == 2), scrape())
    check("and counted", sample("rdmaquota_refused_by_device_total", device="mlx5_0", error="ENOMEM") == 1, scrape())
    line = f"mlx5_0 refused a qp with 2 in use, though it tells of {told}"
    check("show says so", line in run("rdmaquota", "show").stdout, run("rdmaquota", "show").stdout)
    with open(knob, "w") as file:
        file.write("0")
    more = Program(f"{programs}/verbs_objects", "-d", "mlx5_0", "rc=1", "wait")
    check("until more are in use", eventually(lambda: sample("rdmaquota_device_capacity", device="mlx5_0", resource="qp") == 3), scrape())
    for program in (some, more):
        program.end()


def in_cgroup(group, *command):
    os.makedirs(f"/sys/fs/cgroup{group}")
    return Program("sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", f"/sys/fs/cgroup{group}/cgroup.procs", *command)


def workloads():
    os.makedirs("/var/log/pods/blue-team_worker-0_1b2c-3d")
    pod = in_cgroup("/kubepods.slice/kubepods-pod1b2c_3d.slice/cri-containerd-9f.scope", f"{programs}/verbs_objects", "mw=2", "wait")
    job = in_cgroup("/system.slice/slurmstepd.scope/job_7/step_0", f"{programs}/verbs_objects", "mw=4", "wait")

    def used(**labels):
        return sample("rdmaquota_workload_usage", tenant="default", device="rxe0", resource="mw", **labels)
    check("usage by pod, with the name that kubelet's directory has", eventually(lambda: used(namespace="blue-team", pod="worker-0") == 2), scrape())
    check("and by job", eventually(lambda: used(job_id="7", pod="") == 4), scrape())
    check("none is left out", sample("rdmaquota_workload_usage_left_out") == 0, scrape())
    for program in (pod, job):
        program.end()
    check("and none is left of what has ended", eventually(lambda: used() is None), scrape())


def start_prometheus():
    with open(f"{examples}/prometheus/rdmaquota.rules.yml") as file:
        rules = re.sub(r"\n +for: \d+m", "", file.read())
    with open("rules.yml", "w") as file:
        file.write(rules)
    with open(f"{examples}/prometheus/scrape.yml") as file:
        scrape_part = file.read()
    with open("prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n" + scrape_part)
    checked = run(f"{prometheus}/promtool", "check", "config", "prometheus.yml")
    check("promtool finds no fault with rules and configuration", checked.returncode == 0, checked.stdout + checked.stderr)
    return subprocess.Popen([f"{prometheus}/prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                             f"--web.listen-address=127.0.0.1:{SERVER}"], stderr=open("prometheus.log", "wb"))


def ask(what, **arguments):
    try:
        return json.loads(get(f"http://127.0.0.1:{SERVER}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"))
    except OSError as error:
        return {"status": str(error), "data": {"result": [], "alerts": []}}


def fires(name, **labels):
    return [a for a in ask("alerts")["data"]["alerts"]
            if a["state"] == "firing" and labels.items() <= dict(a["labels"], alertname=a["labels"]["alertname"]).items()
            and a["labels"]["alertname"] == name]


def scraped():
    return any(r["value"][1] == "1" for r in ask("query", query="up")["data"]["result"])


def alerts():
    check("Prometheus scrapes the sidecar", eventually(scraped), open("prometheus.log").read())
    # An increase needs a sample from before it.
    eventually(lambda: any(float(series["value"][1]) >= 3 for series in ask("query", query="count_over_time(up[5m])")["data"]["result"]))
    for _ in range(15):
        run(f"{programs}/verbs_objects", "rc=1")
        run(f"{programs}/raw_uverbs", "ioctl", "10")
    denied = eventually(lambda: fires("RdmaquotaDenials", tenant="default", device="rxe0", resource="qp"))
    check("many denials fire an alert that says who is denied what",
          denied and denied[0]["annotations"]["summary"] == "default is denied qp on rxe0 again and again", ask("alerts"))
    check("many refusals of the guard do", eventually(lambda: fires("RdmaquotaGuardRefused", tenant="default", resource="pd")), ask("alerts"))
    near = eventually(lambda: fires("RdmaquotaNearLimit", tenant="default", device="rxe0", resource="qp"))
    check("and a limit that is nearly reached", near and "100% of its qp on rxe0" in near[0]["annotations"]["summary"], ask("alerts"))
    check("and what a device refused before", fires("RdmaquotaDeviceRefuses", tenant="default", device="mlx5_0"), ask("alerts"))
    check("nothing else does", {a["labels"]["alertname"] for a in ask("alerts")["data"]["alerts"] if a["state"] == "firing"}
          == {"RdmaquotaDenials", "RdmaquotaGuardRefused", "RdmaquotaNearLimit", "RdmaquotaDeviceRefuses"}, ask("alerts"))


# What has no samples here: nobody goes around the quota or owes anything, nothing has a rate, and no device has refused anything.
EMPTY = ("rdmaquota_bypassers", "rdmaquota_debt", "rdmaquota_earmarked", "rdmaquota_soft_limit", "rdmaquota_refused_by_device_total",
         "rdmaquota_delayed_seconds_total")


def dashboard():
    with open(f"{examples}/grafana/rdmaquota.json") as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "1m").replace("[1h]", "[1m]")
            query = re.sub(r"\$(instance|tenant|device|resource)", ".*", query)
            empty = any(name in query for name in EMPTY) and panel["type"] == "timeseries"

            def answers():
                answer = ask("query", query=query)  # noqa: B023
                return answer["status"] == "success" and bool(answer["data"]["result"]) != empty  # noqa: B023
            check(f"the dashboard's {panel['title']}: {target['legendFormat'] or 'the table'}", eventually(answers),
                  f"{query}\n{ask('query', query=query)}")
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
        values = ask(f"label/{label}/values", **{"match[]": series.replace("$instance", ".*")})
        check(f"and its variable {variable['name']}", values["status"] == "success" and values["data"], values)


with open("policy.toml", "w") as file:
    file.write(f'version = 1\n[sidecar]\nguard = "deny"\nmetrics_port = {PORT}\nmetrics_labels = ["pod", "job"]\n'
               '[tenant.default."*"]\npd = 5\nqp = 3\nmr_bytes = "1MiB"\n')
run("rdmaquota", "reload", "policy.toml")
sidecar = subprocess.Popen(["rdmaquotad"], stderr=open("sidecar.log", "wb"))
check("the guard comes up", eventually(lambda: sample("rdmaquota_guard_mode") == 2 and '"deny"' in run("rdmaquota", "guard", "--json").stdout),
      open("sidecar.log").read())
own_figures()
holder = denials()
churn()
around()
workloads()
capacity()
server = start_prometheus()
alerts()
dashboard()
lint = subprocess.run([f"{prometheus}/promtool", "check", "metrics"], input=scrape(), capture_output=True, text=True)
check("promtool finds no fault with the metrics", lint.returncode == 0 and not lint.stderr, lint.stderr)
server.terminate()
server.wait(300)
holder.end()
sidecar.terminate()
sidecar.wait(300)
run("rdmaquota", "guard", "off")
print(f"{counts[True]} passed, {counts[False]} failed")
sys.exit(0 if counts[False] == 0 else 1)

"""What the suites of a cluster share: certificates, three members of the real etcd, coordinators, and nodes, each with a quota directory, a
sidecar and an agent of its own; all on loopback, without RDMA. The build directory is the program's first argument."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

from service_scene import build, check, environment, eventually, finish, here, rdmaquota, rdmaquotad, work  # noqa: F401

coordinator_program = f"{build}/tools/cluster/rdmaquota-coordinator"
agent_program = f"{build}/tools/cluster/rdmaquota-agent"
user_program = f"{build}/test/integration/cluster_user"
for program, needed in ((coordinator_program, "this build has no rdmaquota-coordinator; see -Dcluster"),
                        (shutil.which("etcd"), "etcd is not installed"), (shutil.which("openssl"), "openssl is not installed")):
    if not program or not os.path.exists(program):
        print(f"SKIP: {needed}", file=sys.stderr)
        sys.exit(77)

processes = []


def start(name, *command, **options):
    """A process whose output goes to NAME.log."""
    with open(f"{work}/{name}.log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **options)
    processes.append(process)
    return process


def end(process, by=signal.SIGKILL):
    if process.poll() is None:
        process.send_signal(by)
    process.wait()


def end_all():
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            end(process)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def openssl(*arguments):
    done = run("openssl", *arguments)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def make_authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{work}/{name}.key", "-out", f"{work}/{name}.pem")


def make_certificate(directory, name, authority="ca", days=1):
    """A directory with ca.pem, cert.pem and key.pem, as both programs read it."""
    os.makedirs(directory)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{directory}/key.pem",
            "-out", f"{directory}/request.pem")
    with open(f"{directory}/names", "w", encoding="utf-8") as names:
        names.write(f"subjectAltName=DNS:{name}" + (",IP:127.0.0.1" if name == "rdmaquota-coordinator" else ""))
    openssl("x509", "-req", "-in", f"{directory}/request.pem", "-CA", f"{work}/{authority}.pem", "-CAkey", f"{work}/{authority}.key",
            "-CAcreateserial", "-days", str(days), "-extfile", f"{directory}/names", "-out", f"{directory}/cert.pem")
    os.chmod(f"{directory}/key.pem", 0o600)
    shutil.copy(f"{work}/ca.pem", f"{directory}/ca.pem")


class Etcd:
    """Three members."""

    def __init__(self, certificates):
        self.certificates = certificates
        self.clients, self.peers = free_ports(3), free_ports(3)
        self.members = [None] * 3
        for i in range(3):
            self.start(i)

    def start(self, i, data=None, cluster=None):
        made = self.certificates
        self.members[i] = start(
            f"etcd{i}", "etcd", "--name", f"m{i}", "--data-dir", data or f"{work}/etcd{i}",
            "--listen-client-urls", f"https://127.0.0.1:{self.clients[i]}", "--advertise-client-urls", f"https://127.0.0.1:{self.clients[i]}",
            "--listen-peer-urls", f"http://127.0.0.1:{self.peers[i]}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{self.peers[i]}",
            "--initial-cluster", cluster or self.cluster(), "--cert-file", f"{made}/cert.pem", "--key-file", f"{made}/key.pem",
            "--trusted-ca-file", f"{made}/ca.pem", "--client-cert-auth", "--logger", "zap", "--auto-compaction-retention", "1")

    def cluster(self):
        return ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(self.peers))

    def endpoints(self):
        return ",".join(f"127.0.0.1:{port}" for port in self.clients)

    def ctl(self, *arguments, endpoint=None):
        made = self.certificates
        return run("etcdctl", "--endpoints", endpoint or self.endpoints(), "--cacert", f"{made}/ca.pem", "--cert", f"{made}/cert.pem", "--key",
                   f"{made}/key.pem", *arguments, env=dict(os.environ, ETCDCTL_API="3"))

    def end(self):
        for member in self.members:
            end(member)


class Coordinator:
    def __init__(self, name, etcd, certificates):
        self.name, self.etcd, self.certificates = name, etcd, certificates
        self.port = free_ports(1)[0]
        self.control = f"{work}/{name}.sock"
        self.process = None
        self.start()

    def start(self):
        self.process = start(self.name, coordinator_program, "--name", self.name, "--listen", f"127.0.0.1:{self.port}", "--etcd",
                             self.etcd.endpoints(), "--certs", self.certificates, "--control", self.control)

    def ask(self, *arguments):
        return run(rdmaquota, "cluster", *arguments, "--control", self.control)

    def status(self):
        try:
            return json.loads(self.ask("status", "--json").stdout)
        except ValueError:
            return {}

    def leads(self):
        return self.status().get("leads", False)


POLICY = """version = 1
[tenant.physics]
match = [{ user = "nobody" }]
cluster = ["qp"]
"""


class Node:
    def __init__(self, name, coordinators, certificates=None, hardware=None):
        self.name, self.coordinators = name, coordinators
        self.certificates = certificates or f"{work}/{name}-certs"
        if not certificates:
            make_certificate(self.certificates, name)
        self.directory = f"{work}/{name}-{len(processes)}"
        self.environment = dict(environment, RDMAQUOTA_DIR=self.directory)
        self.hardware = hardware or f"hardware-of-{name}"
        self.sidecar = self.agent = None
        self.users = []
        self.boot()

    def boot(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        with open(f"{work}/{self.name}.toml", "w", encoding="utf-8") as file:
            file.write(POLICY)
        done = run(rdmaquota, "reload", f"{work}/{self.name}.toml", env=self.environment)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        with open(f"{self.directory}/cluster-hardware", "w", encoding="utf-8") as file:
            file.write(self.hardware + "\n")
        self.start_sidecar()
        self.start_agent()

    def start_sidecar(self):
        self.sidecar = start(f"{self.name}-sidecar", rdmaquotad, env=self.environment)

    def start_agent(self):
        self.agent = start(f"{self.name}-agent", agent_program, "--coordinators", ",".join(f"127.0.0.1:{one.port}" for one in self.coordinators),
                           "--certs", self.certificates, env=self.environment)

    def die(self):
        """The node with all its programs."""
        for user in self.users:
            end(user.process)
        self.users = []
        end(self.agent)
        end(self.sidecar)

    def user(self):
        return User(self)

    def used(self):
        return sum(user.has for user in self.users)


class User:
    """A program that holds QPs."""

    def __init__(self, node):
        self.has = self.longest_us = 0
        self.process = subprocess.Popen([user_program, "physics", "qp"], env=node.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(self.process)
        node.users.append(self)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        _, has, longest = self.process.stdout.readline().split()
        self.has, self.longest_us = int(has), int(longest)
        return self.has

    def take(self, count):
        return self.ask(f"take {count}")

    def give(self, count):
        return self.ask(f"give {count}")

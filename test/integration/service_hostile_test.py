#!/usr/bin/python3
"""What a hostile user of the node can do to the sidecar's service. Needs root, to be that user, and no RDMA.

    service_hostile_test.py BUILD_DIRECTORY
"""
import os
import random
import signal
import subprocess
import sys
import traceback
import urllib.request

if os.geteuid() != 0:
    print("SKIP: needs root, to be other users", file=sys.stderr)
    sys.exit(77)

sys.dont_write_bytecode = True
from service_scene import check, control, directory, environment, eventually, finish, rdmaquota, rdmaquotad  # noqa: E402

port = random.randrange(30000, 32000)

# Of as many connections as are asked for, says how many the other side has not closed whenever it is asked.
HOLDER = """if True:
    import select, socket, sys
    held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
    print("ready", flush=True)
    for line in sys.stdin:
        poller = select.poll()
        for connection in held:
            poller.register(connection, select.POLLIN)
        print(len(held) - len(poller.poll(0)), flush=True)
"""

# The same at Unix sockets; a connection that cannot be made is none that is held.
UNIX_HOLDER = """if True:
    import select, socket, sys
    held = []
    for path in sys.argv[2:]:
        for _ in range(int(sys.argv[1])):
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(path)
                held.append(connection)
            except OSError:
                pass
    print("ready", flush=True)
    sys.stdin.read()
"""


def scrape():
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
        return answer.read().decode()


def is_served():
    try:
        return "rdmaquota" in scrape()
    except OSError:
        return False


class Holder:
    def __init__(self, user, number):
        self.process = subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                                         "/usr/bin/python3", "-c", HOLDER, str(port), str(number)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def open_connections(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(300)
        self.process.stdout.close()


def metrics_of_one_user():
    holder = Holder(65534, 300)
    text = scrape()  # its connection is accepted after those
    still_open = holder.open_connections()
    check("Prometheus is served beside a user who opens 300 connections", "rdmaquota" in text, text[:200])
    check("of which no more than 16 have a place", still_open <= 16, still_open)
    holder.end()


def metrics_of_many_users():
    holders = [Holder(user, 60) for user in range(65530, 65535)]
    check("and beside five users who take all places that they can get", "rdmaquota" in scrape())
    for holder in holders:
        holder.end()


def as_user(user, *command, **options):
    return subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command], text=True,
                            stdout=subprocess.PIPE, **options)


ASK = """if True:
    import socket, sys
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(300)
    connection.connect(sys.argv[1])
    connection.sendall(b'{"version":1,"request":"status"}\\n')
    print(connection.recv(65536).decode())
"""


def is_answered(user):
    """Whether a connection of this user to the control socket gets an answer."""
    client = as_user(user, "/usr/bin/python3", "-c", ASK, control)
    return '"error"' not in client.communicate(timeout=300)[0]


def control_socket_of_one_user():
    sockets = [control] + [f"{directory}/tenants/t{i}/here/control.sock" for i in range(2)]
    check("a tenant has a socket of its own", eventually(lambda: all(os.path.exists(path) for path in sockets)))
    holder = as_user(65534, "/usr/bin/python3", "-c", UNIX_HOLDER, "600", *sockets, stdin=subprocess.PIPE)
    holder.stdout.readline()
    check("another user is answered beside one who takes all places of three control sockets",
          all(is_answered(user) for user in (65533, 65532, 65533)))
    check("so is that user", is_answered(65534))
    holder.stdin.close()
    holder.wait(300)
    holder.stdout.close()


with open("policy.toml", "w") as file:
    file.write(f'version = 1\n[sidecar]\nmetrics_port = {port}\n[tenant.default."*"]\nqp = 1000\n'
               + "".join(f'[tenant.t{i}]\nmatch = [{{ user = {65534 - i} }}]\n[tenant.t{i}."*"]\nqp = 1\n' for i in range(2)))
subprocess.run([rdmaquota, "reload", "policy.toml"], check=True, stdout=subprocess.DEVNULL,
               env=environment)
log = open("log", "wb")
daemon = subprocess.Popen([rdmaquotad], stderr=log, env=environment)
try:
    eventually(lambda: daemon.poll() is not None or is_served())
    for part in (metrics_of_one_user, metrics_of_many_users, control_socket_of_one_user):
        part()
    daemon.send_signal(signal.SIGTERM)
    check("it ends in order", daemon.wait(300) == 0)
except Exception as error:
    check(f"{type(error).__name__}: {error}", False, traceback.format_exc() + open("log", errors="replace").read()[-2000:])
finally:
    if daemon.poll() is None:
        daemon.kill()
finish()

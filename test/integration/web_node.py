"""A node for tests of the web page, without RDMA: a directory with a policy, a sidecar that serves the page, and ledger_crowd in the
part of programs."""
import os
import random
import shutil
import socket
import subprocess
import tempfile


class Node:
    def __init__(self, build, policy):
        self.cli = f"{build}/tools/rdmaquota/rdmaquota"
        self.build = build
        self.work = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)  # tens of thousands of files
        os.chmod(self.work, 0o755)
        self.directory = f"{self.work}/quota"
        self.log = f"{self.work}/log"
        self.port = random.randrange(20000, 30000)
        self.environment = dict(os.environ, RDMAQUOTA_DIR=self.directory, LC_ALL="C.UTF-8", TZ="UTC",
                                PATH=f"{os.path.dirname(self.cli)}:{os.environ['PATH']}")
        os.mkdir(self.directory)
        self.crowds = []
        self.sidecar = None
        self.stored = None  # the socket that the sidecar asked to be kept
        self.set_policy(policy)
        self.start()

    def set_policy(self, text, web="token", port=None):
        with open(f"{self.work}/policy.toml", "w", encoding="utf-8") as file:
            file.write(f'version = 1\n[sidecar]\nweb_port = {self.port if port is None else port}\nweb = "{web}"\n{text}')
        done = self.run("reload", f"{self.work}/policy.toml")
        assert done.returncode == 0, done.stderr

    def start(self, kept=False):
        """The sidecar; returns when it has said READY=1. `kept`: it gets the socket of the one before, as from systemd."""
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"{self.work}/notify"
        notify.bind(path)
        notify.settimeout(300)
        with open(self.log, "ab") as log:
            environment = dict(self.environment, NOTIFY_SOCKET=path, LISTEN_FDS="1", LISTEN_FDNAMES="web page")
            program = ["sh", "-c", ("export LISTEN_PID=$$; " if kept else "") + 'exec "$0"', f"{self.build}/tools/rdmaquotad/rdmaquotad"]
            self.sidecar = subprocess.Popen(program, stderr=log, env=environment, pass_fds=(3,),
                                            preexec_fn=lambda: os.dup2(self.stored, 3) if kept else None)
        words = ""
        while "READY=1" not in words:
            data, descriptors, *_ = socket.recv_fds(notify, 4096, 1)
            words = data.decode()
            self.stored = descriptors[0] if descriptors else self.stored
        notify.close()
        os.unlink(path)

    def release(self):
        """What is kept of the sidecar's socket, as systemd does at a stop."""
        if self.stored:
            os.close(self.stored)
        self.stored = None

    def stop(self, kept=False):
        if not kept:
            self.release()
        self.sidecar.terminate()
        return self.sidecar.wait(300)

    def run(self, *words, user=None):
        """rdmaquota; as this uid and its own group."""
        program = [self.cli]
        if user:  # who need not reach the build
            program = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", shutil.copy(self.cli, self.work)]
        return subprocess.run([*program, *words], env=self.environment, capture_output=True, text=True, timeout=300, check=False)

    def address(self, user=None):
        return self.run("web", user=user).stdout.strip()

    def crowd(self, *before):
        """`before`: what starts it, such as unshare."""
        self.crowds.append(Crowd(self, *before))
        return self.crowds[-1]

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        for crowd in self.crowds:
            crowd.end()
        if self.sidecar.poll() is None:
            self.stop()
        shutil.rmtree(self.work, ignore_errors=True)


class Crowd:
    """One process that stands for programs; see ledger_crowd.cpp."""

    def __init__(self, node, *before):
        self.process = subprocess.Popen([*before, f"{node.build}/test/integration/ledger_crowd"], env=node.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def do(self, *lines):
        for line in lines:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == b"ok\n", line

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

#!/usr/bin/python3
"""Who may scrape rdmaquotad: curl and a real Prometheus on the loopback address, by TLS with a token, and with client certificates.
Needs no RDMA.

    scrape_test.py BUILD_DIRECTORY
"""
import json
import os
import random
import socket
import ssl
import subprocess
import sys
import urllib.request

sys.dont_write_bytecode = True
from service_scene import check, directory, environment, eventually, finish, here, rdmaquota, rdmaquotad, work  # noqa: E402

port = random.randrange(20000, 30000)
TOKEN = "0123456789abcdef-token"
TLS = f'metrics_certificate = "{work}/server.crt"\nmetrics_key = "{work}/server.key"\n'
WITH_TOKEN = f'metrics_token = "{work}/token"\n'
WITH_CLIENTS = f'metrics_client_ca = "{work}/ca.crt"\n'


def run(*command):
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def log():
    with open("log", errors="replace") as file:
        return file.read()


def policy(*lines):
    with open("policy.toml", "w") as file:
        file.write(f'version = 1\n[sidecar]\nmetrics_port = {port}\n{"".join(lines)}')


def reload(*lines):
    policy(*lines)
    return run(rdmaquota, "reload", "policy.toml")


def authority(name):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
        "-keyout", f"{name}.key", "-out", f"{name}.crt")


def certificate(name, by, *extension):
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
        "-keyout", f"{name}.key", "-out", f"{name}.csr")
    with open("extensions", "w") as file:
        file.write("\n".join(extension))
    run("openssl", "x509", "-req", "-in", f"{name}.csr", "-days", "2", "-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial",
        "-extfile", "extensions", "-out", f"{name}.crt")
    os.chmod(f"{name}.key", 0o600)


def curl(*options, scheme="https", host="127.0.0.1", ca="ca"):
    """The status and the text, or 0 and what curl says."""
    done = run("curl", "--silent", "--show-error", "--cacert", f"{ca}.crt", "--write-out", "\n%{http_code}", *options,
               f"{scheme}://{host}:{port}/metrics")
    text, _, status = done.stdout.rpartition("\n")
    return (int(status), text) if done.returncode == 0 else (0, done.stderr)


def bearer(token):
    return "--header", f"Authorization: Bearer {token}"


def shown_with(name):
    return "--cert", f"{name}.crt", "--key", f"{name}.key"


def answers(status, *options, **where):
    return eventually(lambda: curl(*options, **where)[0] == status)


# --- the policy -----------------------------------------------------------------------------------

def refused_by(*lines):
    policy(*lines)
    checked, reloaded = (run(rdmaquota, command, "policy.toml") for command in ("check", "reload"))
    same = checked.returncode == reloaded.returncode == 1 and checked.stderr == reloaded.stderr and checked.stderr.count("\n") == 1
    return checked.stderr if same else ""


def unprotected():
    for lines in ([], [TLS]):
        said = refused_by('metrics_address = "0.0.0.0"\n', *lines)
        check(f"other machines get nothing without {'a token or certificates' if lines else 'TLS'}",
              "is reached from other machines, which needs metrics_certificate" in said, said)


def exposed():
    """Secrets that others can read, or change."""
    for name, lines in (("server.key", [TLS]), ("token", [TLS, WITH_TOKEN])):
        os.chmod(name, 0o644)
        done = reload(*lines)
        check(f"{name} is not used while others can read it",
              done.returncode == 1 and f"{work}/{name} (mode 0644); run: chmod 600" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        os.chmod(name, 0o600)
    os.rename("token", "gone")
    done = reload(TLS, WITH_TOKEN)
    check("nor is a file that does not exist", done.returncode == 1 and "No such file" in done.stderr, done.stderr)
    os.rename("gone", "token")


def mismatched():
    reload(TLS.replace("server.key", "client.key"))
    check("a key of another certificate: the sidecar says so, and serves nothing",
          eventually(lambda: "no metrics: metrics_certificate and metrics_key:" in log()) and answers(0, scheme="http"), log())


# --- who is answered ------------------------------------------------------------------------------

def plain():
    reload()
    check("on the loopback address there is no need of TLS", answers(200, scheme="http"), curl(scheme="http"))
    check("the figures are Prometheus'", "rdmaquota_build_info" in curl(scheme="http")[1])


def with_token():
    reload('metrics_address = "0.0.0.0"\n', TLS, WITH_TOKEN)
    check("the right token is answered by TLS", answers(200, *bearer(TOKEN)), curl(*bearer(TOKEN)))
    check("a wrong one is refused", curl(*bearer(TOKEN[:-1] + "x"))[0] == 401)
    check("a part of it, too", curl(*bearer(TOKEN[:-1]))[0] == 401)
    check("none, too, and the answer says what is needed", "Authorization: Bearer TOKEN" in curl()[1] and curl()[0] == 401)
    check("without TLS there is no answer", curl(*bearer(TOKEN), scheme="http")[0] == 0)
    check("nor with an old TLS", curl(*bearer(TOKEN), "--tls-max", "1.1")[0] == 0)
    check("a client that trusts another authority does not take the server", curl(*bearer(TOKEN), ca="other")[0] == 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return
        host = route.getsockname()[0]
    check("also by another address of the node", curl(*bearer(TOKEN), "--insecure", host=host)[0] == 200)


def with_certificates():
    reload('metrics_address = "::"\n', TLS, WITH_CLIENTS)
    check("a client's certificate of the authority is answered", answers(200, *shown_with("client")), curl(*shown_with("client")))
    check("one of another authority is refused", curl(*shown_with("stranger"))[0] == 403)
    check("one that is for servers, too", curl(*shown_with("server"))[0] == 403)
    check("none, too", curl()[0] == 403)
    check("without TLS there is no answer", curl(scheme="http")[0] == 0)
    reload(TLS, WITH_CLIENTS, WITH_TOKEN)
    check("with both asked for, the certificate alone is refused", answers(401, *shown_with("client")))
    check("and so is the token alone", curl(*bearer(TOKEN))[0] == 403)
    check("both are answered", curl(*shown_with("client"), *bearer(TOKEN))[0] == 200)


def stalled():
    """More peers than there are places, which begin a handshake and never go on."""
    reload(TLS, WITH_TOKEN)
    assert answers(200, *bearer(TOKEN))
    hello = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="x")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    begun = hello.read()[:50]
    peers = []
    for _ in range(100):
        peer = socket.create_connection(("127.0.0.1", port))
        try:
            peer.sendall(begun)
        except OSError:
            pass
        peers.append(peer)
    check("peers that never finish a handshake keep nobody out", answers(200, *bearer(TOKEN)))
    for peer in peers:
        peer.settimeout(300)

    def is_closed(peer):
        try:
            return peer.recv(1) == b""
        except OSError:
            return True
    check("and are dropped", all(is_closed(peer) for peer in peers))
    for peer in peers:
        peer.close()


def renewed():
    certificate("server", "other", "subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth")
    reload(TLS, WITH_TOKEN)
    check("a reload takes a renewed certificate", answers(200, *bearer(TOKEN), ca="other"))
    certificate("server", "ca", "subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth")


# --- the real Prometheus --------------------------------------------------------------------------

JOBS = {
    "plain": "",
    "token": f"scheme: https\n    tls_config: {{ca_file: {work}/ca.crt}}\n    authorization: {{credentials_file: {work}/token}}",
    "wrong_token": f"scheme: https\n    tls_config: {{ca_file: {work}/ca.crt}}\n    authorization: {{credentials: wrong}}",
    "certificate": f"scheme: https\n    tls_config: {{ca_file: {work}/ca.crt, cert_file: {work}/client.crt, key_file: {work}/client.key}}",
    "stranger": f"scheme: https\n    tls_config: {{ca_file: {work}/ca.crt, cert_file: {work}/stranger.crt, key_file: {work}/stranger.key}}",
}


def up():
    """The jobs that get the figures."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/api/v1/query?query=up", timeout=300) as answer:
            result = json.load(answer)["data"]["result"]
    except OSError:
        return None
    return {one["metric"]["job"] for one in result if one["value"][1] == "1"} if len(result) == len(JOBS) else None


def prometheus():
    found = run("bash", f"{here}/prometheus.sh")
    if found.returncode != 0:
        return check("Debian's prometheus can be had", os.environ.get("CI") != "true", found.stderr)
    binaries = found.stdout.strip()
    with open("prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 1s}\nscrape_configs:\n")
        for job, options in JOBS.items():
            file.write(f"  - job_name: {job}\n    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n    {options}\n")
    reload()
    server = subprocess.Popen([f"{binaries}/prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                               f"--web.listen-address=127.0.0.1:{port + 1}"], stderr=open("prometheus.log", "wb"))
    check("Prometheus scrapes the loopback address", eventually(lambda: up() == {"plain"}), up())
    reload('metrics_address = "0.0.0.0"\n', TLS, WITH_TOKEN)
    check("by TLS with the token alone", eventually(lambda: up() == {"token"}), up())
    reload('metrics_address = "0.0.0.0"\n', TLS, WITH_CLIENTS)
    check("with the authority's certificate alone", eventually(lambda: up() == {"certificate"}), up())
    server.terminate()
    server.wait(300)


for name in ("ca", "other"):
    authority(name)
certificate("server", "ca", "subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth")
certificate("client", "ca", "extendedKeyUsage=clientAuth")
certificate("stranger", "other", "extendedKeyUsage=clientAuth")
with open("token", "w") as file:
    file.write(TOKEN + "\n")
os.chmod("token", 0o600)
os.mkdir(directory)
reload()
sidecar = subprocess.Popen([rdmaquotad], stderr=open("log", "wb"), env=environment)
for part in (plain, unprotected, with_token, with_certificates, exposed, mismatched, stalled, renewed, prometheus):
    part()
sidecar.terminate()
check("the sidecar ends in order", sidecar.wait(300) == 0, log())
finish()

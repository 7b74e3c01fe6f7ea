#!/bin/bash
# openstack-placement 16.0.0: a claim that is refused takes what another claim, answered 204, holds.
#
# Placement makes the record of a new consumer in a transaction of its own, before it writes
# allocations, and removes the records that it has made if the claim is refused then. Another claim
# of the same consumer that has looked for the record just before it was made does not make one of
# its own: it takes the one that is there, without comparing its generation, writes, and is answered
# 204. If the first claim is refused after that, the record is removed by its id, whatever generation
# it has by then. The allocations of the second claim stay: they count in the usage of the provider,
# but no call lists them any more, neither by consumer nor by provider, and nothing removes them
# but by a new claim of the same consumer, which replaces them.
#
# If the record is removed a moment earlier, before the second claim has read it again, that is
# answered 404 "No such consumer(s)", as if its path were wrong, though a repetition would be made.
#
# One expects that what was answered 204 is there, and 409 for a claim that others have disturbed.
# The first claim has two consumers and is refused because the generation of the other one is
# changed meanwhile; any refusal at that step does the same. Both are threads of one process here,
# that wait for each other where no transaction of the database is open.
#
# Exit: 0 as described, 1 changed, 2 could not be tried.
set -u
folder=$(mktemp -d) || exit 2
trap 'cd /; rm -rf "$folder"' EXIT
cd "$folder" || exit 2
python3 -m venv venv >/dev/null 2>&1 || exit 2
timeout 400 venv/bin/pip install -q openstack-placement==16.0.0 'SQLAlchemy<2.1' >pip.log 2>&1 || {
    tail -3 pip.log
    exit 2
}
cat >try.py <<'PYTHON'
import io, json, sys, threading
from importlib.metadata import version
from oslo_config import cfg
from placement import conf, db_api, deploy
from placement.db.sqlalchemy import models
from placement.handlers import allocation
from placement.objects.consumer import Consumer

config = cfg.ConfigOpts()
conf.register_opts(config)
config.set_override("connection", "sqlite:///placement.sqlite", "placement_database")
config([], project="placement", default_config_files=[])
config.set_override("auth_strategy", "noauth2", "api")
db_api.configure(config)
models.BASE.metadata.create_all(db_api.get_placement_engine())
application = deploy.loadapp(config)


def send(method, path, body=None):
    sent = b"" if body is None else json.dumps(body).encode()
    statuses = []
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "SERVER_NAME": "localhost", "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(sent),
        "wsgi.errors": sys.stderr, "CONTENT_LENGTH": str(len(sent)), "CONTENT_TYPE": "application/json",
        "HTTP_X_AUTH_TOKEN": "admin", "HTTP_OPENSTACK_API_VERSION": "placement 1.36",
    }
    found = b"".join(application(environ, lambda status, *_: statuses.append(int(status.split()[0]))))
    found = json.loads(found) if found else None
    detail = found["errors"][0]["detail"].split("\n")[-1].strip() if found and "errors" in found else ""
    return statuses[0], found, detail


def consumer(generation, amount=1):
    return {"allocations": {host: {"resources": {"VCPU": amount}}},
            "project_id": "p", "user_id": "u", "consumer_generation": generation}


class Step:
    """The n-th call of a function in one thread, which waits there until it is let go."""

    def __init__(self, owner, name, thread, number=1):
        self.reached, self.go = threading.Event(), threading.Event()
        real, calls = getattr(owner, name), []

        def call(*args, **kwargs):
            if threading.current_thread().name == thread:
                calls.append(None)
                if len(calls) == number:
                    self.reached.set()
                    assert self.go.wait(60)
            return real(*args, **kwargs)

        setattr(owner, name, call)


def started(name, *request):
    answers = []
    thread = threading.Thread(name=name, target=lambda: answers.append(send(*request)), daemon=True)
    thread.start()
    return thread, answers


def ended(thread, answers):
    thread.join(60)
    return answers[0] if answers else sys.exit(2)


def wait(step):
    step.reached.wait(60) or sys.exit(2)


host = "00000000-0000-4000-8000-000000000001"
other, first, second = (f"10000000-0000-4000-8000-00000000000{n}" for n in range(1, 4))
send("POST", "/resource_providers", {"uuid": host, "name": "host"})
send("PUT", f"/resource_providers/{host}/inventories",
     {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}})
send("PUT", f"/allocations/{other}", consumer(None))

print("openstack-placement", version("openstack-placement"))
seen = []


def overlap(uuid, generation, where):
    """Refuse a claim of two consumers after another claim of one of them has found its record."""
    names = f"refused {uuid}", f"claim {uuid}"
    # Both have found no record; the first one makes it; the second one finds it there.
    looked = Step(Consumer, "create", names[1])
    made = Step(allocation, "create_allocation_list", names[0])
    read = Step(Consumer, "get_by_uuid", names[1], number=2)
    if where == "after it has written":
        read.go.set()
    claim = started(names[1], "PUT", f"/allocations/{uuid}", consumer(None, 2))
    wait(looked)
    body = {other: consumer(generation), uuid: consumer(None, 3)}
    refused = started(names[0], "POST", "/allocations", body)
    wait(made)
    status = send("PUT", f"/allocations/{other}", consumer(generation))[0]
    assert status == 204, status
    # The claim finds the record as it is about to make one, and reads it.
    looked.go.set()
    if where == "after it has written":
        answer = ended(*claim)
        made.go.set()
        return answer, ended(*refused)
    wait(read)
    made.go.set()
    gone = ended(*refused)
    read.go.set()
    return ended(*claim), gone


answer, gone = overlap(first, 1, "after it has written")
held = send("GET", f"/allocations/{first}")[1]["allocations"]
listed = send("GET", f"/resource_providers/{host}/allocations")[1]["allocations"]
used = send("GET", f"/resource_providers/{host}/usages")[1]["usages"]["VCPU"]
print("claim of two consumers, one of which changes meanwhile:", gone[0], gone[2])
print("claim of the other one of the two, of 2 VCPU:", answer[0])
print("what it holds by GET:", held)
print("consumers that the provider lists:", [one for one in listed], "VCPU used:", used)
again = send("PUT", f"/allocations/{first}", consumer(None, 2))
used_then = send("GET", f"/resource_providers/{host}/usages")[1]["usages"]["VCPU"]
print("the same claim again:", again[0], "VCPU used:", used_then)
late, _ = overlap(second, 2, "before it has read the record")
print("a claim whose record is removed a moment earlier:", late[0], late[2])
as_described = (
    (answer[0], gone[0], held, list(listed), used) == (204, 409, {}, [other], 3)
    and (again[0], used_then) == (204, 3)
    and (late[0], late[2].startswith("No such consumer")) == (404, True)
)
print("as described" if as_described else "changed")
sys.exit(0 if as_described else 1)
PYTHON
timeout 120 venv/bin/python -W ignore try.py 2>err.log
code=$?
[ $code -le 1 ] || { tail -5 err.log; exit 2; }
exit $code

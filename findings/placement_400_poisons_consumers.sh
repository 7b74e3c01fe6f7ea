#!/bin/bash
# openstack-placement 16.0.0: a claim that is answered 400, because one of its providers does not
# exist (any more), leaves records of all its new consumers behind, with generation 0 and nothing
# allocated. GET answers {} for them, as for consumers that were never named, but each later claim
# with the generation null, which is right for a consumer without allocations, is answered
# "409 expected 0 but got None". So does an empty claim with null for a consumer that is not known,
# which is answered 204. One expects a refused claim to change nothing, as a claim without room
# (409) does: its records are removed.
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
import io, json, sys
from importlib.metadata import version
from oslo_config import cfg
from placement import conf, db_api, deploy
from placement.db.sqlalchemy import models

config = cfg.ConfigOpts()
conf.register_opts(config)
config.set_override("connection", "sqlite://", "placement_database")
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


def consumer(*on, amount=1):
    return {"allocations": {uuid: {"resources": {"VCPU": amount}} for uuid in on},
            "project_id": "p", "user_id": "u", "consumer_generation": None}


here, gone = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
first, second, third, fourth = (f"10000000-0000-4000-8000-00000000000{n}" for n in range(1, 5))
send("POST", "/resource_providers", {"uuid": here, "name": "here"})
send("PUT", f"/resource_providers/{here}/inventories",
     {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}})

print("openstack-placement", version("openstack-placement"))
seen = []


def show(what, answer):
    status, body, detail = answer
    print(f"{what}: {status} {detail}")
    seen.append((status, detail))


show("claim of 9 of 8 VCPU", send("POST", "/allocations", {first: consumer(here, amount=9)}))
show("the same consumer claims 1", send("POST", "/allocations", {first: consumer(here)}))
show("claim of two consumers, one on a provider that is gone",
     send("POST", "/allocations", {second: consumer(here), third: consumer(gone)}))
held = send("GET", f"/allocations/{second}")[1]
print("GET of the other consumer:", held)
show("it claims 1", send("PUT", f"/allocations/{second}", consumer(here)))
show("empty claim of a consumer that is not known", send("POST", "/allocations", {fourth: consumer()}))
show("it claims 1", send("PUT", f"/allocations/{fourth}", consumer(here)))
poisoned = "consumer generation conflict - expected 0 but got None"
as_described = (
    [status for status, _ in seen] == [409, 204, 400, 409, 204, 409]
    and seen[3][1] == seen[5][1] == poisoned
    and held == {"allocations": {}}
)
print("as described" if as_described else "changed")
sys.exit(0 if as_described else 1)
PYTHON
timeout 120 venv/bin/python -W ignore try.py 2>err.log
code=$?
[ $code -le 1 ] || { tail -5 err.log; exit 2; }
exit $code

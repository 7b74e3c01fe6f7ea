#!/bin/bash
# openstack-placement 16.0.0: a consumer generation guards less than one expects, while two requests
# for one consumer overlap.
#
# - Emptying a consumer (POST /allocations with {} and its generation) compares the generation once,
#   at its beginning. Then it reads the allocations to remove together with the generation that the
#   consumer has by now, and writes by that: what another request has claimed in between, with a
#   higher generation, is removed, and both are answered 204.
# - A claim with the generation null of a consumer that is not known makes its record, if another
#   request has not made it in between. If it has, no generation is compared: the claim replaces the
#   other one's allocations, and both are answered 204.
#
# One expects 409 of one of the two in both cases, as for two claims with the same generation.
# The other request is made here between two steps of the first one, where no transaction of the
# database is open; two processes of Placement do the same when they overlap.
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
from placement.handlers import util
from placement.objects.consumer import Consumer

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


def consumer(generation, *on):
    return {"allocations": {uuid: {"resources": {"VCPU": 1}} for uuid in on},
            "project_id": "p", "user_id": "u", "consumer_generation": generation}


def interrupted(owner, name, after, other, request):
    """Send a request, and another one before or after the first call of a function in it."""
    real, answers = getattr(owner, name), []

    def call(*args, **kwargs):
        if after:
            found = real(*args, **kwargs)
        setattr(owner, name, real)
        answers.append(other())
        return found if after else real(*args, **kwargs)

    setattr(owner, name, call)
    return [request(), *answers]


hosts = [f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2)]
first, second, third = (f"10000000-0000-4000-8000-00000000000{n}" for n in range(1, 4))
for uuid in hosts:
    send("POST", "/resource_providers", {"uuid": uuid, "name": uuid[-1]})
    send("PUT", f"/resource_providers/{uuid}/inventories",
         {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}})

print("openstack-placement", version("openstack-placement"))
seen = []


def held(uuid):
    found = send("GET", f"/allocations/{uuid}")[1]
    return sorted(found["allocations"]), found.get("consumer_generation")


def show(what, answers, uuid):
    statuses = [status for status, _, _ in answers]
    on, generation = held(uuid)
    print(f"{what}: {statuses}, held on {[one[-1] for one in on]}, generation {generation}")
    seen.append((statuses, [one[-1] for one in on], generation))


send("PUT", f"/allocations/{first}", consumer(None, hosts[0]))
show("a claim with generation 1 while the consumer is emptied with generation 1",
     interrupted(util, "ensure_consumer", True,
                 lambda: send("PUT", f"/allocations/{first}", consumer(1, hosts[1])),
                 lambda: send("POST", "/allocations", {first: consumer(1)})), first)
show("a claim with null while another claim with null begins",
     interrupted(Consumer, "create", False,
                 lambda: send("PUT", f"/allocations/{second}", consumer(None, hosts[0])),
                 lambda: send("PUT", f"/allocations/{second}", consumer(None, hosts[1]))), second)
send("PUT", f"/allocations/{third}", consumer(None, hosts[0]))
show("for comparison, a claim with generation 1 while another one with generation 1 begins",
     interrupted(util, "ensure_consumer", True,
                 lambda: send("PUT", f"/allocations/{third}", consumer(1, hosts[0])),
                 lambda: send("PUT", f"/allocations/{third}", consumer(1, hosts[1]))), third)
as_described = seen == [([204, 204], [], None), ([204, 204], ["2"], 2), ([409, 204], ["1"], 2)]
print("as described" if as_described else "changed")
sys.exit(0 if as_described else 1)
PYTHON
timeout 120 venv/bin/python -W ignore try.py 2>err.log
code=$?
[ $code -le 1 ] || { tail -5 err.log; exit 2; }
exit $code

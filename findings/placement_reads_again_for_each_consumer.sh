#!/bin/bash
# openstack-placement 16.0.0: one POST of the allocations of N consumers reads N times what they have
# in common. With one provider, project and user for all, each of these is selected once for each
# consumer, and each consumer is created in a transaction of its own before the allocations are
# written; so it takes about as many statements a consumer as N claims one by one, without their
# HTTP requests. A GET of allocations reads all resource classes anew, and all consumer types if the
# consumer has one: what Placement keeps of these is kept for one request only. One expects a bulk
# request to read each once, and names of classes to be kept in the process.
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
import io, json, sys, uuid
from collections import Counter
from importlib.metadata import version

import sqlalchemy as sa
from oslo_config import cfg
from placement import conf, db_api, deploy
from placement.db.sqlalchemy import models
from sqlalchemy.engine import Engine

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
        "HTTP_X_AUTH_TOKEN": "admin", "HTTP_OPENSTACK_API_VERSION": "placement 1.38",
    }
    found = b"".join(application(environ, lambda status, *_: statuses.append(int(status.split()[0]))))
    found = json.loads(found) if found else None
    detail = found["errors"][0]["detail"].split("\n")[-1].strip() if found and "errors" in found else ""
    return statuses[0], found, detail



def claims(number):
    allocations = {"allocations": {PROVIDER: {"resources": {"VCPU": 1}}}}
    of_all = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "GANG"}
    return {str(uuid.uuid4()): {**allocations, **of_all} for _ in range(number)}


PROVIDER = "00000000-0000-4000-8000-000000000001"
send("POST", "/resource_providers", {"uuid": PROVIDER, "name": "here"})
send("PUT", f"/resource_providers/{PROVIDER}/inventories",
     {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 100}}})
# Project, user and consumer type exist from now on.
[known] = claims(1)
send("POST", "/allocations", {known: claims(1).popitem()[1]})

asked = []
sa.event.listen(Engine, "before_cursor_execute", lambda _c, _u, text, *_: asked.append(text))


def counted(method, path, body=None):
    asked.clear()
    status = send(method, path, body)[0]
    tables = ("resource_providers", "projects", "users", "consumer_types", "resource_classes")
    found = Counter()
    for text in asked:
        words = text.split()
        table = words[words.index("FROM") + 1] if words[0] == "SELECT" and "FROM" in words else ""
        if table in tables:
            found[table] += 1
        if words[:2] == ["INSERT", "INTO"]:
            found[f"inserts into {words[2]}"] += 1
    print(f"{method} {path.split('/')[1]}: {status}, {len(asked)} statements, {dict(sorted(found.items()))}")
    return status, found


print("openstack-placement", version("openstack-placement"))
good = True
for number in (1, 8, 64):
    print(f"{number} consumers on one provider, of one project and user:")
    status, found = counted("POST", "/allocations", claims(number))
    good &= status == 204 and found["inserts into consumers"] == number
    good &= all(found[table] >= number for table in ("resource_providers", "projects", "users"))
print("the same consumer, read twice:")
for _ in range(2):
    status, found = counted("GET", f"/allocations/{known}")
    good &= status == 200 and found["resource_classes"] == found["consumer_types"] == 1
print("as described" if good else "CHANGED")
sys.exit(0 if good else 1)
PYTHON
timeout 120 venv/bin/python -W ignore try.py 2>err.log
code=$?
[ $code -le 1 ] || { tail -5 err.log; exit 2; }
exit $code

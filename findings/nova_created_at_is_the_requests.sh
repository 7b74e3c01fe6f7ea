#!/bin/bash
# nova 34.0.0: created_at of an instance's row is not the time at which the row was inserted.
#
# The API writes a build request and no instance. The conductor inserts the instance into a cell once
# a host is chosen, from that build request: with the build request's created_at, which is written
# as any other field, and no time is taken from the database or the clock. So between a row's
# created_at and the moment at which others can see it is all the time that the request has waited
# for conductor and scheduler: a minute or more where these are behind. updated_at is none until the
# row is changed.
#
# One expects that rows inserted since a moment are those with a created_at since then, at most for
# the length of a transaction. A reader that asks for these misses rows. The row's id tells.
#
# Exit: 0 as described, 1 changed, 2 could not be tried.
set -u
folder=$(mktemp -d) || exit 2
trap 'cd /; rm -rf "$folder"' EXIT
cd "$folder" || exit 2
python3 -m venv venv >/dev/null 2>&1 || exit 2
timeout 450 venv/bin/pip install -q nova==34.0.0 'SQLAlchemy<2.1' >pip.log 2>&1 || {
    tail -3 pip.log
    exit 2
}
cat >try.py <<'PYTHON'
import datetime, os, sys
from importlib.metadata import version

os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
from nova import config, context, objects
from nova.conf import CONF
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_utils import timeutils, uuidutils

CONF([], project="nova", default_config_files=[])
CONF.set_override("connection", "sqlite://", "api_database")
CONF.set_override("connection", "sqlite://", "database")
api_db.configure(CONF)
main_db.configure(CONF)
api_models.BASE.metadata.create_all(api_db.get_engine())
main_models.BASE.metadata.create_all(main_db.get_engine())
objects.register_all()
admin = context.get_admin_context()

flavor = objects.Flavor(admin, id=1, is_public=True, disabled=False, description=None,
                        projects=[], name="f", flavorid="f", memory_mb=1, vcpus=1, root_gb=0,
                        ephemeral_gb=0, swap=0, rxtx_factor=1.0, vcpu_weight=0, extra_specs={})
uuid = uuidutils.generate_uuid()
instance = objects.Instance(admin, uuid=uuid, project_id="p", user_id="u", flavor=flavor,
                            instance_type_id=flavor.id, old_flavor=None, new_flavor=None,
                            display_name="vm", metadata={}, system_metadata={},
                            security_groups=objects.SecurityGroupList(objects=[]),
                            vm_state="building", task_state="scheduling")
objects.BuildRequest(admin, instance_uuid=uuid, project_id="p", instance=instance,
                     block_device_mappings=objects.BlockDeviceMappingList(objects=[]),
                     tags=objects.TagList(objects=[])).create()
# The request waits for a conductor and a scheduler for 90 s; so that this takes none, its record
# is made older.
late = timeutils.utcnow() - datetime.timedelta(seconds=90)
with api_db.context_manager.writer.using(admin):
    admin.session.query(api_models.BuildRequest).update({"created_at": late, "updated_at": None})
began = timeutils.utcnow()
# As conductor does once a host is chosen.
request = objects.BuildRequest.get_by_instance_uuid(context.get_admin_context(), uuid)
request.get_new_instance(admin).create()
with main_db.context_manager.reader.using(admin):
    row = admin.session.query(main_models.Instance).filter_by(uuid=uuid).one()
    print("nova", version("nova"))
    age = (began - row.created_at.replace(tzinfo=None)).total_seconds()
    print(f"created_at of the row that was inserted just now: {age:.0f} s before the insert")
    print(f"updated_at: {row.updated_at}")
    as_described = 80 < age < 100 and row.updated_at is None
print("as described" if as_described else "changed")
sys.exit(0 if as_described else 1)
PYTHON
timeout 100 venv/bin/python -W ignore try.py 2>err.log
code=$?
[ $code -le 1 ] || { tail -5 err.log; exit 2; }
exit $code

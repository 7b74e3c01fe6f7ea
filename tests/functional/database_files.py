"""A cloud that is nothing but nova.conf and databases in files, for commands in processes of
their own.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.objects.cell_mapping import CellMapping
from oslo_utils.fixture import uuidsentinel as uuids
from sqlalchemy import orm


def write_databases(
    folder: Path, computes: Iterable[str] = (), groups: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """Write the databases of a cloud with one cell; return the options that name them.

    :param computes: names of hosts
    :param groups: name of a server group, without VMs, to its policy
    """
    api, cell = folder / "api.sqlite", folder / "cell1.sqlite"
    mappings = [
        api_models.CellMapping(
            uuid=uuid, name=name, database_connection=f"sqlite:///{cell}", transport_url="fake://"
        )
        for uuid, name in ((CellMapping.CELL0_UUID, "cell0"), (uuids.cell1, "cell1"))
    ]
    rows: list[Any] = []
    for number, (name, policy) in enumerate((groups or {}).items(), 1):
        rows += [
            api_models.InstanceGroup(
                id=number, uuid=getattr(uuids, name), name=name, project_id="p", user_id="u"
            ),
            api_models.InstanceGroupPolicy(group_id=number, policy=policy),
        ]
    _write(api, api_models.BASE.metadata, [*mappings, *rows])
    _write(cell, main_models.BASE.metadata, [row for host in computes for row in _compute(host)])
    return {
        "api_database": {"connection": f"sqlite:///{api}"},
        "database": {"connection": f"sqlite:///{cell}"},
    }


def write_conf(path: Path, *parts: Mapping[str, Mapping[str, str]], text: str = "") -> Path:
    """Write nova.conf: sections of names and values, and text behind them."""
    lines = [
        line
        for sections in parts
        for section, options in sections.items()
        for line in (f"[{section}]", *(f"{name} = {value}" for name, value in options.items()))
    ]
    path.write_text("\n".join([*lines, text, ""]))
    return path


def _compute(host: str) -> list[Any]:
    return [
        main_models.Service(
            uuid=getattr(uuids, f"service {host}"), host=host, binary="nova-compute", topic="c"
        ),
        main_models.ComputeNode(
            uuid=getattr(uuids, f"node {host}"),
            host=host,
            hypervisor_hostname=host,
            hypervisor_type="fake",
            hypervisor_version=1,
            cpu_info="",
            **dict.fromkeys(("vcpus", "memory_mb", "local_gb"), 1),
            **dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used"), 0),
        ),
    ]


def _write(path: Path, metadata: sa.MetaData, rows: list[Any]) -> None:
    engine = sa.create_engine(f"sqlite:///{path}")
    metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all(rows)
        session.commit()
    engine.dispose()

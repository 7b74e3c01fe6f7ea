"""The kind of cloud of the histories, for all fabrics that they are drawn from.

::

              core
     __________|__________
    |      |      |      |
    a      b      c      d      3 hosts each, a1 to d3, for two VMs each
"""

from tests.functional.claims import STAYS_UP
from tests.functional.shared_clouds import CloudKind
from tests.group_histories.fabrics import FABRICS, NODES

#: VCPUs of a host, each for a VM.
VCPUS = 2

# A compute reports its state as it starts, and not again: a history may let it be silent.
_SILENT = {("DEFAULT", "report_interval"): 50000}

LIVES = CloudKind(
    "lives of groups",
    FABRICS["one"].tree,
    options=lambda _folder: STAYS_UP | _SILENT | {("DEFAULT", "allow_resize_to_same_host"): False},
    hosts=NODES,
    attributes={"vcpus": VCPUS},
    is_real=True,
)

#: Fabrics that are drawn. Not bare metal: Nova's fake driver has no nodes that a VM takes whole.
DRAWN = ("one", "one", "islands", "islands", "pods")

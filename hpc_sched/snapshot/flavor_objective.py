"""What the groups of a flavor are placed by."""

from hpc_sched.core import extra_specs
from hpc_sched.core.extra_spec_names import HOPS
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Flavor


def objective_of(cloud: Cloud, flavor: Flavor) -> str:
    """Return the objective of a flavor's groups; hops where the fabric does not matter."""
    specs = extra_specs.read(
        flavor.extra_specs,
        {},
        cloud.description.request_levels,
        nova_options.defaults(cloud.snapshot),
    )
    return HOPS if specs.is_flat else specs.objective

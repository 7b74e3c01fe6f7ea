"""The operator's order of processor types holds, whichever hosts are candidates."""

import nova.conf
import pytest

from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from tests.functional.pods import cpu, hosts_below, names, states_of
from tests.functional.states import run, spec

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.mark.parametrize("with_plain", [True, False], ids=["all are free", "the plain are full"])
def test_a_type_that_the_order_names_with_a_feature_stays_first(group, with_plain):
    CONF.set_override(
        "processor_order", ["Intel Icelake 2x8x2 +avx512f", "Intel Zen 2x8x2"], "hpc_sched"
    )
    group(left=2)
    states = states_of("leaf2", cpu_info=cpu("Icelake", features=("sse4", "avx512f")))
    states += states_of("leaf3", cpu_info=cpu("Zen"))
    if with_plain:
        states += states_of("leaf1", cpu_info=cpu("Icelake", features=("sse4",)))
    kept = run(states, spec(count=2), HPCHomogeneityFilter())
    assert names(kept) == hosts_below("leaf2")

"""Fabrics of equal pods."""

from hpc_sched.sim.cluster.pods import pods


def test_pods_of_leaves_of_hosts_have_numbers_as_wide_as_the_largest():
    """The first pod of two, with two leaves of ten hosts.

    ::

                    core
                  /      \\
              pod1        pod2
             /    \\
       leaf1-1    leaf1-2 ..
       n1-1-01 ..
    """
    topology = pods(2, 2, 10)
    assert len(topology.hosts) == 40
    assert (topology.hosts[0], topology.hosts[9], topology.hosts[39]) == (
        "n1-1-01",
        "n1-1-10",
        "n2-2-10",
    )
    second = topology.switch_index("leaf1-2")
    assert (topology.groups[0] == second).nonzero()[0].tolist() == list(range(10, 20))

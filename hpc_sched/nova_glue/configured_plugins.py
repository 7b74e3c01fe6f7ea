"""The filters and weighers that the nova.conf of this service enables."""

import nova.conf

from hpc_sched.enabled_plugins import EnabledPlugins

CONF = nova.conf.CONF


def enabled() -> EnabledPlugins:
    """Return the enabled filters and weighers. Takes some 5 us."""
    options = CONF.filter_scheduler
    return EnabledPlugins.read(
        options.enabled_filters, options.weight_classes, CONF.hpc_sched.__getitem__
    )

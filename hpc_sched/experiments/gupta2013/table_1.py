"""Gupta2013, section II, Table I: what a host earns whose unused memory is filled."""

from hpc_sched.core.cost import Prices, Usage
from hpc_sched.experiments.experiment_table import Setting, Table, Verdict, percent

# Published prices an hour, EC2 compute units, and GB.
DEDICATED_PRICE, UNITS, NODE_GB = 2.4, 88, 60.5  # of a Cluster Compute instance
SMALL_PRICE, SMALL_UNITS, SMALL_GB = 0.9, 13, 34.2  # of a High-Memory instance
SAVING = 23  # published, percent


def table() -> Table:
    """Return the revenue of a host, dedicated and with its unused memory filled.

    As :mod:`hpc_sched.core.cost` computes it, with a compute unit for a core.
    """
    # The price of a unit: what an instance with fewer units costs is in proportion.
    unit, small_unit = DEDICATED_PRICE / UNITS, SMALL_PRICE / SMALL_UNITS
    prices = Prices({"extreme": unit, "sync": unit, "async": small_unit})
    left, hour = UNITS - SMALL_UNITS, 1.0
    dedicated = Usage({"extreme": UNITS * hour}, hour, UNITS * hour)
    shared = Usage({"sync": left * hour, "async": SMALL_UNITS * hour}, hour, UNITS * hour)
    before, after = dedicated.revenue(prices), shared.revenue(prices)
    more = percent(after / before - 1)
    settings = (
        Setting(
            "Cluster Compute", f"{UNITS} units, {NODE_GB} GB, $ {DEDICATED_PRICE:g}/h", "Table I"
        ),
        Setting(
            "High-Memory", f"{SMALL_UNITS} units, {SMALL_GB} GB, $ {SMALL_PRICE:g}/h", "Table I"
        ),
        Setting("price of fewer units", "in proportion", "II: 2.4/(88/13) less for 13 units"),
    )
    return Table(
        source="Gupta2013, Table I",
        title="revenue of a host an hour, in $, whose unused memory is filled",
        columns=(
            *("numbers", "units of the host", "revenue, dedicated"),
            *("units of the large VM", "units of the small VM", "revenue, shared", "more, %"),
        ),
        rows=(
            ("published", UNITS, DEDICATED_PRICE, None, None, None, SAVING),
            ("computed", UNITS, round(before, 4), left, SMALL_UNITS, round(after, 4), more),
        ),
        settings=settings,
        verdict=Verdict(
            "reproduced" if round(more) == SAVING else "not reproduced",
            f"(2.4 - 2.4 / (88 / 13) + 0.9 - 2.4) / 2.4 = {more:g} %, which the paper rounds. It "
            "is arithmetic on list prices: that the application needs no more memory, and runs "
            "as fast with fewer units, is assumed.",
        ),
    )

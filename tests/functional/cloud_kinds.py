"""The kinds of clouds that several modules share."""

from tests.functional.clouds import four_by_eight
from tests.functional.shared_clouds import CloudKind

#: 32 hosts under 4 leaves, drawn in :func:`tests.functional.clouds.four_by_eight`; the plugin as
#: etc/nova.conf.sample enables it
FOUR_BY_EIGHT = CloudKind("four by eight", {"core": four_by_eight()})

#: No host and no plugin: a test writes its hosts and starts a scheduler on them, see
#: :func:`tests.functional.claims.claims_on`.
EMPTY = CloudKind("empty", None)

#: As EMPTY, with a second cell.
EMPTY_TWO_CELLS = CloudKind("empty, two cells", None, attributes={"NUMBER_OF_CELLS": 2})

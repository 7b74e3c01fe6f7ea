"""Check: the metrics of nova-scheduler, if it is to have any, can be written and served."""

import http.client
import os
import stat
import urllib.error
import urllib.request
from pathlib import Path

from hpc_sched import exceptions
from hpc_sched.metrics import catalogue
from hpc_sched.metrics.address import address_in
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.status.finding import Findings, Verdict, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud

SECONDS = 5.0  # to wait for the endpoint
_EVERYWHERE = ("0.0.0.0", "::")  # nosec B104 - looked for, not bound to
_NONE = "There will be no metrics"


def check(_cloud: InspectedCloud) -> Verdict:
    """Return what keeps nova-scheduler from having metrics. Nothing else depends on it."""
    address = CONF.hpc_sched.metrics_address
    if not address:
        return "[hpc_sched] metrics_address is not set: there are no metrics."
    try:
        from hpc_sched.metrics import endpoint  # noqa: F401 - needs prometheus_client

        host, _ = address_in(address)
    except ImportError:
        yield warning(f"{_NONE}: install prometheus_client (pip install 'hpc-sched[metrics]').")
    except exceptions.ConfigError as error:
        yield warning(f"{_NONE}: [hpc_sched] metrics_address: {error}.")
    else:
        yield from _directory(worker.directory())
        if host in _EVERYWHERE:
            yield warning(
                f"[hpc_sched] metrics_address = {address} is every network of this host, and asks "
                "for no password: bind to localhost or to a network of the operator's own."
            )
        elif (wrong := _wrong_answer(address)) is not None:
            yield warning(f"{_NONE}: {wrong}.")
    return f"nova-scheduler has metrics at http://{address}{catalogue.PATH}."


def _directory(path: Path) -> Findings:
    """Yield what is wrong with the directory; it need not exist yet."""
    try:
        there = next(one for one in (path, *path.parents) if one.exists())
    except OSError as error:
        # Below a folder of Nova's for another user.
        yield warning(
            f"{_NONE} if nova-scheduler's user cannot read {path} either: {error.strerror}."
        )
        return
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield warning(
            f"{_NONE}: {there} cannot be written by this user, which should be that of "
            "nova-scheduler. Make it writable, or name another metrics_directory."
        )
        return
    yield from (
        warning(f"{_NONE}: every user can write {folder}. Change its mode to 750.")
        for folder in (path.parent, path)
        if folder.exists() and folder.stat().st_mode & stat.S_IWOTH
    )


def _wrong_answer(address: str) -> str | None:
    """Return what is wrong with the answer at the address; None without one."""
    url = f"http://{address}{catalogue.PATH}"
    # What Prometheus reads, not what a proxy of this shell's environment answers.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=SECONDS) as answer:
            text = answer.read(1 << 20).decode(errors="replace")
    except ConnectionError:
        return None
    except urllib.error.HTTPError as error:
        if error.headers.get("Server", "").strip() == catalogue.SERVER:
            return f"{url} answers {error.code}, see nova-scheduler's log"
        text = ""
    except http.client.HTTPException:
        text = ""
    except (OSError, ValueError):
        return None  # before the start nothing answers
    another = f"another program answers at {address}. Choose another port in metrics_address"
    return None if catalogue.WORKERS.name in text else another

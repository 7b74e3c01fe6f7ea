"""How the end of a request with gang claims is noticed."""

import subprocess
import sys

from tests.functional.clouds import ROOT

TIMEOUT = 120  # seconds

# A garbage collection at every allocation, with garbage that needs the lock of all threads' states.
COLLECTING = """
import gc, threading
from hpc_sched.nova_glue.request import claim_followup

class Garbage:
    def __init__(self):
        self.cycle = self
        self.own = threading.local()
        self.own.value = 1

gc.set_threshold(1)
for _ in range(1000):
    Garbage()
    claim_followup._frame_of(threading.get_ident())
"""


def test_looking_at_a_thread_cannot_deadlock_the_process():
    """Python before 3.12 does so without precaution: CPython issue 106883."""
    subprocess.run([sys.executable, "-c", COLLECTING], cwd=ROOT, timeout=TIMEOUT, check=True)

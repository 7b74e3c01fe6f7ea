"""Settings of the Sphinx site."""

import sys
from pathlib import Path

import hpc_sched

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "hpc_sched"
author = "the hpc_sched developers"
copyright = author

extensions = [
    "cliff.sphinxext",
    "command_help",
    "metric_tables",
    "openstackdocstheme",
    "oslo_config.sphinxext",
    "release_notes",
    "screens",
]
exclude_patterns = ["_build"]
master_doc = "index"
html_theme = "openstackdocs"
html_static_path = ["_static"]
html_css_files = ["citations.css"]
pygments_style = "native"
nitpicky = True
smartquotes = False  # they would turn the -- of an option into a dash

# The theme would read these from git and OpenStack's forge.
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_use_storyboard = False
version = release = hpc_sched.__version__

autoprogram_cliff_application = "hpc-sched"

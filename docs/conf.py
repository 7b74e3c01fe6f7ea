"""Settings of the Sphinx site."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "hpc_sched"
author = "the hpc_sched developers"
copyright = author

extensions = [
    "cliff.sphinxext",
    "command_help",
    "openstackdocstheme",
    "oslo_config.sphinxext",
    "screens",
]
exclude_patterns = ["_build"]
master_doc = "index"
html_theme = "openstackdocs"
html_static_path = ["_static"]
html_css_files = ["citations.css"]
pygments_style = "native"
nitpicky = True
smartquotes = False  # they make one long dash of the two of an option

# The theme would ask git and OpenStack's forge for these.
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_use_storyboard = False
version = release = "0.1.0"

autoprogram_cliff_application = "hpc-sched"

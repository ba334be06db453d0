"""``python -m pellucid.utils.command_line``, for where the script ``pellucid`` is not on the path."""

from . import main

main(prog_name="pellucid")

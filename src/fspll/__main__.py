"""``python -m fspll`` is the ``fspll`` command."""

from fspll.cli.main import main

main()

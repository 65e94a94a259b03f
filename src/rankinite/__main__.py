"""Run the command: ``python -m rankinite``."""

from rankinite.cli import main

main()

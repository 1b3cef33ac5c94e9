"""`python -m cake.cli`: the same as `cake`."""

from cake.cli import main

main()

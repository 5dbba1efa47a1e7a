"""`python -m aotc`: the command line."""

from __future__ import annotations

from aotc.cli import main

if __name__ == "__main__":
    main()

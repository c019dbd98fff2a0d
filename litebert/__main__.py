"""`python -m litebert` is the `litebert` command."""

from litebert.cli.main import main

if __name__ == "__main__":
    main()

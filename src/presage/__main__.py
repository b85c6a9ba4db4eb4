"""`python -m presage` is the `presage` command."""

from presage.cli import main

if __name__ == "__main__":
    main()

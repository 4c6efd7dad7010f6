"""`python -m npusim` is the command `npusim`."""

from npusim.cli.main import entry

if __name__ == "__main__":
    entry()

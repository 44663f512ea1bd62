"""``python -m ethogram``: the command."""

from ethogram.cli import main

if __name__ == "__main__":
    main()

"""``python -m vinaya_bridge``: the command."""

from vinaya_bridge.cli import main

if __name__ == "__main__":
    main()

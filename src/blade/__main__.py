"""Run the command line as `python -m blade`."""

from blade.cli.main import main

if __name__ == "__main__":
    main()

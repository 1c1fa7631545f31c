"""Where `tracon` and `python -m app` begin."""

from app.cli.group import tracon


def main() -> None:
    """Run the command line; the process ends with its exit status."""
    tracon(prog_name="tracon")


if __name__ == "__main__":
    main()

"""`python -m reflexfix` is the same as `reflexfix`."""

from reflexfix.cli import main

if __name__ == "__main__":
    main()

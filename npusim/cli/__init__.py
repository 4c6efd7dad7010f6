"""The command line: verbs call the api and print what it returns."""

"""The recorder's version, written into every graph file."""

VERSION = "0.1.0"

"""The oracle suite on recordings that are made up."""

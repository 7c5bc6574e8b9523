"""What the documentation's site is made of besides the pages in docs/: pages from the package, and links."""

"""Stands in for the package that OmniSafe imports at its top and that none of our comparisons uses."""

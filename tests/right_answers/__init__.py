"""Right answers written in other ways, by stem: each check must accept them."""

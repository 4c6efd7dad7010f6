"""The model catalogue: one function per model, sizes as keywords, published dimensions preset."""

"""The reader of warp programs: values, masks, counts and checks in one pass."""

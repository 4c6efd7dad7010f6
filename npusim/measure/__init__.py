"""From a timeline and checks to layers, accounting, roofline, bottleneck: the frozen result."""

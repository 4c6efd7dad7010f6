"""Shows results to people; reads nothing but results."""

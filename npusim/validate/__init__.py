"""What is run to find out whether machines and mappings do what they say."""

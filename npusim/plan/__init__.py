"""What a mapping plan says: choices, fusion, residency, fall-backs; and its lowering."""

//! Knows which server offers which tool, and what each tool may do.

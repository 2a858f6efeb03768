//! Filling gaps: what a tool's name and description say about it.

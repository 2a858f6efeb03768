//! Picks the server for a call, by what the tool may do.

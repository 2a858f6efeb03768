//! Scripted servers, contract probes and paused-clock helpers for Tollgate's own tests.

//! Answers repeatable calls without a server, and never with a stale answer.

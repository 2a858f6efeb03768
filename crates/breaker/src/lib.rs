//! Stops sending calls to a server and tool that keep failing.

//! One server, with an instance for each of its owners: a process of its own, or a session of its
//! own.
//!
//! The instance that an [`Upstream`](super::Upstream) itself connects to is the *lead*: it lists
//! the tools, its events are the server's, and it serves calls that all callers share. Further ones
//! are started when a call comes whose owner has none, with the same target and options. The lead
//! serves an owner too, and its connection is closed when that owner's session ends; the upstream
//! itself stays up. The lead is opened again at once if spare instances are kept, else when a call
//! or a listing needs it.
//!
//! **Isolation.** An instance serves one owner at a time. It goes to another one only if that is
//! the next session of the same principal, and only if it is clean: it has run nothing but reads
//! that are declared to be reads, of a server whose tools do not look stateful. An instance that
//! has run a write is never taken from its owner: at the limit, a call fails.

mod entry;
mod events;
mod pool;
mod repeats;
mod table;

pub(super) use self::events::Heard;
pub(super) use self::pool::Pool;

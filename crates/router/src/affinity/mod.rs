//! Keeps calls together: those of one session, of one user, or about one argument.
//!
//! **Key.** [`AffinityKey`] says what calls are kept together by. A call without a key goes where
//! another strategy says. The principal is part of a session. An argument is a key by its value:
//! `7` and `7.0` are one, `"7"` is another; more than 4 KiB makes no key.
//!
//! **First call.** The server is the highest of a ranking by rendezvous hashing, among all
//! candidates, each as often as its weight says. The ranking is the same in every process. The
//! choice is remembered.
//!
//! **What moves.** Servers that join, and weights that change, move no key that is in use. A server
//! that is removed, drained or unreachable loses its keys, each at its next call, to the next
//! server of the key's ranking; they stay there when it comes back. Any other reason against a
//! server, such as an open breaker, moves only the call at hand: a detour to the next of the
//! ranking.
//!
//! **Bounds.** A key is forgotten after [`ttl`](AffinityConfig::ttl) without a call. At most
//! 100,000 are remembered.
//!
//! Each change is a [`RouteEvent`](crate::RouteEvent), with a digest that does not reveal the key.
//! The ranking is public, so callers who choose their own keys can choose a server by them.

mod argument;
mod config;
mod key;
pub(crate) mod rendezvous;
mod table;

pub use config::{AffinityConfig, AffinityKey};
pub use key::KeyDigest;
pub use table::ExpiryCause;

pub(crate) use key::{Key, Keys};
pub(crate) use table::{Entry, Table};

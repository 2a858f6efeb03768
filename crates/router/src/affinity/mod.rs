//! Keeps calls together: those of one session, of one user, or about one thing go to one server.
//!
//! A server that had the calls of a session before has what they need at hand: a browser that is open,
//! a repository that is cloned, rows in memory. Nothing breaks where a call goes elsewhere, so affinity
//! is a preference among servers that may get the call: the annotation rule comes before it, and no
//! affinity takes a destructive call to a server that is too light for it.
//!
//! **Key.** [`AffinityKey`] says what calls are kept together by. A call without a key (no session, no
//! such argument, `null`, or an argument that readers may disagree about) goes where another strategy
//! says. The principal is part of a session, so sessions of two users are never taken for one. An
//! argument is a key by its value, and for all users and tools alike: `7` and `7.0` are one, `"7"` is
//! another; an array or object is one as a whole, with its members in any order; more than 4 KiB is no
//! key.
//!
//! **First call.** The server is the highest of a ranking by rendezvous hashing, among all that fit the
//! call, each as often as its weight says. The ranking is the same in every process, so gateways beside
//! each other, or one after a restart, choose alike without a word. It costs a look at every server;
//! the choice is remembered then, and a later call costs one look-up however many servers there are.
//! By argument, the arguments are read for each call, which takes as long as they are.
//!
//! **What moves.** Only what must:
//!
//! - Servers that join, and weights that change, move no key that is in use. New keys find them.
//! - A server that is removed, drained, ejected or unreachable loses its keys, each when it is used
//!   next, to the next server of the key's ranking: they spread over all others by weight. They stay
//!   there when the server comes back. To bring them home would move them a second time, all at once,
//!   onto a server that has just recovered; it gets new keys instead, at the pace they come.
//! - Whatever speaks against a server for *this* call leaves the key where it is, and this call makes a
//!   detour to the next of the ranking: a server too light for it, without the tool, beyond the budget,
//!   one that failed or refused this very call, or one with an open breaker, which may be of one tool
//!   alone and is closed soon. Detours are remembered for each key and tool, so one costs two look-ups,
//!   and always leads to the same server as long as that one fits.
//!
//! **How long.** Until a key had no call for [`ttl`](AffinityConfig::ttl). At most
//! [`max_keys`](AffinityConfig::max_keys) are remembered, and at most as many detours.
//!
//! **Told of.** [`AffinityObserver`] is told when a key gets a server and when it loses it, with a
//! digest of the key that leads back to nobody.
//!
//! **Not for secrets, nor against ill will.** The ranking is known to everybody, so whoever chooses his
//! own keys can choose a server by them, and send it more than its share. Limits are what stops him.

mod argument;
mod config;
mod key;
mod observer;
pub(crate) mod rendezvous;
mod table;

pub use config::{AffinityConfig, AffinityKey, InvalidAffinityKey, WithoutSession};
pub use key::{KeyDigest, KeyKind};
pub use observer::{AffinityExpired, AffinityObserver, AffinitySet, ExpiryCause};

pub(crate) use key::{Key, Keys};
pub(crate) use table::{Entry, Found, Table};

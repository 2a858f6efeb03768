//! Never twice: no call that may have had an effect is sent again unless its tool is safe to
//! repeat.
//!
//! [`fates`] lets servers say anything, in small scripts that shrink. [`chaos`] counts what servers
//! that fail at every point executed, and compares what each caller got with it:
//! `NEVER_TWICE_CALLS=1000000 cargo test --release --test never_twice` makes this many calls.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod chaos;
mod fates;
mod round;

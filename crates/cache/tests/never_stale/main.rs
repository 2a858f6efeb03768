//! A client behind the cache cannot tell it is there: random clients against a simulated server.
//!
//! Clients of three principals read, set and copy (idempotent), bump and move (mutating) and
//! wipe (destructive) the keys of a server with two replica sets. Each call takes its effect and is
//! answered when the script says so, in any order; some fail, the answers of some are lost and what
//! they asked lands late; clients go away or lose their patience; time passes; entries expire and
//! are evicted; something changes behind the cache's back and is purged, in each of six ways. The
//! setting is random, too: whose results are shared, how scopes are named (by templates over
//! arguments, by tags, by each value), for which tools they are, and how much room there is. The
//! server knows which keys each call touches; what is said of scopes is true of it. Then:
//!
//! - a read answers what was so at one moment between its beginning and end, for whoever asks;
//!   if a write that was lost or answered with an error lands after it has settled, or what was so
//!   at most a burst window before;
//! - a write that was answered well ran, or would have changed nothing when it was asked for;
//! - no call is sent twice, nobody is told another's error, left waiting, or held beyond a deadline;
//! - each call is counted once, as what it was.
//!
//! The test finds broken rules. Checked by breaking them one at a time; each of these fails within
//! the 10,000 cases: no epoch raised by writes; a write in flight not making a scope unquiet; no
//! settling after an unknown outcome; an idempotent write kept though an earlier one might still land; a dropped write taken for one whose outcome is known; an
//! idempotent write kept although another one overlapped; flights without the epochs in their key;
//! one key for two principals; a restricted result shared; a template ignored, in reads or in
//! writes; a write of which nothing is said not touching what has rules; a write with a rule not
//! touching what has none; another set's name taken for one's own; spellings of one value told
//! apart; the purge of everything, of a set, a tool, a tag, a scope or a principal raising nothing;
//! errors kept; a deadline ignored by who waits for another's answer; joins or bypasses not counted.
//!
//! It does not tell whether the epoch is raised twice or once: either raise suffices while nothing is
//! looked up beside a write; the tests in `src/scope` do. Nor does it find a purge of everything that
//! clears the store and lets running reads bring back what they read; `tests/behaviour` does. Evicted
//! entries that return to the store, and revalidation, have tests of their own.
//!
//! `NEVER_STALE_CASES` says how many scripts are tried, 10,000 if it is not set. A script that fails
//! is made shorter, and told line by line.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

mod play;
mod script;
mod world;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::play::Play;
use crate::script::script;

#[test]
fn a_client_cannot_tell_the_cache_is_there() {
    let cases = std::env::var("NEVER_STALE_CASES").map_or(10_000, |cases| cases.parse().unwrap());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let run = TestRunner::new(config).run(&script(), |script| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(Play::new(script.setting).play(script))
    });
    match run {
        Ok(()) => {}
        Err(proptest::test_runner::TestError::Fail(why, _)) => panic!("{}", why.message()),
        Err(error) => panic!("{error}"),
    }
}

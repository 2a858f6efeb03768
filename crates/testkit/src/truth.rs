//! Whether what a caller was told is what happened, by what the servers executed.

use std::collections::BTreeMap;

use callward_chaos::Count;
use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};

/// What a caller gets; nothing, if it did not wait.
pub type Told = Option<Result<ToolOutput, ToolError>>;

/// What a call is like, whoever says so: decided by the test, and not read from a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests match on all of them")]
pub enum Sort {
    /// Must not be executed twice.
    Unsafe,
    /// May be executed again, and is told apart from others by its identity.
    Repeatable,
    /// The same question as that of others, so the cache may answer.
    Shared,
}

/// How many unsafe calls were told what, and how often servers executed them.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// By what they were told.
    pub told: BTreeMap<&'static str, u64>,
    /// Unsafe calls.
    pub unsafe_calls: u64,
    /// Executions of unsafe calls.
    pub unsafe_executions: u64,
}

impl Tally {
    /// Adds what others were told.
    pub fn add(&mut self, other: &Self) {
        for (word, count) in &other.told {
            *self.told.entry(word).or_default() += count;
        }
        self.unsafe_calls += other.unsafe_calls;
        self.unsafe_executions += other.unsafe_executions;
    }
}

/// Judges one call, when everything that could still happen has happened, and counts it if it is
/// unsafe.
///
/// `sees_all` says that the servers count each request they see a part of, as those in memory do.
/// On a socket a request that is cut short is nobody's, so there only executions tell.
///
/// # Errors
///
/// What is wrong, with what was told and what was counted.
pub fn judge(
    sort: Sort,
    told: &Told,
    count: Count,
    sees_all: bool,
    tally: &mut Tally,
) -> Result<(), String> {
    if sort == Sort::Shared {
        // executed for others too, so its executions say nothing
        return Ok(());
    }
    let fail = |what: &str| Err(format!("{what}: {count:?}, told {told:?}"));
    if sort == Sort::Unsafe {
        tally.unsafe_calls += 1;
        tally.unsafe_executions += count.executions;
        *tally.told.entry(word(told)).or_default() += 1;
        if count.executions > 1 {
            return fail("an unsafe call was executed twice");
        }
        if sees_all && count.seen > 1 {
            return fail("an unsafe call that a server may have seen was sent again");
        }
    }
    if let Some(Err(error)) = told
        && error.kind() == ErrorKind::OutcomeUnknown
        && error.delivery() != Delivery::Unknown
    {
        return fail("told that nobody knows, and yet how far it got");
    }
    match told {
        // it did not wait to be told
        None => Ok(()),
        // the tool's own failure is the tool's own word for what happened
        Some(Ok(output)) if output.is_error() => Ok(()),
        Some(Ok(_)) if count.executions == 0 => fail("told as done, and nothing was"),
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => match error.delivery() {
            Delivery::NotSent if count.executions > 0 => {
                fail("told as not sent, and it was executed")
            }
            Delivery::NotSent if sees_all && count.seen > 0 => {
                fail("told as not sent, and a server saw it")
            }
            // an answered fault is no promise, by its own documentation
            Delivery::NotSent | Delivery::Answered => Ok(()),
            Delivery::Unknown
                if error.kind() == ErrorKind::OutcomeUnknown && error.outcome().is_none() =>
            {
                fail("told that nobody knows, and not what is known")
            }
            Delivery::Unknown if sees_all && count.seen == 0 => {
                fail("told as perhaps sent, and no server was ever asked")
            }
            Delivery::Unknown
                if sort == Sort::Unsafe && error.kind() != ErrorKind::OutcomeUnknown =>
            {
                fail("the outcome is unknown, and the caller is not told so")
            }
            Delivery::Unknown => Ok(()),
        },
    }
}

fn word(told: &Told) -> &'static str {
    match told {
        None => "gone",
        Some(Ok(output)) if output.is_error() => "is_error",
        Some(Ok(_)) => "done",
        Some(Err(error)) => error.delivery().as_str(),
    }
}

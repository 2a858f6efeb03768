//! Whether what a caller got is what happened, by what the servers executed.

use std::collections::BTreeMap;

use callward_chaos::Count;
use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};

/// What a caller gets; nothing, if it did not wait.
pub type CallerReply = Option<Result<ToolOutput, ToolError>>;

/// What a call is like: decided by the test, and not read from a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Must not be executed twice.
    Unsafe,
    /// May be executed again, and is distinguished from others by its identity.
    Repeatable,
    /// The same question as that of others, so the cache may answer.
    Shared,
}

/// How many unsafe calls got which answer, and how often servers executed them.
#[derive(Debug, Default)]
pub struct Tally {
    /// By what they got.
    pub replies: BTreeMap<&'static str, u64>,
    /// Unsafe calls.
    pub unsafe_calls: u64,
    /// Executions of unsafe calls.
    pub unsafe_executions: u64,
}

impl Tally {
    /// Adds what others got.
    pub fn add(&mut self, other: &Self) {
        for (word, count) in &other.replies {
            *self.replies.entry(word).or_default() += count;
        }
        self.unsafe_calls += other.unsafe_calls;
        self.unsafe_executions += other.unsafe_executions;
    }
}

/// Judges one call, when everything that could still happen has happened, and counts it if it is
/// unsafe.
///
/// `sees_all` says that the servers count each request they see a part of, as those in memory do.
/// On a socket a truncated request has no sender, so only executions count there.
///
/// # Errors
///
/// What is wrong, with what was reported and what was counted.
pub fn judge(
    sort: Sort,
    reply: &CallerReply,
    count: Count,
    sees_all: bool,
    tally: &mut Tally,
) -> Result<(), String> {
    if sort == Sort::Shared {
        // executed for others too, so its executions say nothing
        return Ok(());
    }
    let fail = |what: &str| Err(format!("{what}: {count:?}, reply {reply:?}"));
    if sort == Sort::Unsafe {
        tally.unsafe_calls += 1;
        tally.unsafe_executions += count.executions;
        *tally.replies.entry(word(reply)).or_default() += 1;
        if count.executions > 1 {
            return fail("an unsafe call was executed twice");
        }
        if sees_all && count.seen > 1 {
            return fail("an unsafe call that a server may have seen was sent again");
        }
    }
    if let Some(Err(error)) = reply
        && error.kind == ErrorKind::OutcomeUnknown
        && error.delivery != Delivery::Unknown
    {
        return fail("an unknown outcome with a delivery");
    }
    match reply {
        // the caller did not wait for it
        None => Ok(()),
        // the tool's own failure is the tool's own word for what happened
        Some(Ok(output)) if output.is_error() => Ok(()),
        Some(Ok(_)) if count.executions == 0 => fail("reported as done, and nothing ran"),
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => match error.delivery {
            Delivery::NotSent if count.executions > 0 => {
                fail("reported as not sent, and it was executed")
            }
            Delivery::NotSent if sees_all && count.seen > 0 => {
                fail("reported as not sent, and a server saw it")
            }
            // an answered fault is not a promise, by its own documentation
            Delivery::NotSent | Delivery::Answered => Ok(()),
            Delivery::Unknown
                if error.kind == ErrorKind::OutcomeUnknown && error.outcome.is_none() =>
            {
                fail("an unknown outcome without what is known")
            }
            Delivery::Unknown if sees_all && count.seen == 0 => {
                fail("reported as perhaps sent, and no server was ever asked")
            }
            Delivery::Unknown
                if sort == Sort::Unsafe && error.kind != ErrorKind::OutcomeUnknown =>
            {
                fail("the outcome is unknown, and the error does not state it")
            }
            Delivery::Unknown => Ok(()),
        },
    }
}

fn word(reply: &CallerReply) -> &'static str {
    match reply {
        None => "gone",
        Some(Ok(output)) if output.is_error() => "is_error",
        Some(Ok(_)) => "done",
        Some(Err(error)) => error.delivery.as_str(),
    }
}

//! What a call carries across processes: its trace, its baggage, the request it came as and the
//! requests it is sent as.

mod baggage;
mod client_info;
mod inbound;
mod outbound;
mod state;

use std::fmt;

use crate::InvalidValue;

pub use self::baggage::{Baggage, BaggageFilter};
pub use self::client_info::ClientInfo;
pub use self::inbound::{Inbound, RequestName, Transport};
pub use self::outbound::{Outbound, SendWatch, Watch};

/// W3C trace context, checked: the trace a call belongs to, and the span it comes from.
///
/// `traceparent` is read strictly, as [W3C Trace Context](https://www.w3.org/TR/trace-context-2/)
/// says: hexadecimal digits in lower case, neither id all zeros, and no version `ff`. Of a version
/// later than `00`, what `00` has is read and the rest is left out. A `tracestate` that cannot be
/// read is left out and costs nothing else; one of more than 512 bytes is cut by whole members,
/// those of more than 128 bytes first.
///
/// ```
/// use callward_core::TraceContext;
///
/// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context = TraceContext::parse(parent, Some("vendor=opaque"))?;
/// assert!(context.is_sampled());
/// assert_eq!(context.parent_id(), 0x00f0_67aa_0ba9_02b7);
/// assert_eq!(context.to_string(), parent);
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    parent_id: u64,
    flags: u8,
    state: Option<Box<str>>,
}

impl TraceContext {
    /// The flag that says that the sender records the trace.
    pub(crate) const SAMPLED: u8 = 1;

    /// Creates a context without `tracestate`; `None` if one of the ids is 0, which is invalid.
    /// Flags that are not known are left out.
    pub fn new(trace_id: u128, parent_id: u64, flags: u8) -> Option<Self> {
        (trace_id != 0 && parent_id != 0).then_some(Self {
            trace_id,
            parent_id,
            flags: flags & KNOWN_FLAGS,
            state: None,
        })
    }

    /// Reads the two header values.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if `traceparent` breaks the format. It says which rule.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Result<Self, InvalidValue> {
        let context = parse(traceparent.as_bytes()).map_err(|reason| {
            // the text comes from a client and may be long
            let text: String = traceparent.chars().take(MAX_SHOWN).collect();
            InvalidValue::new(format!("traceparent {text:?} {reason}"))
        })?;
        Ok(context.with_state(tracestate))
    }

    /// Adds a `tracestate`, cut to its limit; none if it cannot be read.
    pub fn with_state(mut self, tracestate: Option<&str>) -> Self {
        self.state = tracestate.and_then(state::read);
        self
    }

    /// Returns the id of the trace, which is never 0.
    pub const fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the span that the call comes from, which is never 0.
    pub const fn parent_id(&self) -> u64 {
        self.parent_id
    }

    /// Returns `true` if the sender records the trace.
    pub const fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    /// Returns the flags that are known: whether the trace is recorded, and whether its id is
    /// random.
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// Returns `tracestate`, as it is passed on.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns `traceparent` as it is passed on where the call is not recorded here.
    pub fn unsampled(&self) -> impl fmt::Display {
        self.traceparent(self.flags & !Self::SAMPLED)
    }

    fn traceparent(&self, flags: u8) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let Self {
                trace_id,
                parent_id,
                ..
            } = self;
            write!(f, "00-{trace_id:032x}-{parent_id:016x}-{flags:02x}")
        })
    }
}

/// Writes `traceparent`, version `00`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.traceparent(self.flags).fmt(f)
    }
}

/// Recorded; and, since level 2 of the specification, that the trace id is random.
const KNOWN_FLAGS: u8 = TraceContext::SAMPLED | 2;
/// How much of a text that is wrong is shown.
const MAX_SHOWN: usize = 64;
/// How long version `00` is.
const LEN: usize = 55;

fn parse(text: &[u8]) -> Result<TraceContext, &'static str> {
    let Some((fields, rest)) = text.split_at_checked(LEN) else {
        return Err("is too short: it has 55 characters");
    };
    let mut fields = fields.split(|byte| *byte == b'-');
    let mut next = |digits: usize| {
        let field = fields.next().filter(|field| field.len() == digits);
        field.and_then(hexadecimal)
    };
    let parts = (next(2), next(32), next(16), next(2));
    let (Some(version), Some(trace_id), Some(parent_id), Some(flags)) = parts else {
        return Err("is not of the form 00-<32 digits>-<16 digits>-<2 digits>, in lower case");
    };
    match (version, rest.first()) {
        (0xff, _) => return Err("has version ff, which is invalid"),
        (0, Some(_)) => return Err("is too long: it has 55 characters"),
        (0, None) | (_, None | Some(b'-')) => {}
        (_, Some(_)) => return Err("has something other than `-` behind its flags"),
    }
    // both fit: the number of digits was checked
    let parent_id = u64::try_from(parent_id).unwrap_or_default();
    let flags = u8::try_from(flags).unwrap_or_default();
    TraceContext::new(trace_id, parent_id, flags).ok_or("has an id of zeros, which names nothing")
}

fn hexadecimal(digits: &[u8]) -> Option<u128> {
    let fits = digits
        .iter()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    u128::from_str_radix(std::str::from_utf8(digits).ok()?, 16)
        .ok()
        .filter(|_| fits)
}

#[cfg(test)]
mod tests;

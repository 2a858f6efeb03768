//! Looking at several scopes at once.

use smallvec::SmallVec;

use super::{Moment, Scope, ScopeRef};
use crate::reason::BypassReason;

/// The epochs of the scopes a call watches, in their order.
pub(crate) type Epochs = SmallVec<[u64; FEW]>;

/// More scopes than this are few calls' affair.
const FEW: usize = 4;

/// Why nothing may be looked up now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unquiet {
    /// A write is in flight.
    Writing,
    /// A write that has ended may still land.
    Settling,
}

impl From<Unquiet> for BypassReason {
    fn from(unquiet: Unquiet) -> Self {
        match unquiet {
            Unquiet::Writing => Self::Writing,
            Unquiet::Settling => Self::Settling,
        }
    }
}

/// Returns the epochs of all these scopes, of a moment at which nothing was being written in any.
///
/// # Errors
///
/// [`Unquiet`] if there was no such moment.
#[inline]
pub(crate) fn epochs(watched: &[ScopeRef], now: Moment) -> Result<Epochs, Unquiet> {
    if let [first, second] = watched {
        // what a read watches of which nothing is said, its tool's own scope and its set's
        return pair([first.scope(), second.scope()], now);
    }
    many(watched, now)
}

#[inline(never)]
fn many(watched: &[ScopeRef], now: Moment) -> Result<Epochs, Unquiet> {
    let epochs = look(watched);
    for scope in watched {
        if let Some(unquiet) = scope.scope().unquiet(now) {
            return Err(unquiet);
        }
    }
    if are_current(watched, &epochs) {
        Ok(epochs)
    } else {
        Err(Unquiet::Writing)
    }
}

#[inline]
fn pair(watched: [&Scope; 2], now: Moment) -> Result<Epochs, Unquiet> {
    let epochs = watched.map(Scope::epoch);
    if let Some(unquiet) = watched.iter().find_map(|scope| scope.unquiet(now)) {
        return Err(unquiet);
    }
    if watched.map(Scope::epoch) != epochs {
        return Err(Unquiet::Writing);
    }
    let [own, set] = epochs;
    Ok(Epochs::from_buf_and_len([own, set, 0, 0], 2))
}

fn look(watched: &[ScopeRef]) -> Epochs {
    let mut few = [0; FEW];
    if watched.len() > FEW {
        return watched.iter().map(|of| of.scope().epoch()).collect();
    }
    for (place, of) in few.iter_mut().zip(watched) {
        *place = of.scope().epoch();
    }
    Epochs::from_buf_and_len(few, watched.len())
}

/// Says whether these are still the epochs of these scopes.
pub(crate) fn are_current(watched: &[ScopeRef], epochs: &[u64]) -> bool {
    watched
        .iter()
        .zip(epochs)
        .all(|(of, epoch)| of.scope().epoch() == *epoch)
}

/// Says whether a write to one of these scopes might still land, though it is not waited for any more.
pub(crate) fn are_doubtful(watched: &[ScopeRef], now: Moment) -> bool {
    watched.iter().any(|of| of.scope().is_doubtful(now))
}

//! The epochs of several scopes at one moment.

use smallvec::SmallVec;

use super::{Moment, ScopeSet};
use crate::reason::BypassReason;

/// The epochs of a scope set, in its order.
pub(crate) type Epochs = SmallVec<[u64; 4]>;

/// Returns the epochs of all these scopes at a moment at which none was being written.
///
/// # Errors
///
/// Why not, if there was no such moment.
pub(crate) fn epochs(scopes: &ScopeSet, now: Moment) -> Result<Epochs, BypassReason> {
    let epochs: Epochs = scopes.iter().map(|scope| scope.epoch()).collect();
    if let Some(conflict) = scopes.iter().find_map(|scope| scope.conflict(now)) {
        return Err(conflict);
    }
    if are_current(scopes, &epochs) {
        Ok(epochs)
    } else {
        Err(BypassReason::Writing)
    }
}

/// Returns `true` if these are still the epochs of these scopes.
pub(crate) fn are_current(scopes: &ScopeSet, epochs: &[u64]) -> bool {
    let mut both = scopes.iter().zip(epochs);
    both.all(|(scope, epoch)| scope.epoch() == *epoch)
}

/// Returns `true` if a write to one of these scopes might still land, though reads wait for it no
/// longer.
pub(crate) fn are_doubtful(scopes: &ScopeSet, now: Moment) -> bool {
    scopes.iter().any(|scope| scope.is_doubtful(now))
}

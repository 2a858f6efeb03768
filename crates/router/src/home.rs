//! Where an owner's calls go: to one server of the set, which keeps the owner's state.

use callward_core::{FingerprintKey, Owner, ToolCall, Weight};

use crate::affinity::rendezvous::{fold, highest};
use crate::set::ReplicaSet;

/// Returns the place of the only server that a call may go to because its owner's state is there; `None`
/// where all callers share what servers keep, and where there is no choice.
///
/// Each server ranks by the owner's names alone, so the place is the same for all calls of an owner, in
/// every process, until the server is drained or leaves. Servers that may take any call come first: what
/// a light one may not take could go nowhere else.
pub(crate) fn home<S>(set: &ReplicaSet<S>, call: &ToolCall) -> Option<usize> {
    let endpoints = set.endpoints();
    if endpoints.len() < 2 {
        return None;
    }
    let key = digest(call.owner()?);
    let least = |weight: u32| {
        let candidates = set.candidates().iter().copied().enumerate();
        highest(key, candidates, |place| {
            endpoints.get(place).is_some_and(|endpoint| {
                endpoint.weight().get() >= weight && !endpoint.is_draining()
            })
        })
    };
    [Weight::PRIMARY.get(), 1, 0].into_iter().find_map(least)
}

fn digest(owner: Owner<'_>) -> u64 {
    let key = FingerprintKey::fixed();
    let word = |text: &str| key.bytes(text.as_bytes()).as_u128();
    let session = owner.session.map(|session| word(session.as_str()));
    let words = [
        word(owner.principal.as_str()),
        u128::from(session.is_some()),
        session.unwrap_or_default(),
    ];
    fold(key.combine(&words).as_u128())
}

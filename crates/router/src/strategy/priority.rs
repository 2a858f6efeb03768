//! The heaviest, and the next where that one cannot.

use super::Strategy;
use crate::eligible::Eligible;

/// The heaviest server that fits gets every call; of equals, the one that was named first.
///
/// For a main server with spares: a spare sees calls only while all before it are unfit.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Priority;

impl Strategy for Priority {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        let (index, _) = among.fit().next()?;
        Some(index)
    }
}

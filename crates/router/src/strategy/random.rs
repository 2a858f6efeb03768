//! Any, by weight.

use super::{Strategy, any};
use crate::eligible::Eligible;

/// Any server, each as often as its weight says.
///
/// It remembers nothing and counts nothing, so many routers that know nothing of each other spread
/// their calls as evenly as one.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to set")]
pub struct Random;

impl Strategy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn next(&self, among: &Eligible<'_>) -> Option<usize> {
        for _ in 0..DRAWS {
            let index = among.draw()?;
            if among.fits(index) {
                return Some(index);
            }
        }
        any::by_weight(among, |index| among.fits(index))
    }
}

/// So often is drawn before all servers are looked at.
const DRAWS: usize = 8;

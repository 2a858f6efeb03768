//! Stands in for governor's tokens without the feature `rate`: no rate is limited.

use std::convert::Infallible;
use std::time::Duration;

/// There are none: [`Tokens::new`] makes no bucket.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) period: Duration,
    pub(crate) refill: Duration,
    none: Infallible,
}

impl Tokens {
    pub(crate) const fn new(_: f64, _: Duration) -> Option<Self> {
        None
    }

    pub(crate) const fn take(&self) -> Result<(), Duration> {
        match self.none {}
    }
}

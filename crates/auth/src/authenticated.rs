//! Who a credential stands for: known at once, or only after someone is asked.

use std::fmt;
use std::sync::Arc;

use callward_core::{BoxFuture, Caller};

use crate::Refusal;

/// The result of checking a credential.
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "there is no third case")]
pub enum Authenticated {
    /// It is known already.
    Now(Result<Arc<Caller>, Refusal>),
    /// An issuer is asked. The future must be polled in a tokio runtime.
    Later(BoxFuture<'static, Result<Arc<Caller>, Refusal>>),
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(result) => f.debug_tuple("Now").field(result).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

//! The share of one attempt, which ends it only for a retry that is paid for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callward_core::{CallClient, TimeShare};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::budget::{Hold, TokenBucket};
use crate::deadline::{Outlook, ends_in_time};

/// What one attempt has of the time to the call's deadline.
///
/// At its end, the retry takes its token before the attempt is ended: without a token, the attempt
/// goes on. A token that is not used is returned.
#[derive(Debug)]
pub(crate) struct PaidShare {
    /// Known when the attempt begins: a wait before it may end early.
    time: OnceLock<Duration>,
    outlook: Outlook,
    deadline: Instant,
    bucket: Arc<TokenBucket>,
    client: Option<CallClient>,
    pub(crate) hold: Mutex<Option<Hold>>,
    has_ended: AtomicBool,
}

impl PaidShare {
    /// `None` if the attempt gets all the time that is left.
    pub(crate) fn new(
        outlook: Outlook,
        deadline: Instant,
        bucket: Arc<TokenBucket>,
        client: Option<CallClient>,
    ) -> Option<Self> {
        outlook.share()?;
        Some(Self {
            time: OnceLock::new(),
            outlook,
            deadline,
            bucket,
            client,
            hold: Mutex::new(None),
            has_ended: AtomicBool::new(false),
        })
    }
}

impl TimeShare for PaidShare {
    fn time(&self) -> Duration {
        *self.time.get_or_init(|| {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let outlook = Outlook {
                left,
                ..self.outlook
            };
            outlook.share().unwrap_or(left)
        })
    }

    fn end(&self, left: Duration) -> bool {
        // such a call is not retried
        if self.client.as_ref().is_some_and(CallClient::was_asked) {
            return false;
        }
        // a queue may have used up the time that a retry needs
        if !ends_in_time(left, self.outlook.pause, self.outlook.usual) {
            return false;
        }
        let mut hold = self.hold.lock();
        // a hedged attempt ends with its hedge, for one retry
        if hold.is_none() {
            *hold = Hold::take(self.bucket.clone());
        }
        self.has_ended.fetch_or(hold.is_some(), Ordering::Relaxed);
        hold.is_some()
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

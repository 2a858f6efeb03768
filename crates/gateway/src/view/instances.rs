//! The instances of a server, as `callward servers` shows them.

use callward::core::InstanceStatus;
use serde::{Deserialize, Serialize};

/// A session is told by so many characters of its id: enough to tell it from others, and too few to use.
const SHOWN_SESSION: usize = 8;

/// One instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InstanceView {
    /// Whose it is: a principal, with the beginning of its session's id behind a slash if it belongs to
    /// a session; nobody's has none.
    pub(crate) owner: Option<String>,
    /// `listing`, `spare`, `starting`, `up`, `down` or `ending`.
    pub(crate) state: String,
    /// How long ago it was started.
    pub(crate) age_ms: f64,
    /// How long it took until it could be called first.
    pub(crate) startup_ms: Option<f64>,
    /// Calls it was given.
    pub(crate) calls: u64,
    /// Those that have not ended.
    pub(crate) in_flight: usize,
    /// Memory of its processes, in bytes.
    pub(crate) memory: Option<u64>,
}

impl InstanceView {
    pub(crate) fn of(status: &InstanceStatus) -> Self {
        let owner = status
            .principal
            .as_ref()
            .map(|principal| match &status.session {
                Some(session) => {
                    let shown: String = session.as_str().chars().take(SHOWN_SESSION).collect();
                    format!("{principal}/{shown}")
                }
                None => principal.to_string(),
            });
        Self {
            owner,
            state: status.state.to_owned(),
            age_ms: status.age.as_secs_f64() * 1e3,
            startup_ms: status.startup.map(|time| time.as_secs_f64() * 1e3),
            calls: status.calls,
            in_flight: status.in_flight,
            memory: status.memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callward::{Principal, SessionId};

    use super::*;

    #[test]
    fn a_session_is_told_by_its_beginning_only() {
        let mut status = InstanceStatus::new("up", Duration::from_secs(1));
        assert_eq!(InstanceView::of(&status).owner, None);
        status.principal = Some(Principal::new("ada"));
        assert_eq!(InstanceView::of(&status).owner.as_deref(), Some("ada"));
        status.session = Some(SessionId::new("0123456789abcdef"));
        let owner = InstanceView::of(&status).owner;
        assert_eq!(owner.as_deref(), Some("ada/01234567"));
    }
}

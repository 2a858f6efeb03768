//! Progress of a running call, for the client that requested it.

use std::sync::Arc;

use bytes::Bytes;
use callward_core::{ProgressSink, readable};

use super::answer::Answer;
use super::client::Outlet;
use crate::wire::{meta, object};

/// Forwards progress under the client's own token, until the call ends.
///
/// Reports are dropped when the client reads too slowly: progress is a courtesy, and the connection
/// the reports come from must not wait for it.
#[derive(Debug)]
pub(super) struct Relay {
    /// The client's token, raw.
    token: Bytes,
    outlet: Arc<Outlet>,
}

impl Relay {
    pub(super) const fn new(token: Bytes, outlet: Arc<Outlet>) -> Self {
        Self { token, outlet }
    }
}

impl ProgressSink for Relay {
    fn report(&self, params: &[u8]) {
        // a report that is not an object has nothing to pass on
        if readable::check(params).is_err() {
            return;
        }
        let Ok(params) = object::set_member(params, meta::PROGRESS_TOKEN, &self.token) else {
            return;
        };
        let report = Answer::notification(
            "notifications/progress",
            Some(&readable::without_lone_surrogates(params)),
        );
        self.outlet.try_send(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_s_token_replaces_the_server_s_and_nothing_follows_the_end() {
        let (out, mut seen) = tokio::sync::mpsc::channel(4);
        let outlet = Outlet::new(out, None);
        let relay = Relay::new(Bytes::from_static(b"\"mine\""), outlet.clone());
        relay.report(br#"{"progressToken":7,"progress":0.50,"x":[1]}"#);
        relay.report(b"not an object");
        relay.report(br#"{"progress":1e400}"#);
        outlet.close();
        relay.report(br#"{"progressToken":7,"progress":1}"#);
        let report = seen.try_recv().unwrap().into_pieces().concat();
        assert_eq!(
            std::str::from_utf8(&report).unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":0.50,"x":[1]}}"#
        );
        assert!(seen.try_recv().is_err());
    }
}

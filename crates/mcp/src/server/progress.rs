//! Progress of a running call, for the client that requested it.

use bytes::Bytes;
use callward_core::{ProgressSink, readable};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::answer::Answer;
use crate::wire::{meta, object};

/// Forwards progress under the client's own token, until the call ends.
///
/// Reports are dropped when the client reads too slowly: progress is a courtesy, and the connection
/// the reports come from must not wait for it.
#[derive(Debug)]
pub(super) struct Relay {
    /// The client's token, raw.
    token: Bytes,
    /// Gone once the call is over: nothing may follow the answer.
    out: Mutex<Option<mpsc::Sender<Answer>>>,
}

impl Relay {
    pub(super) fn new(token: Bytes, out: mpsc::Sender<Answer>) -> Self {
        Self {
            token,
            out: Mutex::new(Some(out)),
        }
    }

    /// Lets nothing through from here on.
    pub(super) fn close(&self) {
        drop(self.out.lock().take());
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
        if let Some(out) = self.out.lock().as_ref() {
            let _ = out.try_send(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_s_token_replaces_the_server_s_and_nothing_follows_the_end() {
        let (out, mut seen) = mpsc::channel(4);
        let relay = Relay::new(Bytes::from_static(b"\"mine\""), out);
        relay.report(br#"{"progressToken":7,"progress":0.50,"x":[1]}"#);
        relay.report(b"not an object");
        relay.report(br#"{"progress":1e400}"#);
        relay.close();
        relay.report(br#"{"progressToken":7,"progress":1}"#);
        let report = seen.try_recv().unwrap().into_pieces().concat();
        assert_eq!(
            std::str::from_utf8(&report).unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":0.50,"x":[1]}}"#
        );
        assert!(seen.try_recv().is_err());
    }
}

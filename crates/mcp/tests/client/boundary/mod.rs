//! Servers that fail at every byte of an exchange, and what is said of the calls it happens to.
//!
//! The servers count what they could have run with readers of their own, as eager as a server can
//! be: a call counts as run with the last bracket of it.
//!
//! Certainty over a pipe: a call is `NotSent` as long as the pipe has not taken its last bracket.
//! Certainty over HTTP: a request below some hundred kilobytes is handed to the system in one
//! piece, so a connection that ends in the middle of it looks as if all was sent, and the call is
//! `Unknown` at every byte; a larger one is `NotSent` while its last byte was not asked for.

mod http_answers;
mod http_requests;
mod pipe;

use callward_core::{Delivery, ToolError, ToolOutput, ToolServer};
use callward_mcp::client::{HttpSpec, Target, Upstream};
use callward_testkit::chaos::{Break, Ledger};
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::Peer;

use crate::script::{LONG, call, start};

pub(crate) type Ended = Result<ToolOutput, ToolError>;

/// Each era, and each end of a connection.
const MODES: [(Era, Break); 4] = [
    (Era::Legacy, Break::Close),
    (Era::Legacy, Break::Reset),
    (Era::Modern, Break::Close),
    (Era::Modern, Break::Reset),
];

/// Returns where the first JSON object in `bytes` ends, if it does.
pub(crate) fn object_end(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Holds a call to what the server did: what was run may not be called unsent, and there is no
/// success without a run.
pub(crate) fn assert_told_the_truth(ended: &Ended, executions: u64, at: &str) {
    assert!(executions <= 1, "{at}: run {executions} times");
    match ended {
        Ok(_) => assert_eq!(executions, 1, "{at}: a success without an execution"),
        Err(error) => {
            if error.delivery == Delivery::NotSent {
                assert_eq!(executions, 0, "{at}: {error}");
            }
        }
    }
}

pub(crate) fn delivery(ended: &Ended) -> Option<Delivery> {
    ended.as_ref().err().map(|error| error.delivery)
}

/// An upstream of an HTTP server that fails as instructed, and counts what it runs.
struct Bed {
    peer: Peer,
    upstream: Upstream,
    ledger: Ledger,
    calls: u64,
}

impl Bed {
    async fn new(era: Era) -> Self {
        let ledger = Ledger::new();
        let peer = Peer::start(era, &[], ledger.clone()).await.unwrap();
        let spec = HttpSpec::new(&peer.url()).unwrap();
        let upstream = start(Target::Http(spec), |_| {});
        upstream.ready(LONG).await.unwrap();
        Self {
            peer,
            upstream,
            ledger,
            calls: 0,
        }
    }

    /// Makes a call of its own number, padded with that many bytes. Returns its end, and how often
    /// it was run.
    async fn call(&mut self, padding: usize) -> (Ended, u64) {
        self.calls += 1;
        let (number, padding) = (self.calls, "x".repeat(padding));
        let arguments = format!(r#"{{"padding":"{padding}","call":{number}}}"#);
        let ended = self.upstream.call(call("x", &arguments)).await;
        (ended, self.ledger.of(number).executions)
    }
}

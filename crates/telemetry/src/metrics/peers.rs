//! What is recorded of MCP requests and sessions, as the protocol saw them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callward_core::{
    ErrorKind, PeerObserver, PeerOutcome, PeerRequest, PeerSession, PeerSide, ServerId,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};

use super::Metrics;
use super::instrument::histogram;
use super::recorder::Recorder;
use crate::error_type::{code_word, error_type};
use crate::names;
use crate::names::metric::{self, OPERATION_BUCKETS};

/// The histograms of requests to servers, of clients' requests that are no calls, and of sessions.
#[derive(Debug)]
pub(super) struct Peers {
    /// Of this process as a client, and as a server.
    sessions: [Histogram<f64>; 2],
    pub(super) sent: Histogram<f64>,
    /// Requests that are about no tool: few series, of methods the protocol knows.
    others: Mutex<Vec<(Kind, Arc<Recorder>)>>,
}

/// What tells series of requests apart that are about no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    side: PeerSide,
    method: &'static str,
    server: Option<ServerId>,
    error: Option<&'static str>,
}

impl Peers {
    pub(super) fn new(meter: &Meter) -> Self {
        let operation = |metric| histogram(meter, metric, &OPERATION_BUCKETS);
        Self {
            sessions: [
                operation(metric::CLIENT_SESSION_DURATION),
                operation(metric::SERVER_SESSION_DURATION),
            ],
            sent: operation(metric::CLIENT_OPERATION_DURATION),
            others: Mutex::default(),
        }
    }

    fn session(&self, session: &PeerSession, took: Duration) {
        let [client, server] = &self.sessions;
        let histogram = match session.side {
            PeerSide::Client => client,
            PeerSide::Server => server,
        };
        let transport = KeyValue::new(names::TRANSPORT, session.transport);
        histogram.record(took.as_secs_f64(), &[transport]);
    }

    fn other(&self, kind: &Kind, served: &Histogram<f64>) -> Arc<Recorder> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, recorder)) = others.iter().find(|(known, _)| known == kind) {
            return recorder.clone();
        }
        let histogram = match kind.side {
            PeerSide::Client => &self.sent,
            PeerSide::Server => served,
        };
        let recorder = Arc::new(Recorder::new(histogram, &kind.attributes()));
        others.push((kind.clone(), recorder.clone()));
        recorder
    }
}

impl Kind {
    fn attributes(&self) -> Vec<KeyValue> {
        let method = KeyValue::new(names::METHOD, self.method);
        let server = self.server.as_ref();
        let server = server.map(|id| KeyValue::new(names::SERVER, id.as_str().to_owned()));
        let error = self
            .error
            .map(|word| KeyValue::new(names::ERROR_TYPE, word));
        [method].into_iter().chain(server).chain(error).collect()
    }
}

/// Given to servers and faces, it records what they were asked, and their sessions. What a tool's calls
/// took is recorded where they are made: only what never became one is told by a face.
impl PeerObserver for Metrics {
    fn request_ended(&self, request: &PeerRequest<'_>, took: Duration) {
        let (error, seconds) = (word(request.outcome), took.as_secs_f64());
        let peers = &self.tools.instruments.peers;
        match (request.tool, request.server) {
            (Some(tool), Some(server)) => self.tools.with(tool, |of| {
                of.sent(tool, server, error, &peers.sent).record(seconds);
            }),
            _ => {
                let kind = Kind {
                    side: request.side,
                    method: request.method,
                    server: request.server.cloned(),
                    error,
                };
                let served = self.tools.instruments.served();
                peers.other(&kind, served).record(seconds);
            }
        }
    }

    fn session_ended(&self, session: &PeerSession, took: Duration) {
        self.tools.instruments.peers.session(session, took);
    }
}

fn word(outcome: PeerOutcome<'_>) -> Option<&'static str> {
    match outcome {
        PeerOutcome::Answered => None,
        PeerOutcome::Cancelled => Some(ErrorKind::Cancelled.as_str()),
        PeerOutcome::Failed(error) => Some(error_type(error)),
        PeerOutcome::Refused(code) => {
            Some(code_word(code).unwrap_or(ErrorKind::ServerFault.as_str()))
        }
        PeerOutcome::ToolError => Some(names::ERROR_TOOL),
        // an outcome this crate does not know yet
        _ => Some(ErrorKind::Internal.as_str()),
    }
}

//! Metrics of MCP requests and sessions.

use std::time::Duration;

use callward_core::{ErrorKind, PeerObserver, PeerOutcome, PeerRequest, PeerSession, PeerSide};
use opentelemetry::KeyValue;

use super::{Metrics, method, of_error, of_request, of_server, operation};
use crate::error_type::{code_word, error_type};
use crate::names;

/// Records the requests and sessions of MCP servers and clients. The duration of a client's call is
/// recorded with the call; this records a client's requests that are not calls.
impl PeerObserver for Metrics {
    fn request_ended(&self, request: &PeerRequest<'_>, took: Duration) {
        let error = outcome_word(request.outcome);
        let seconds = took.as_secs_f64();
        if let (PeerSide::Client, Some(tool)) = (request.side, request.tool) {
            let new = || {
                let mut attributes = of_request(tool, request.server, error);
                attributes.extend([method(request.method), operation()]);
                self.sent.bind(&attributes)
            };
            let outcome = (request.server.cloned(), error);
            return self
                .of_sent
                .with(tool, outcome, new, |series| series.record(seconds));
        }
        let mut attributes = vec![method(request.method)];
        attributes.extend(request.server.map(of_server));
        attributes.extend(error.map(of_error));
        match request.side {
            PeerSide::Client => self.sent.record(seconds, &attributes),
            PeerSide::Server => self.served.record(seconds, &attributes),
        }
    }

    fn session_ended(&self, session: &PeerSession, took: Duration) {
        let histogram = match session.side {
            PeerSide::Client => &self.sent_sessions,
            PeerSide::Server => &self.served_sessions,
        };
        let transport = KeyValue::new(names::TRANSPORT, session.transport);
        histogram.record(took.as_secs_f64(), &[transport]);
    }
}

fn outcome_word(outcome: PeerOutcome<'_>) -> Option<&'static str> {
    match outcome {
        PeerOutcome::Answered => None,
        PeerOutcome::Cancelled => Some(ErrorKind::Cancelled.as_str()),
        PeerOutcome::Failed(error) => Some(error_type(error)),
        PeerOutcome::Refused(code) => {
            Some(code_word(code).unwrap_or(ErrorKind::ServerFault.as_str()))
        }
        PeerOutcome::ToolError => Some(names::ERROR_TOOL),
        // an outcome that a later version adds
        _ => Some(ErrorKind::Internal.as_str()),
    }
}

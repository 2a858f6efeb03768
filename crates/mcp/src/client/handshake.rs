//! Finds out which era a server belongs to.
//!
//! The rule: ask `server/discover`. A result, or an error only a modern server knows, means modern;
//! any other error, or silence, means legacy. No single code decides.

use bytes::Bytes;

use super::answer::RequestError;
use super::ask::Ask;
use super::info::{Discovery, ServerInfo, shares_legacy};
use crate::wire::{LATEST_LEGACY, RpcError, code};

/// The method that only modern servers know.
pub(super) const DISCOVER: &str = "server/discover";

/// What the probe found.
#[derive(Debug)]
pub(super) enum Probe {
    /// A modern server, and what it said of itself.
    Modern(ServerInfo),
    /// Anything that should be greeted with `initialize`.
    Legacy,
    /// No era fits, or no server answers.
    Failed(RequestError),
}

/// Discovers the server, the modern way.
pub(super) fn discover() -> Ask<'static> {
    Ask::new(DISCOVER, "{}")
}

/// Initializes a legacy server.
pub(super) fn initialize(client_info: &[u8]) -> Ask<'static> {
    let mut params =
        format!(r#"{{"protocolVersion":"{LATEST_LEGACY}","capabilities":{{}},"clientInfo":"#)
            .into_bytes();
    params.extend_from_slice(client_info);
    params.push(b'}');
    Ask::new("initialize", params)
}

/// Judges the answer to [`discover`].
pub(super) fn judge(answer: Result<Bytes, RequestError>) -> Probe {
    match answer {
        Ok(result) => match ServerInfo::discovered(&result) {
            Ok(Discovery::Modern(info)) => Probe::Modern(info),
            Ok(Discovery::Other(versions)) => negotiate(&versions),
            // an answer that is not a discovery: a server that says yes to everything
            Err(_) => Probe::Legacy,
        },
        Err(RequestError::Refused(error)) => judge_refusal(error),
        // over HTTP an old server may refuse the request before it looks at the message
        Err(RequestError::Failed(error)) if error.code().is_some_and(is_legacy_status) => {
            Probe::Legacy
        }
        Err(error) => Probe::Failed(error),
    }
}

/// Returns `true` if a refusal of [`discover`] shows that the server is not modern any more.
pub(super) fn shows_legacy(error: &RequestError) -> bool {
    match error {
        RequestError::Refused(error) => matches!(judge_refusal(error.clone()), Probe::Legacy),
        RequestError::Failed(error) => error.code().is_some_and(is_legacy_status),
        _ => false,
    }
}

/// Returns `true` if this HTTP status answers a request that the server did not understand.
fn is_legacy_status(status: i64) -> bool {
    (400..500).contains(&status) && !matches!(status, 401 | 403 | 429)
}

fn judge_refusal(error: RpcError) -> Probe {
    match error.code {
        code::UNSUPPORTED_VERSION => {
            let supported: Vec<String> = error
                .data
                .as_deref()
                .and_then(|data| serde_json::from_slice::<serde_json::Value>(data).ok())
                .and_then(|data| serde_json::from_value(data.get("supported")?.clone()).ok())
                .unwrap_or_default();
            negotiate(&supported)
        }
        code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY => {
            Probe::Failed(RequestError::Refused(error))
        }
        _ => Probe::Legacy,
    }
}

fn negotiate(supported: &[String]) -> Probe {
    if shares_legacy(supported) {
        Probe::Legacy
    } else {
        Probe::Failed(RequestError::protocol(format!(
            "the server speaks none of our revisions, only {supported:?}: use another version of it"
        )))
    }
}

/// Returns `true` if a JSON-RPC or HTTP code that answers `initialize` means that the server does
/// not know the method, so that asking again cannot help. Any other failure may pass.
pub(super) fn refuses_initialize(code: i64) -> bool {
    matches!(
        code,
        code::INVALID_REQUEST
            | code::METHOD_NOT_FOUND
            | code::INVALID_PARAMS
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_VERSION
            | 400
            | 404
            | 405
            | 406
            | 415
            | 501
    )
}

#[cfg(test)]
mod tests {
    use callward_core::{Delivery, ErrorKind, ToolError};

    use super::*;

    fn refused(code: i64) -> Result<Bytes, RequestError> {
        Err(RequestError::Refused(RpcError::new(code, "no")))
    }

    fn http(status: i64) -> Result<Bytes, RequestError> {
        let error = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, "no");
        Err(RequestError::Failed(error.with_code(status)))
    }

    #[test]
    fn only_what_a_legacy_server_cannot_say_is_modern() {
        for code in [-32601, -32602, -32600, -32000, -32603, 0] {
            assert!(matches!(judge(refused(code)), Probe::Legacy), "{code}");
        }
        for code in [-32020, -32021] {
            assert!(matches!(judge(refused(code)), Probe::Failed(_)), "{code}");
        }
        for status in [400, 404, 405, 406] {
            assert!(matches!(judge(http(status)), Probe::Legacy), "{status}");
        }
        for status in [401, 403, 429, 500, 503] {
            assert!(matches!(judge(http(status)), Probe::Failed(_)), "{status}");
        }
        assert!(matches!(judge(Ok("{}".into())), Probe::Legacy));
        assert!(matches!(
            judge(Err(RequestError::lost("gone"))),
            Probe::Failed(_)
        ));
    }

    #[test]
    fn only_what_cannot_pass_refuses_a_greeting_for_good() {
        for code in [-32601, -32600, -32602, -32020, -32022, 400, 404, 405, 501] {
            assert!(refuses_initialize(code), "{code}");
        }
        for code in [-32000, -32603, 0, 401, 403, 408, 429, 500, 502, 503, 504] {
            assert!(!refuses_initialize(code), "{code}");
        }
    }

    #[test]
    fn an_unsupported_revision_is_negotiated_from_the_list() {
        let answer = |data: &'static str| {
            let error = RpcError::new(code::UNSUPPORTED_VERSION, "no").with_data(data);
            judge(Err(RequestError::Refused(error)))
        };
        assert!(matches!(
            answer(r#"{"supported":["2025-06-18"]}"#),
            Probe::Legacy
        ));
        assert!(matches!(
            answer(r#"{"supported":["2029-01-01"]}"#),
            Probe::Failed(_)
        ));
        assert!(matches!(answer("{}"), Probe::Failed(_)));
    }
}

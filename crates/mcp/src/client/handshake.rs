//! Detects the era of a server.
//!
//! The rule: send `server/discover`. A result, or an error that only modern servers use, means
//! modern; any other error, or no answer, means legacy. No single code decides. A server over a
//! pipe is sent `initialize` first, and this only if it refuses.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use callward_core::ClientCapabilities;
use serde_json::Value;

use super::answer::RequestError;
use super::ask::{Ask, CLIENT_INFO};
use super::info::{ServerInfo, shares_legacy};
use super::options::EraChoice;
use crate::wire::{LATEST_LEGACY, RpcError, code};

/// The method that only modern servers know.
pub(super) const DISCOVER: &str = "server/discover";

/// How long the answer to a probe, or to a sign of life, may take.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Discovers the server, the modern way.
pub(super) fn discover() -> Ask<'static> {
    Ask::new(DISCOVER, "{}")
}

/// Initializes a legacy server for a client with these capabilities.
pub(super) fn initialize(declared: ClientCapabilities) -> Ask<'static> {
    let capabilities = declared.without_extensions().to_json();
    let params = format!(
        r#"{{"protocolVersion":"{LATEST_LEGACY}","capabilities":{capabilities},"clientInfo":{CLIENT_INFO}}}"#
    );
    Ask::new("initialize", params)
}

/// Judges the answer to [`discover`]: what a modern server said of itself; `None` if the server
/// should be greeted with `initialize`.
///
/// # Errors
///
/// No era fits, or no server answers.
pub(super) fn judge(
    answer: Result<Bytes, RequestError>,
    era: EraChoice,
) -> Result<Option<ServerInfo>, RequestError> {
    match answer {
        Ok(result) => match ServerInfo::discovered(&result) {
            Ok(Ok(info)) => return Ok(Some(info)),
            Ok(Err(versions)) => negotiate(&versions)?,
            // not a discovery: some servers answer every method with a result
            Err(_) => {}
        },
        Err(RequestError::Refused(error)) if error.code == code::UNSUPPORTED_VERSION => {
            negotiate(&supported(&error))?;
        }
        Err(error) if !shows_legacy(&error) => return Err(error),
        Err(_) => {}
    }
    if era == EraChoice::Modern {
        let text = "the server speaks only legacy revisions, and the era is set to modern";
        return Err(RequestError::protocol(text));
    }
    Ok(None)
}

/// Returns `true` if a refusal of [`discover`] shows that the server is not modern.
pub(super) fn shows_legacy(error: &RequestError) -> bool {
    match error {
        RequestError::Refused(error) => match error.code {
            code::UNSUPPORTED_VERSION => shares_legacy(&supported(error)),
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY => false,
            _ => true,
        },
        // over HTTP an old server may refuse the request before it looks at the message
        RequestError::Failed(error) => error.code.is_some_and(is_legacy_status),
        RequestError::SessionGone => false,
    }
}

fn supported(error: &RpcError) -> Vec<String> {
    let data = error.data.as_deref().unwrap_or_default();
    let data: Value = serde_json::from_slice(data).unwrap_or_default();
    serde_json::from_value(data["supported"].clone()).unwrap_or_default()
}

fn negotiate(supported: &[String]) -> Result<(), RequestError> {
    if shares_legacy(supported) {
        return Ok(());
    }
    Err(RequestError::protocol(format!(
        "the server speaks none of our revisions, only {supported:?}: use another version of it"
    )))
}

/// Returns `true` if this HTTP status answers a request that the server did not understand.
fn is_legacy_status(status: i64) -> bool {
    (400..500).contains(&status) && !matches!(status, 401 | 403 | 429)
}

/// Returns `true` if a JSON-RPC or HTTP code that answers `initialize` means that the server does
/// not know the method, so that asking again cannot help. Any other failure may pass.
pub(super) fn refuses_initialize(code: i64) -> bool {
    const REFUSES: RangeInclusive<i64> = code::INVALID_PARAMS..=code::INVALID_REQUEST;
    const REFUSES_REVISION: RangeInclusive<i64> = code::UNSUPPORTED_VERSION..=code::HEADER_MISMATCH;
    REFUSES.contains(&code)
        || REFUSES_REVISION.contains(&code)
        || matches!(code, 400 | 404..=406 | 415 | 501)
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

    /// Returns `true` if the answer makes the server a legacy one, `false` if it is an error.
    fn is_legacy(answer: Result<Bytes, RequestError>) -> bool {
        let judged = judge(answer, EraChoice::Auto);
        judged.is_ok_and(|info| info.is_none())
    }

    #[test]
    fn only_what_a_legacy_server_cannot_say_is_modern() {
        for code in [-32601, -32602, -32600, -32000, -32603, 0] {
            assert!(is_legacy(refused(code)), "{code}");
            assert!(judge(refused(code), EraChoice::Modern).is_err(), "{code}");
        }
        for code in [-32020, -32021] {
            assert!(!is_legacy(refused(code)), "{code}");
        }
        for status in [400, 404, 405, 406] {
            assert!(is_legacy(http(status)), "{status}");
        }
        for status in [401, 403, 429, 500, 503] {
            assert!(!is_legacy(http(status)), "{status}");
        }
        assert!(is_legacy(Ok("{}".into())));
        assert!(!is_legacy(Err(RequestError::lost("gone"))));
        for (supported, legacy) in [
            (r#"{"supported":["2025-06-18"]}"#, true),
            (r#"{"supported":["2029-01-01"]}"#, false),
            ("{}", false),
        ] {
            let error = RpcError::new(code::UNSUPPORTED_VERSION, "no").with_data(supported);
            let refused = Err(RequestError::Refused(error));
            assert_eq!(is_legacy(refused), legacy, "{supported}");
        }
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
}

//! Turns failures into JSON-RPC errors.

use std::borrow::Cow;
use std::time::Duration;

use callward_core::{
    Delivery, ErrorKind, ServerId, TRAIL_META, ToolError, UPSTREAM_META, is_our_meta,
};
use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use crate::wire::{Era, KNOWN_VERSIONS, RequestId, RpcError, code, object};

/// The code of every failure that is the runtime's own: −33010. The page `docs/errors.md` lists all
/// errors that a client may get.
///
/// The `data` of such an error always has five members: `kind` and `delivery` (the words of
/// [`ErrorKind`](callward_core::ErrorKind) and [`Delivery`](callward_core::Delivery)), `server` (or
/// null), `retryAfterMs` (or null) and `attempts` (0 if attempts were not counted). Four more are
/// there if they apply: `scopes`, all to ask for where the caller's credential lacks one;
/// `principalLimit`, the limit that is reached, with `name`, `max` and `resetMs`, the time until it
/// is as if unused, or null; `history`, all attempts of a call that was retried
/// ([`FailedAttempt`](callward_core::FailedAttempt)); and `outcome`, what is known of a call whose
/// outcome is unknown, with the tool to check it with as clients see it
/// ([`OutcomeUnknown`](callward_core::OutcomeUnknown)). A malformed call has the same `data` under
/// −32602, and an unknown tool has none.
///
/// The `data` of an upstream's own error is passed on as it came, unless it could be taken for
/// ours: if its code is −33010, or it has a member of one of these names or under a key that begins
/// with `io.callward/`. It is then found whole under [`UPSTREAM_META`], but for the `outcome` of
/// another instance of this runtime, which names tools that clients here know by other names; and
/// with −33010, beside what is known here. So is the `data` of an error whose code would mean
/// something else here, and which therefore gets −33010: −32020 and −32022, which are about the
/// request to the upstream, and −32002 and −32042, which the modern era forbids.
///
/// Where the call was retried, or may have run although its server reports a fault, `attempts` and
/// `history` are added to the `data` of an upstream's own error, if that is an object or absent.
///
/// Where a client asked for it, the `data` has one member more, under
/// [`TRAIL_META`]: everything that was decided about the call
/// ([`Trail`](callward_core::Trail)). It is added to the `data` of an upstream's own error too, if
/// that is an object or absent.
pub const RUNTIME_ERROR: i64 = ToolError::RUNTIME_CODE;

/// The member of our `data` that tells what is known of an unknown outcome.
const OUTCOME: &str = "outcome";

/// The names of the members of our `data`, and the one in `outcome` that names a tool.
const OURS: &str = "kind delivery server retryAfterMs attempts history scopes principalLimit \
                    outcome verifyWith";

/// A refusal: a JSON-RPC error, and the status HTTP gives it.
#[derive(Debug)]
pub(super) struct Fault {
    /// The request that is refused, if its id is known.
    pub(super) id: Option<RequestId>,
    pub(super) error: RpcError,
    pub(super) status: StatusCode,
    /// When the client may try again.
    pub(super) retry_after: Option<Duration>,
}

impl Fault {
    pub(super) const fn new(status: StatusCode, error: RpcError) -> Self {
        Self {
            id: None,
            error,
            status,
            retry_after: None,
        }
    }

    /// Refuses the request of this id.
    pub(super) fn under(self, id: Option<&RequestId>) -> Self {
        let id = id.cloned();
        Self { id, ..self }
    }

    fn of(status: StatusCode, code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, RpcError::new(code, message))
    }

    /// A refusal of the transport itself, before any message is parsed.
    pub(super) fn transport(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(status, code::INVALID_REQUEST, message)
    }

    /// An unknown method. In the legacy era 404 means a lost session, so it is not the status.
    pub(super) fn method_not_found(era: Era, method: &str) -> Self {
        let status = match era {
            Era::Legacy => StatusCode::OK,
            Era::Modern => StatusCode::NOT_FOUND,
        };
        let message = format!("method not found: {method}");
        Self::of(status, code::METHOD_NOT_FOUND, message)
    }

    pub(super) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(StatusCode::OK, code::INVALID_PARAMS, message)
    }

    pub(super) fn invalid_meta(fields: &str) -> Self {
        let message = format!("_meta is missing or has malformed required fields: {fields}");
        Self::of(StatusCode::BAD_REQUEST, code::INVALID_PARAMS, message)
    }

    pub(super) fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, code::HEADER_MISMATCH, message)
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        let data = json!({"requested": requested, "supported": KNOWN_VERSIONS});
        let error = RpcError::new(code::UNSUPPORTED_VERSION, "unsupported protocol version");
        Self::new(StatusCode::BAD_REQUEST, error.with_data(data.to_string()))
    }

    /// Too much is open or in work; the client may try again after this time, if it is known.
    pub(super) fn overloaded(text: impl Into<String>, retry_after: Option<Duration>) -> Self {
        let mut error = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text.into());
        error.retry_after = retry_after;
        Self::later(StatusCode::SERVICE_UNAVAILABLE, &error)
    }

    /// Puts a request off, until the time that the error states.
    pub(super) fn later(status: StatusCode, error: &ToolError) -> Self {
        Self {
            retry_after: error.retry_after,
            ..Self::new(status, runtime(error, RUNTIME_ERROR))
        }
    }
}

/// Turns the failure of a call into what a client of this era sees.
pub(super) fn of_call(error: &ToolError, era: Era) -> RpcError {
    let code = match error.rpc_code() {
        // about headers and revision of our own request, of which the client knows nothing
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION => RUNTIME_ERROR,
        // the modern era forbids these two: no such resource, and a URL that a person has to open
        -32002 | -32042 if era == Era::Modern => RUNTIME_ERROR,
        code => code,
    };
    if error.reported_code().is_some() && error.outcome.is_none() {
        let upstream = with_history(of_upstream(code, error), error);
        return with_trail(upstream, error);
    }
    match error.kind {
        // a tool that is hidden from the caller looks like one that is not there
        ErrorKind::UnknownTool => RpcError::new(code, error.message.to_string()),
        _ => with_trail(runtime(error, code), error),
    }
}

/// Passes on the error of an upstream. What is in its `data` under names of ours is found apart.
fn of_upstream(code: i64, error: &ToolError) -> RpcError {
    let passed_on = RpcError::new(code, error.message.to_string());
    match error.data.as_ref() {
        data if code == RUNTIME_ERROR => {
            let passed_on = runtime(error, code);
            match data.and_then(|data| object::remove_member(data, OUTCOME).ok()) {
                Some(theirs) => with_raw(passed_on, UPSTREAM_META, &theirs),
                None => passed_on,
            }
        }
        Some(data) if reads_as_ours(data) => with_raw(passed_on, UPSTREAM_META, data),
        Some(data) => passed_on.with_data(data.clone()),
        None => passed_on,
    }
}

/// Returns `true` if a client may mistake something in the `data` of an upstream's error for ours.
fn reads_as_ours(data: &[u8]) -> bool {
    let is_object = data.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    is_object
        && object::members(data).map_or(true, |members| {
            let is_ours =
                |name: &str| OURS.split(' ').any(|ours| ours == name) || is_our_meta(name);
            members.iter().any(|(name, _)| is_ours(name))
        })
}

/// Adds the attempts of a call that was retried or may have run.
fn with_history(upstream: RpcError, error: &ToolError) -> RpcError {
    if error.history.is_empty() || upstream.code == RUNTIME_ERROR {
        return upstream;
    }
    let counted = with_member(upstream, "attempts", &error.attempts);
    with_member(counted, "history", &error.history)
}

/// Adds what was decided about the call, if the error has it.
fn with_trail(ours: RpcError, error: &ToolError) -> RpcError {
    match &error.trail {
        Some(trail) => with_member(ours, TRAIL_META, trail),
        None => ours,
    }
}

fn with_member(ours: RpcError, name: &str, value: &(impl Serialize + ?Sized)) -> RpcError {
    match serde_json::to_vec(value) {
        Ok(value) => with_raw(ours, name, &value),
        Err(_) => ours, // not reached: plain structs can always be written
    }
}

/// Adds a member to `data`, which becomes an object if there is none.
fn with_raw(ours: RpcError, name: &str, value: &[u8]) -> RpcError {
    let data = ours.data.as_deref().unwrap_or(b"{}");
    match object::set_member(data, name, value) {
        Ok(data) => ours.with_data(data),
        // anything that is not an object, or cannot be read, stays as the upstream sent it
        Err(_) => ours,
    }
}

fn runtime(error: &ToolError, code: i64) -> RpcError {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut data = json!({
        "kind": error.kind.as_str(),
        "delivery": error.delivery.as_str(),
        "server": error.server.as_ref().map(ServerId::as_str),
        "retryAfterMs": error.retry_after.map(millis),
        "attempts": error.attempts,
    });
    if !error.history.is_empty() {
        data["history"] = json!(error.history);
    }
    if !error.scopes.is_empty() {
        data["scopes"] = json!(error.scopes);
    }
    if let Some(limit) = error.limit {
        let reset = limit.reset.map(millis);
        data["principalLimit"] = json!({"name": limit.name, "max": limit.max, "resetMs": reset});
    }
    if let Some(outcome) = &error.outcome {
        data[OUTCOME] = json!(outcome);
    }
    RpcError::new(code, error.message.to_string()).with_data(data.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use callward_core::{Delivery, ErrorKind, FailedAttempt, Trail, refine::Applied};
    use callward_testkit::tool;
    use serde_json::Value;

    use super::*;

    fn text(error: &RpcError) -> &str {
        std::str::from_utf8(error.data.as_ref().unwrap()).unwrap()
    }

    /// What a client sees of the error that a server answered with, under this code.
    fn seen(code: i64, data: &str, change: impl Fn(ToolError) -> ToolError) -> String {
        let error = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "it broke");
        let error = error.with_code(code).with_server("shop".parse().unwrap());
        let error = match data {
            "" => error,
            data => error.with_data(Bytes::copy_from_slice(data.as_bytes())),
        };
        let seen = of_call(&change(error), Era::Modern);
        assert_eq!((seen.code, &*seen.message), (code, "it broke"));
        text(&seen).to_owned()
    }

    #[test]
    fn attempts_and_trail_are_added_to_data_that_is_an_object_or_absent() {
        let trail = Arc::new(Trail::expected(&tool("read").build(), Applied::Tool));
        let written = serde_json::to_string(&trail).unwrap();
        let ours = format!(
            r#""attempts":1,"history":[{{"server":"shop","kind":"server_fault","delivery":"answered","code":-32050,"message":"it broke","pauseMs":0}}],"{TRAIL_META}":{written}"#
        );
        for (theirs, expected) in [
            ("", format!("{{{ours}}}")),
            (r#"{"b": 1.0}"#, format!(r#"{{"b": 1.0,{ours}}}"#)),
            (
                r#"{"history":1}"#,
                format!(r#"{{"io.callward/upstream":{{"history":1}},{ours}}}"#),
            ),
            ("[1]", "[1]".to_owned()),
        ] {
            let tried = |mut error: ToolError| {
                error.attempts = 1;
                error.history = Arc::new([FailedAttempt::new(&error, Duration::ZERO)]);
                error.trail = Some(trail.clone());
                error
            };
            assert_eq!(seen(-32050, theirs, tried), expected);
        }
        let mut ours = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer");
        ours.trail = Some(trail);
        ours.history = Arc::new([FailedAttempt::new(&ours, Duration::ZERO)]);
        let seen: Value = serde_json::from_str(text(&of_call(&ours, Era::Modern))).unwrap();
        assert_eq!(seen["kind"], "timeout");
        assert_eq!(seen["history"][0]["delivery"], "unknown");
        assert_eq!(seen[TRAIL_META].to_string(), sorted(&written));
    }

    /// The same JSON with its members in order.
    fn sorted(json: &str) -> String {
        serde_json::from_str::<Value>(json).unwrap().to_string()
    }

    #[test]
    fn what_an_upstream_sent_under_names_of_ours_is_found_apart() {
        let seen = |code: i64, data: &str| seen(code, data, |error| error);
        for data in [
            r#"{"kind":"x"}"#,
            r#"{"a":[1.0],"delivery":"not_sent"}"#,
            r#"{"retryAfterMs" : 1}"#,
            r#"{"outcome":{"verifyWith":"evil"}}"#,
            r#"{"verifyWith":"evil"}"#,
            r#"{"k\u0069nd":"x"}"#,
            r#"{"kind":"x","kind":"y"}"#,
            r#"{"io.callward/trail":[]}"#,
            r#" {"\ud800":1,"kind":"x"}"#,
        ] {
            let nested = format!(r#"{{"io.callward/upstream":{data}}}"#);
            assert_eq!(seen(-32050, data), nested);
        }
        for data in [r#"{"a":{"kind":1.0}}"#, r#"["kind"]"#, "\"kind\"", "null"] {
            assert_eq!(seen(-32050, data), data);
        }
        let ours = r#""attempts":0,"delivery":"answered","kind":"server_fault","retryAfterMs":null,"server":"shop""#;
        let forged = r#"{"kind":"timeout","outcome":{"verifyWith":"evil"},"delivery":"not_sent"}"#;
        for (data, theirs) in [
            (forged, Some(r#"{"kind":"timeout","delivery":"not_sent"}"#)),
            (r#"{"a":1}"#, Some(r#"{"a":1}"#)),
            (r#"{"outcome":1,"outcome":2}"#, None),
            ("[1]", None),
        ] {
            let nested = theirs.map(|theirs| format!(r#","io.callward/upstream":{theirs}"#));
            let expected = format!("{{{ours}{}}}", nested.unwrap_or_default());
            assert_eq!(seen(RUNTIME_ERROR, data), expected, "{data}");
        }
    }

    #[test]
    fn each_era_gets_the_codes_that_it_permits() {
        let most = i64::from(i32::MAX);
        for (theirs, legacy, modern) in [
            (-32603, -32603, -32603),
            (-32050, -32050, -32050),
            (-32021, -32021, -32021),
            (-32002, -32002, RUNTIME_ERROR),
            (-32042, -32042, RUNTIME_ERROR),
            // of another hop
            (-32020, RUNTIME_ERROR, RUNTIME_ERROR),
            (-32022, RUNTIME_ERROR, RUNTIME_ERROR),
            // where servers have codes of their own
            (7, 7, 7),
            (-1, -1, -1),
            (-40_000, -40_000, -40_000),
            (most, most, most),
            // an HTTP status, and what clients may be unable to read
            (599, RUNTIME_ERROR, RUNTIME_ERROR),
            (most + 1, RUNTIME_ERROR, RUNTIME_ERROR),
            (i64::MIN, RUNTIME_ERROR, RUNTIME_ERROR),
        ] {
            let error = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "it broke");
            let error = error
                .with_code(theirs)
                .with_data(Bytes::from_static(b"[1]"));
            let seen = [Era::Legacy, Era::Modern].map(|era| of_call(&error, era));
            assert_eq!(
                seen.each_ref().map(|seen| seen.code),
                [legacy, modern],
                "{theirs}"
            );
        }
    }

    #[test]
    fn our_own_errors_have_five_members_and_no_http_status_for_a_code() {
        let mut limited = ToolError::new(ErrorKind::RateLimited, Delivery::Answered, "no")
            .with_code(429)
            .with_server(ServerId::new("shop").unwrap())
            .with_retry_after(Duration::from_millis(1_500));
        limited.attempts = 2;
        let limited = of_call(&limited, Era::Modern);
        assert_eq!((limited.code, &*limited.message), (RUNTIME_ERROR, "no"));
        assert_eq!(
            text(&limited),
            r#"{"attempts":2,"delivery":"answered","kind":"rate_limited","retryAfterMs":1500,"server":"shop"}"#
        );
        let mut invalid = ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, "no");
        let seen = of_call(&invalid, Era::Legacy);
        assert_eq!(seen.code, code::INVALID_PARAMS);
        assert!(text(&seen).contains(r#""kind":"invalid_call""#));
        // a server refused it with an HTTP status alone
        invalid.delivery = Delivery::Answered;
        assert_eq!(
            of_call(&invalid.with_code(400), Era::Legacy).code,
            RUNTIME_ERROR
        );
        let unknown = ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, "no tool");
        let expected = RpcError::new(code::INVALID_PARAMS, "no tool");
        assert_eq!(of_call(&unknown, Era::Modern), expected);
    }
}

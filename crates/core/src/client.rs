//! The client of a call, as far as a server may ask it something meanwhile.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::BoxFuture;

crate::words! {
    /// A request that a server sends to a client.
    #[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
    ClientMethod {
        /// Asks for a completion of the client's model.
        Sample = "sampling/createMessage",
        /// Asks the person at the client for input.
        Elicit = "elicitation/create",
        /// Asks which folders the client works in.
        ListRoots = "roots/list",
    }
}

crate::words! {
    /// The severity of a log message for the client, from the lowest on
    /// ([RFC 5424](https://www.rfc-editor.org/rfc/rfc5424#section-6.2.1)).
    #[expect(clippy::exhaustive_enums, reason = "the protocol has no others")]
    LogLevel {
        /// Details for debugging.
        Debug = "debug",
        /// What happens normally.
        Info = "info",
        /// Normal, but significant.
        Notice = "notice",
        /// What may become an error.
        Warning = "warning",
        /// An error.
        Error = "error",
        /// A failure of a part.
        Critical = "critical",
        /// What needs action at once.
        Alert = "alert",
        /// The server is unusable.
        Emergency = "emergency",
    }
}

/// The capabilities that are relayed, by their places in `clientCapabilities`.
const PLACES: [&[&str]; 8] = [
    &["sampling"],
    &["sampling", "tools"],
    &["sampling", "context"],
    &["elicitation", "form"],
    &["elicitation", "url"],
    &["roots"],
    &["roots", "listChanged"],
    &["extensions", "io.modelcontextprotocol/tasks"],
];
const SAMPLING: u8 = 1;
const SAMPLING_TOOLS: u8 = 1 << 1;
const FORM: u8 = 1 << 3;
const URL: u8 = 1 << 4;
const ROOTS: u8 = 1 << 5;
const ROOTS_CHANGED: u8 = 1 << 6;
const TASKS: u8 = 1 << 7;

/// What a client declares that servers may ask of it. Of the members of `clientCapabilities` only
/// those are kept that are relayed, so there are few different values.
///
/// ```
/// use callward_core::{ClientCapabilities, ClientMethod};
///
/// let declared = ClientCapabilities::parse(br#"{"elicitation": {}, "x": {}}"#);
/// assert_eq!(declared.to_json(), r#"{"elicitation":{"form":{}}}"#);
/// assert!(declared.allow(ClientMethod::Elicit, b"{}"));
/// assert!(!declared.allow(ClientMethod::Elicit, br#"{"mode": "url"}"#));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientCapabilities(u8);

impl ClientCapabilities {
    /// Reads a `clientCapabilities` object. What cannot be read is not declared.
    #[must_use]
    pub fn parse(raw: &[u8]) -> Self {
        let declared: Value = serde_json::from_slice(raw).unwrap_or_default();
        let is_declared = |place: &&[&str]| {
            let value = place.iter().try_fold(&declared, |at, step| at.get(step));
            value.is_some_and(|value| value.is_object() || *value == true)
        };
        let places = PLACES.iter().enumerate();
        let bits = places.filter(|(_, place)| is_declared(place));
        let mut bits = bits.fold(0, |bits, (at, _)| bits | 1 << at);
        // before there were two modes, the object was empty
        if declared.get("elicitation").is_some_and(Value::is_object) && bits & URL == 0 {
            bits |= FORM;
        }
        Self(bits)
    }

    /// Returns the `clientCapabilities` object for a server.
    #[must_use]
    pub fn to_json(self) -> String {
        let mut declared = Map::new();
        let places = PLACES.iter().enumerate();
        for (_, place) in places.filter(|(at, _)| self.0 & (1 << at) != 0) {
            let &[first, ref rest @ ..] = *place else {
                continue;
            };
            let member = declared.entry(first).or_insert_with(|| Map::new().into());
            if let (Some(member), [name]) = (member.as_object_mut(), rest) {
                let value = match *name {
                    "listChanged" => true.into(),
                    _ => Map::new().into(),
                };
                member.insert((*name).to_owned(), value);
            }
        }
        Value::Object(declared).to_string()
    }

    /// Returns `true` if the client may be sent a request with these raw parameters.
    #[must_use]
    pub fn allow(self, method: ClientMethod, params: &[u8]) -> bool {
        let params = if params.is_empty() { b"{}" } else { params };
        // what others may read differently is not known to be allowed
        let Ok(params) = serde_json::from_slice::<Value>(params) else {
            return false;
        };
        let needed = match method {
            ClientMethod::Sample if params.get("tools").is_some() => SAMPLING | SAMPLING_TOOLS,
            ClientMethod::Sample => SAMPLING,
            ClientMethod::Elicit if params["mode"] == "url" => URL,
            ClientMethod::Elicit => FORM,
            ClientMethod::ListRoots => ROOTS,
        };
        self.0 & needed == needed
    }

    /// Returns `true` if the client understands results that are tasks.
    #[must_use]
    pub const fn take_tasks(self) -> bool {
        self.0 & TASKS != 0
    }

    /// Leaves the extensions out: what a client of a revision before 2026-07-28 declares.
    #[must_use]
    pub const fn without_extensions(self) -> Self {
        Self(self.0 & !TASKS)
    }

    /// Returns a number that differs between different capabilities; 0 if there are none.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns `true` if the client announces that its folders have changed.
    #[must_use]
    pub const fn announces_roots(self) -> bool {
        self.0 & ROOTS_CHANGED != 0
    }

    /// Returns `true` if the client may be asked nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.without_extensions().0 == 0
    }
}

/// Why a client gives no answer: the error of its JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {code})")]
#[expect(clippy::exhaustive_structs, reason = "JSON-RPC has no other members")]
pub struct ClientRefusal {
    /// The JSON-RPC code.
    pub code: i64,
    /// The reason.
    pub message: String,
    /// More about it: raw JSON.
    pub data: Option<Bytes>,
}

/// The connection to a client.
pub trait ClientPeer: Send + Sync {
    /// Sends the client a request with these raw parameters and waits for the raw result. Dropping
    /// the future cancels the request.
    fn ask(
        &self,
        method: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>>;

    /// Sends the client a notification with these raw parameters. It is dropped if the client reads
    /// too slowly. Default: it is dropped.
    fn notify(&self, method: &'static str, params: &[u8]) {
        let _ = (method, params);
    }

    /// Returns the lowest level of log messages that the client asked for. Default: none.
    fn log_level(&self) -> Option<LogLevel> {
        None
    }
}

/// The client of one call. Cloning copies a pointer.
#[derive(Clone)]
pub struct CallClient(Arc<Inner>);

struct Inner {
    peer: Arc<dyn ClientPeer>,
    takes_rounds: bool,
    was_asked: AtomicBool,
}

impl CallClient {
    /// Takes the connection to the client. With `takes_rounds` the client understands results that
    /// ask for input (2026-07-28), and answers them in a further round.
    #[must_use]
    pub fn new(peer: Arc<dyn ClientPeer>, takes_rounds: bool) -> Self {
        Self(Arc::new(Inner {
            peer,
            takes_rounds,
            was_asked: AtomicBool::new(false),
        }))
    }

    /// Returns the connection, to notify the client.
    #[must_use]
    pub fn peer(&self) -> &Arc<dyn ClientPeer> {
        &self.0.peer
    }

    /// Returns `true` if the client understands results that ask for input.
    #[must_use]
    pub fn takes_rounds(&self) -> bool {
        self.0.takes_rounds
    }

    /// Asks the client, for the call that it made: [`ClientPeer::ask`].
    #[must_use]
    pub fn ask(
        &self,
        method: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        self.note_asked();
        self.0.peer.ask(method, params)
    }

    /// Takes note that the client is asked for the call, perhaps for another one as well.
    pub fn note_asked(&self) {
        self.0.was_asked.store(true, Ordering::Release);
    }

    /// Returns `true` if the client was asked something for the call: its answer belongs to this
    /// call alone, and the call is not repeated.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.0.was_asked.load(Ordering::Acquire)
    }
}

impl fmt::Debug for CallClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallClient")
            .field("takes_rounds", &self.takes_rounds())
            .field("was_asked", &self.was_asked())
            .finish_non_exhaustive()
    }
}

/// A further round of a request whose server asked for input.
#[derive(Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the protocol has no other parameters"
)]
pub struct Round {
    /// The client's answers: the raw `inputResponses` object.
    pub responses: Option<Bytes>,
    /// The server's own state: the raw `requestState`.
    pub state: Option<Bytes>,
}

/// Shows no answers: they may be secret.
impl fmt::Debug for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |raw: &Option<Bytes>| raw.as_ref().map(Bytes::len);
        f.debug_struct("Round")
            .field("response_bytes", &bytes(&self.responses))
            .field("state_bytes", &bytes(&self.state))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_and_written() {
        for (raw, written) in [
            ("{}", "{}"),
            ("7", "{}"),
            (
                r#"{"sampling":{},"roots":{"listChanged":false}}"#,
                r#"{"roots":{},"sampling":{}}"#,
            ),
            (
                r#"{"sampling":{"tools":{}},"roots":{"listChanged":true}}"#,
                r#"{"roots":{"listChanged":true},"sampling":{"tools":{}}}"#,
            ),
            (
                r#"{"elicitation":{"url":{}}}"#,
                r#"{"elicitation":{"url":{}}}"#,
            ),
            (
                r#"{"elicitation":{},"tasks":{}}"#,
                r#"{"elicitation":{"form":{}}}"#,
            ),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"x":{}}}"#,
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            ),
        ] {
            let declared = ClientCapabilities::parse(raw.as_bytes());
            assert_eq!(declared.to_json(), written, "{raw}");
            let again = ClientCapabilities::parse(written.as_bytes());
            assert_eq!(again, declared);
        }
    }

    #[test]
    fn only_what_is_declared_may_be_asked() {
        for (declared, method, params, allowed) in [
            (r#"{"sampling":{}}"#, ClientMethod::Sample, "{}", true),
            (
                r#"{"sampling":{}}"#,
                ClientMethod::Sample,
                r#"{"tools":[]}"#,
                false,
            ),
            (
                r#"{"sampling":{"tools":{}}}"#,
                ClientMethod::Sample,
                r#"{"tools":[]}"#,
                true,
            ),
            (
                r#"{"elicitation":{"url":{}}}"#,
                ClientMethod::Elicit,
                "{}",
                false,
            ),
            (
                r#"{"elicitation":{"url":{}}}"#,
                ClientMethod::Elicit,
                r#"{"mode":"url"}"#,
                true,
            ),
            (r#"{"roots":{}}"#, ClientMethod::ListRoots, "", true),
            (
                r#"{"elicitation":{}}"#,
                ClientMethod::Elicit,
                r#"{"mode":"url","x":"\ud800"}"#,
                false,
            ),
            ("{}", ClientMethod::ListRoots, "", false),
        ] {
            let capabilities = ClientCapabilities::parse(declared.as_bytes());
            assert_eq!(
                capabilities.allow(method, params.as_bytes()),
                allowed,
                "{declared}"
            );
        }
    }
}

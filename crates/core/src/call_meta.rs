//! What the `_meta` of a call has for the server.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::{InvalidValue, is_our_meta, readable};

/// What says something of one hop only, beside keys of this runtime. Each hop writes its own.
const OF_ONE_HOP: &str = "baggage progressToken traceparent tracestate \
    io.modelcontextprotocol/clientCapabilities io.modelcontextprotocol/clientInfo \
    io.modelcontextprotocol/protocolVersion io.modelcontextprotocol/subscriptionId";

/// Names of the call itself, which well-known clients choose for each. With them no two calls would
/// be equal.
const NAMES_OF_CALLS: [&str; 2] = ["claudecode/toolUseId", "vscode.requestId"];

/// The most that is passed on, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// What the `_meta` of a call has for the server: all members but those under keys of this runtime,
/// the progress token, the trace context, and what the protocol defines for one hop.
///
/// ```
/// use callward_core::CallMeta;
///
/// let raw = br#"{"progressToken": 1, "com.example/tenant": "a", "vscode.requestId": "7"}"#;
/// let meta = CallMeta::parse(raw)?.expect("two members are for the server");
/// assert_eq!(meta.members(), br#""com.example/tenant":"a","vscode.requestId":"7""#);
/// assert_eq!(meta.compared(), Some(&br#"{"com.example/tenant":"a"}"#[..]));
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Clone)]
pub struct CallMeta {
    sent: Bytes,
    compared: Option<Bytes>,
}

impl CallMeta {
    /// Reads a raw `_meta` object; nothing if it has nothing for the server. Of a name given twice
    /// the last one counts.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the text is not an object, if servers may be unable to read it
    /// ([`readable::check`]), or if more than 16 KiB are for the server.
    pub fn parse(raw: &[u8]) -> Result<Option<Self>, InvalidValue> {
        let unusable = |why: &dyn fmt::Display| InvalidValue::new(format!("`_meta` {why}"));
        readable::check(raw).map_err(|why| unusable(&why))?;
        let raw = readable::without_lone_surrogates(Bytes::copy_from_slice(raw));
        let members: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_slice(&raw);
        let mut members = members.map_err(|error| unusable(&error))?;
        let is_of_hop = |name: &str| OF_ONE_HOP.split(' ').any(|hop| hop == name);
        members.retain(|name, _| !is_our_meta(name) && !is_of_hop(name));
        if members.is_empty() {
            return Ok(None);
        }
        let write = |members: &_| serde_json::to_vec(members).map_err(|error| unusable(&error));
        let sent = write(&members)?;
        if sent.len() > MAX_BYTES {
            let length = sent.len();
            return Err(unusable(&format_args!(
                "has {length} bytes for the server: leave some out, {MAX_BYTES} are passed on"
            )));
        }
        members.retain(|name, _| !NAMES_OF_CALLS.contains(&name.as_str()));
        let compared = (!members.is_empty()).then(|| write(&members)).transpose()?;
        Ok(Some(Self {
            sent: sent.into(),
            compared: compared.map(Bytes::from),
        }))
    }

    /// Returns the members that the server gets, as JSON with commas between them.
    #[must_use]
    pub fn members(&self) -> &[u8] {
        let members = self.sent.strip_prefix(b"{");
        let members = members.and_then(|rest| rest.strip_suffix(b"}"));
        members.unwrap_or_default()
    }

    /// Returns the object by which calls differ: without what only names the call, in words of
    /// well-known clients (`claudecode/toolUseId`, `vscode.requestId`).
    #[must_use]
    pub fn compared(&self) -> Option<&[u8]> {
        self.compared.as_deref()
    }
}

/// Shows none of it: it may be secret.
impl fmt::Debug for CallMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallMeta")
            .field("bytes", &self.sent.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_or_of_one_hop_is_left_out() {
        let hop = r#"{"io.callward/trail":true,"progressToken":1,"traceparent":"x","baggage":"a=b",
            "io.modelcontextprotocol/clientInfo":{},"progress\u0054oken":2}"#;
        let sent = r#"{"io.modelcontextprotocol/logLevel":"debug","x/y":{"n":1.50}}"#;
        let both = format!("{},{}", hop.trim_end_matches('}'), &sent[1..]);
        for (raw, expected) in [
            ("{}", None),
            (hop, None),
            (sent, Some(sent)),
            (&both, Some(sent)),
        ] {
            let meta = CallMeta::parse(raw.as_bytes()).unwrap();
            let members = meta
                .as_ref()
                .map(|meta| [b"{", meta.members(), b"}"].concat());
            assert_eq!(members.as_deref(), expected.map(str::as_bytes), "{raw}");
            assert_eq!(
                meta.and_then(|meta| meta.compared).as_deref(),
                members.as_deref()
            );
        }
        let named = br#"{"claudecode/toolUseId":"t","x":"\ud800"}"#;
        let named = CallMeta::parse(named).unwrap().unwrap();
        assert_eq!(named.compared().unwrap(), br#"{"x":"\ufffd"}"#);
        let id = CallMeta::parse(br#"{"claudecode/toolUseId":"t"}"#)
            .unwrap()
            .unwrap();
        assert_eq!(id.compared(), None);
        let deep = "[".repeat(200) + &"]".repeat(200);
        let long = "y".repeat(MAX_BYTES);
        for (raw, why) in [
            ("[]".to_owned(), "a map"),
            (format!(r#"{{"x":{deep}}}"#), "levels"),
            (format!(r#"{{"x":"{long}"}}"#), "16384"),
        ] {
            let error = CallMeta::parse(raw.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}

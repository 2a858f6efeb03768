//! What a client without a valid token reads, so that it can get one (RFC 9728, RFC 6750).

use http::HeaderValue;
use serde::Serialize;
use url::Url;

use crate::rules::SCOPES;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The document about an endpoint, for its [well-known path](well_known_path).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The URL of the endpoint, which tokens must be for.
    pub resource: String,
    /// The issuers whose tokens are accepted.
    pub authorization_servers: Vec<String>,
    /// `tools:read`, which is what a client needs to begin: some ask for all that is listed here,
    /// and a call that needs more says so.
    pub scopes_supported: [&'static str; 1],
    /// `header`: a token in the query of an address is refused.
    pub bearer_methods_supported: [&'static str; 1],
    /// A name for people.
    pub resource_name: String,
}

impl ResourceMetadata {
    /// Describes the endpoint at this URL.
    pub fn new(
        resource: impl Into<String>,
        name: impl Into<String>,
        authorization_servers: Vec<String>,
    ) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers,
            scopes_supported: [SCOPES[0]],
            bearer_methods_supported: ["header"],
            resource_name: name.into(),
        }
    }

    /// Returns the URL of this document, which is on the host of the endpoint. `None` if the
    /// endpoint's URL cannot be read.
    #[must_use]
    pub fn url(&self) -> Option<Url> {
        let mut url = Url::parse(&self.resource).ok()?;
        url.set_path(&well_known_path(url.path()));
        url.set_fragment(None);
        Some(url)
    }
}

/// Returns where the document about an endpoint is: `/.well-known/oauth-protected-resource/mcp` for
/// `/mcp`, and without a path at the end for the root.
#[must_use]
pub fn well_known_path(endpoint: &str) -> String {
    format!("{WELL_KNOWN}{}", endpoint.trim_end_matches('/'))
}

/// Why a request is refused, as the value of `WWW-Authenticate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what RFC 6750 has")]
pub enum Challenge<'a> {
    /// Status 401: there is no credential.
    Missing,
    /// Status 401: the credential is not valid.
    Invalid,
    /// Status 403: the token lacks some of the scopes of this operation. All to ask for are listed.
    InsufficientScope(&'a [&'a str]),
}

impl Challenge<'_> {
    /// Returns the value, with the parameters in the order of the MCP specification. With the URL
    /// of the endpoint's metadata it says where clients learn how to get a token.
    #[must_use]
    pub fn header(self, metadata: Option<&Url>) -> HeaderValue {
        let metadata = metadata.map(|url| format!("resource_metadata={}", quoted(url.as_str())));
        // what no client can ask for is not named
        let read = metadata
            .as_ref()
            .map(|_| format!("scope={}", quoted(SCOPES[0])));
        let parts = match self {
            Self::Missing => [None, metadata, read],
            Self::Invalid => [Some("error=\"invalid_token\"".to_owned()), metadata, read],
            Self::InsufficientScope(scopes) => {
                let scopes = format!("scope={}", quoted(&scopes.join(" ")));
                let error = "error=\"insufficient_scope\"".to_owned();
                [Some(error), Some(scopes), metadata]
            }
        };
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let text = format!("Bearer {}", parts.join(", "));
        // what is quoted is ASCII, so there is no error
        HeaderValue::try_from(text.trim_end()).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}

/// Writes a quoted string of RFC 9110. What none can hold is left out: no URL has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars().filter(|c| matches!(c, ' '..='~')) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_document_names_the_issuers_and_has_its_own_path() {
        let of = |url: &str| ResourceMetadata::new(url, "Callward", vec!["https://a".to_owned()]);
        let text = serde_json::to_value(of("https://gw.example/mcp")).unwrap();
        let want = serde_json::json!({
            "resource": "https://gw.example/mcp",
            "authorization_servers": ["https://a"],
            "scopes_supported": ["tools:read"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Callward",
        });
        assert_eq!(text, want);
        for (endpoint, at) in [
            (
                "https://gw.example/mcp",
                "https://gw.example/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "http://[::1]:7420/",
                "http://[::1]:7420/.well-known/oauth-protected-resource",
            ),
        ] {
            assert_eq!(of(endpoint).url().unwrap().as_str(), at);
        }
    }

    #[test]
    fn a_challenge_says_what_is_missing() {
        let url =
            Url::parse("https://gw.example/.well-known/oauth-protected-resource/mcp").unwrap();
        let at = format!("resource_metadata=\"{url}\"");
        for (challenge, want) in [
            (
                Challenge::Missing,
                format!("Bearer {at}, scope=\"tools:read\""),
            ),
            (
                Challenge::Invalid,
                format!("Bearer error=\"invalid_token\", {at}, scope=\"tools:read\""),
            ),
            (
                Challenge::InsufficientScope(&["tools:read", "tools:destroy"]),
                format!(
                    "Bearer error=\"insufficient_scope\", scope=\"tools:read tools:destroy\", {at}"
                ),
            ),
        ] {
            assert_eq!(challenge.header(Some(&url)), want);
        }
    }

    proptest! {
        #[test]
        fn no_url_and_no_scope_ends_its_quotes(path in "\\PC*", scope in ".*") {
            let mut url = Url::parse("https://gw.example/").unwrap();
            url.set_query(Some(&path));
            url.set_path(&path);
            let scopes = [&*scope];
            let value = Challenge::InsufficientScope(&scopes).header(Some(&url));
            let mut rest = value.to_str().unwrap();
            let mut outside = String::new();
            while let Some((before, after)) = rest.split_once('"') {
                outside.push_str(before);
                let mut escaped = false;
                let end = after.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                rest = &after[end.unwrap() + 1..];
            }
            prop_assert_eq!(outside + rest, "Bearer error=, scope=, resource_metadata=");
        }
    }
}

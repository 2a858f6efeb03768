//! Signed messages between services of one operator, as [Standard Webhooks] has them.
//!
//! `webhook-signature` is `v1,` and the Base64 of the HMAC-SHA256 over `ID.TIMESTAMP.BODY`, where
//! `webhook-id` is the same each time that a message is sent, and `webhook-timestamp` when it was,
//! in seconds since 1970.
//!
//! [Standard Webhooks]: https://www.standardwebhooks.com

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use url::Url;

use crate::authenticator::now;
use crate::tokens::Secret;
use crate::tokens::config::secure_url;
use crate::tokens::http::{Ask, Client, Http, Post};

/// Shorter secrets can be guessed.
const MIN_SECRET: usize = 24;
/// How far the time of a message may be from ours.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Signs messages, and verifies those of others that have the secret.
#[derive(Debug, Clone)]
pub struct Signer(hmac::Key);

impl Signer {
    /// Takes the key: `whsec_` and its Base64, or the key as text.
    ///
    /// # Errors
    ///
    /// Why the secret cannot be used, and what is expected.
    pub fn new(secret: &Secret) -> Result<Self, String> {
        let secret = secret.reveal();
        let decoded = secret
            .strip_prefix("whsec_")
            .map(|text| STANDARD.decode(text));
        let key = match decoded {
            Some(key) => key.map_err(|_| "`secret` has no Base64 after `whsec_`".to_owned())?,
            None => secret.as_bytes().to_vec(),
        };
        if key.len() < MIN_SECRET {
            return Err(format!("`secret` must have at least {MIN_SECRET} bytes"));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns `true` if a message has a signature with this key, and is at most 5 minutes old. The
    /// same message passes again within that time.
    #[must_use]
    pub fn verifies(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        self.verifies_at(headers, body, now())
    }

    fn verifies_at(&self, headers: &HeaderMap, body: &[u8], now: SystemTime) -> bool {
        let only = |name| {
            let mut values = headers.get_all(name).iter();
            let value = values.next().filter(|_| values.next().is_none());
            value.and_then(|value| value.to_str().ok())
        };
        let found = only(&ID).zip(only(&TIMESTAMP)).zip(only(&SIGNATURE));
        let Some(((id, timestamp), signatures)) = found else {
            return false;
        };
        let sent = timestamp.parse().ok().map(Duration::from_secs);
        let is_fresh = |sent: Duration| seconds(now).abs_diff(sent) <= TOLERANCE;
        let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
        let is_ours = |signature: &str| {
            let signature = signature.strip_prefix("v1,");
            let signature = signature.and_then(|text| STANDARD.decode(text).ok());
            signature.is_some_and(|it| hmac::verify(&self.0, &signed, &it).is_ok())
        };
        // several while a secret is replaced
        sent.is_some_and(is_fresh) && signatures.split(' ').any(is_ours)
    }

    fn headers(&self, id: &str, body: &str, now: SystemTime) -> Result<HeaderMap, String> {
        let timestamp = seconds(now).as_secs();
        let signature = hmac::sign(&self.0, format!("{id}.{timestamp}.{body}").as_bytes());
        let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut headers = HeaderMap::from_iter([json]);
        for (name, value) in [
            (ID, id.to_owned()),
            (TIMESTAMP, timestamp.to_string()),
            (SIGNATURE, format!("v1,{}", STANDARD.encode(signature))),
        ] {
            let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn seconds(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Sends signed messages to one service.
pub struct SignedClient {
    url: Url,
    signer: Signer,
    http: Box<dyn Http>,
}

impl SignedClient {
    /// Takes the URL of the service: HTTPS, or HTTP on loopback. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Which setting cannot be used, why, and what is expected.
    pub fn new(url: &str, secret: &Secret) -> Result<Self, String> {
        let url = secure_url("url", url)?;
        let client = Client::build(url.scheme() == "https")?;
        Self::with(url, secret, Box::new(client))
    }

    pub(crate) fn with(url: Url, secret: &Secret, http: Box<dyn Http>) -> Result<Self, String> {
        let signer = Signer::new(secret)?;
        Ok(Self { url, signer, http })
    }

    /// Returns what signs the messages.
    #[must_use]
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Sends JSON, and returns the answer, which may have this many bytes. Of 0, none is read, and
    /// each status of success will do; otherwise it is 200. The caller bounds the time.
    ///
    /// # Errors
    ///
    /// Why there is no such answer, without the address.
    pub async fn send(&self, id: &str, body: String, limit: usize) -> Result<Vec<u8>, String> {
        let headers = self.signer.headers(id, &body, now())?;
        let ask = Ask {
            url: self.url.clone(),
            limit,
            post: Some(Post { headers, body }),
        };
        self.http.send(ask).await
    }
}

/// Shows no secret.
impl fmt::Debug for SignedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SignedClient")
            .field(&self.url.as_str())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a secret of at least 24 bytes";

    #[test]
    fn only_a_fresh_message_with_a_signature_of_the_key_is_verified() {
        let signer = |secret: &str| Signer::new(&Secret::new(secret)).unwrap();
        let ours = signer(SECRET);
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let good = ours.headers("msg-1", "{}", at(1_000)).unwrap();
        let with = |name: &HeaderName, value: &str| {
            let mut headers = good.clone();
            headers.insert(name, value.parse().unwrap());
            headers
        };
        let signature = good[SIGNATURE].to_str().unwrap();
        let several = with(&SIGNATURE, &format!("v1,AAAA v1a,x {signature}"));
        let mut twice = good.clone();
        twice.append(ID, "msg-1".parse().unwrap());
        let mut unsigned = good.clone();
        unsigned.remove(SIGNATURE);
        let forged = signer("another secret of 24 bytes");
        let forged = forged.headers("msg-1", "{}", at(1_000)).unwrap();
        for (what, headers, body, now, expected) in [
            ("as sent", &good, "{}", 1_000, true),
            ("in a list", &several, "{}", 1_000, true),
            ("5 minutes old", &good, "{}", 1_300, true),
            ("5 minutes ahead", &good, "{}", 700, true),
            ("old", &good, "{}", 1_301, false),
            ("ahead", &good, "{}", 699, false),
            ("another body", &good, "{ }", 1_000, false),
            ("another id", &with(&ID, "msg-2"), "{}", 1_000, false),
            (
                "another time",
                &with(&TIMESTAMP, "1001"),
                "{}",
                1_000,
                false,
            ),
            ("no time", &with(&TIMESTAMP, "soon"), "{}", 1_000, false),
            ("not Base64", &with(&SIGNATURE, "v1,?"), "{}", 1_000, false),
            ("empty", &with(&SIGNATURE, ""), "{}", 1_000, false),
            (
                "another version",
                &with(&SIGNATURE, &signature.replace("v1,", "v2,")),
                "{}",
                1_000,
                false,
            ),
            ("two ids", &twice, "{}", 1_000, false),
            ("unsigned", &unsigned, "{}", 1_000, false),
            ("another secret", &forged, "{}", 1_000, false),
        ] {
            let verified = ours.verifies_at(headers, body.as_bytes(), at(now));
            assert_eq!(verified, expected, "{what}");
        }
    }

    /// The example of the specification.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#);
        let sent = UNIX_EPOCH + Duration::from_secs(1_614_265_330);
        let headers = Signer::new(&secret).unwrap().headers(id, body, sent);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(headers.unwrap()[SIGNATURE], expected);
    }
}
